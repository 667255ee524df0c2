"""What a page's commands start besides this process: servers, several machines' worth of training, `make`, `curl`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from doc_blocks import ROOT

PATIENCE = 600  # seconds; machines are shared


def environment() -> dict[str, str]:
    """This process's, for a child that imports what it imports; what a `make` around it said is not passed on."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}


def finished(words: Sequence[str]) -> tuple[int, str]:
    """Run a command to its end: its code, and all its output."""
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, env=environment()
    )
    return done.returncode, done.stdout


def free_port() -> int:
    """A port of this machine that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """A server that a page starts: asked while it runs, ended with Ctrl-C.

    given    assignments before the command, as the shell reads them
    port     where it listens, if it does not say so itself
    """

    def __init__(self, words: Sequence[str], given: str = "", port: int | None = None) -> None:
        self.process = subprocess.Popen(
            ["sh", "-c", f'{given} exec "$@"', "sh", *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
        )  # fmt: skip
        self.pid, self.token = self.process.pid, ""
        if port is None:
            self._listen_to_its_greeting()
        else:
            self.output, self.address = "", f"http://127.0.0.1:{port}"
            self._wait_until_it_answers()

    def _listen_to_its_greeting(self) -> None:
        assert self.process.stdout is not None
        self.output = ""
        while "Ctrl-C stops" not in self.output:
            line = self.process.stdout.readline()
            assert line, f"it ended with {self.process.wait()}:\n{self.output}"
            self.output += line
        opened = re.search(r"^open (http://\S+?)/(?:#token=(\S+))?$", self.output, re.MULTILINE)
        pid = re.search(r"kill -HUP (\d+)", self.output)
        assert opened and pid, self.output
        self.address, self.token, self.pid = opened[1], opened[2] or "", int(pid[1])  # make's child is the server

    def _wait_until_it_answers(self) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                httpx.get(f"{self.address}/health", timeout=PATIENCE)
                return
            except httpx.TransportError:
                assert self.process.poll() is None, self.process.communicate()[0]
                assert time.monotonic() < until, "no answer"
                time.sleep(0.1)

    def ask(self) -> None:
        """It finds something; with a token, only for who knows it."""
        query = {"text": "a red circle", "k": 2}
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        answer = httpx.post(f"{self.address}/search", json=query, headers=bearer, timeout=PATIENCE)
        assert answer.status_code == 200 and len(answer.json()["hits"]) == 2, answer.text
        if self.token:
            assert httpx.post(f"{self.address}/search", json=query, timeout=PATIENCE).status_code == 401

    def ctrl_c(self) -> None:
        """It ends, and says nothing of a failure."""
        os.kill(self.pid, signal.SIGINT)
        output, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0 and "Traceback" not in output, f"{self.process.returncode}: {output}"

    def kill(self) -> None:
        """Where a test failed: nothing may run on."""
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.process.kill()
            self.process.communicate()


class Machines:
    """torchrun, on as many machines as its --nnodes says: each is a process here, and they meet on loopback."""

    def __init__(self) -> None:
        self.port = free_port()
        self.running: list[subprocess.Popen[str]] = []

    def start(self, words: Sequence[str]) -> tuple[int, str] | None:
        """Start one; the last waits for all, and gives the worst code and all their output."""
        cut = words.index("-m")
        options, rest = " ".join(words[:cut]), words[cut:]
        nodes = int((re.findall(r"--nnodes[= ](\d+)", options) or ["1"])[0])
        options = re.sub(r"(--nproc[-_]per[-_]node[= ])\d+", rf"\g<1>{1 if nodes > 1 else 2}", options)
        options, met = re.subn(r"(--rdzv[-_]endpoint[= ])\S+", rf"\g<1>127.0.0.1:{self.port}", options)
        options += " --local-addr=127.0.0.1" if met else f" --master-addr=127.0.0.1 --master-port={self.port}"
        command = [sys.executable, "-m", "torch.distributed.run", *options.split(), *rest]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
        )
        self.running.append(process)
        if len(self.running) < nodes:
            return None
        outputs = [each.communicate(timeout=PATIENCE)[0] for each in self.running]
        code = max((each.returncode for each in self.running), key=abs)
        self.running = []
        return code, "".join(outputs)

    def kill(self) -> None:
        """Those that still wait for others; torchrun, asked to end, ends what it started."""
        for each in self.running:
            each.terminate()
            each.communicate(timeout=PATIENCE)


def made(words: Sequence[str]) -> list[str]:
    """`make …` of this repository in the folder we are in, with an environment that is complete: this one."""
    programs = Path("venv", "bin")
    if not programs.is_dir():
        programs.mkdir(parents=True)
        Path("pyproject.toml").symlink_to(ROOT / "pyproject.toml")
        python = shlex.quote(sys.executable)
        for name, command in (("python", python), ("halation", f"{python} -m halation")):
            (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
    command = ["make", "--file", str(ROOT / "Makefile"), "VENV=venv", *words]
    code, output = finished([*command, "--touch"])  # whatever the target wants installed counts as installed
    assert code == 0, output
    return command


def curl(words: Sequence[str]) -> tuple[int, str]:
    """What `curl` ends with and prints, as the same request in Python where there is no curl."""
    if shutil.which("curl"):
        return finished(["curl", "--fail-with-body", *words])
    with httpx.Client(timeout=PATIENCE) as client:
        answer = client.send(request(words))
    return (0 if answer.is_success else 22), answer.text


def request(words: Sequence[str]) -> httpx.Request:
    """The request that `curl WORDS` makes; an option that is not known here is a KeyError."""
    rest, url, headers, body, form, files = list(words), "", {}, None, {}, {}
    while rest:
        word = rest.pop(0)
        if word == "-s":
            continue
        if not word.startswith("-"):
            url = word if "://" in word else f"http://{word}"
            continue
        value = {"-H": rest, "-d": rest, "-F": rest}[word].pop(0)
        if word == "-H":
            name, _, text = value.partition(":")
            headers[name] = text.strip()
        elif word == "-d":
            body = value
        else:
            name, _, text = value.partition("=")
            if text.startswith("@"):
                files[name] = (text[1:], Path(text[1:]).read_bytes())
            else:
                form[name] = text
    return httpx.Request("POST", url, headers=headers, content=body, data=form or None, files=files or None)
