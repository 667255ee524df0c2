"""`Server`: the process of `serving_child`, and a client of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx


class Server:
    """A child process that serves, and a client of it."""

    def __init__(self, index: Path, **settings: object) -> None:
        pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "serving_child", str(index), *pairs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.end()[1]
        self.client = httpx.Client(base_url=self.address, timeout=60)

    def ask(self, text: str, k: int = 3) -> httpx.Response:
        return self.client.post("/search", json={"text": text, "k": k})

    def end(self, how: int | None = signal.SIGTERM) -> tuple[int, str]:
        """The exit code and standard error. None: a signal was sent already, and a second one would kill it."""
        if how is not None and self.process.poll() is None:
            self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors

    def close(self) -> None:
        """Kill it, if it still runs."""
        self.client.close()
        self.end(signal.SIGKILL)


def write_index(index: Path, drawn: Path, first: int = 60, slow: float = 0.0) -> Path:
    """An index as `serving_child` reads it, put in place at once."""
    index.mkdir(exist_ok=True)
    fresh = index / "index.json.new"
    fresh.write_text(json.dumps({"scenes": str(drawn), "first": first, "slow": slow}), encoding="utf-8")
    fresh.replace(index / "index.json")
    return index
