"""`python tests/services/standalone.py COMMAND …`: run a command where a real Milvus may be started.

PyPI's `milvus==2.3.5` is a whole standalone server. Two things are arranged before the command runs:

- an environment of its own for that package (HALATION_MILVUS_VENV, default .venv-milvus), made once;
- a network of its own with nothing but loopback in it. The server listens on every address of every role, whatever its
  configuration says, so this is what shuts it in: no other machine can reach it, and no port of this one is taken.

Where one of the two cannot be had, the command still runs and is told why (HALATION_MILVUS_MISSING).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PACKAGE = "milvus==2.3.5"
PYTHON, MISSING, VENV = "HALATION_MILVUS_PYTHON", "HALATION_MILVUS_MISSING", "HALATION_MILVUS_VENV"
HERE = Path(__file__).resolve().parent


def main(command: list[str]) -> None:
    venv = Path(os.environ.get(VENV, ".venv-milvus")).absolute()
    reason = install(venv) or loopback_only()
    told = {MISSING: reason} if reason else {PYTHON: str(venv / "bin" / "python")}
    os.execvpe(command[0], command, os.environ | told)


def install(venv: Path) -> str:
    """Make the environment; the reason if that cannot be done."""
    python, ready = venv / "bin" / "python", venv / ".ready"
    if ready.is_file():
        return ""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE, "setuptools"]
    for step in ([sys.executable, "-m", "venv", str(venv)], pip, [str(python), str(HERE / "run_milvus.py")]):
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            return f"{PACKAGE} cannot be had here: {last}"
    ready.touch()
    return ""


def loopback_only() -> str:
    """Put this process into a network of its own; the reason if that is not allowed."""
    new_user, new_network = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare") or libc.unshare(new_network | (new_user if user else 0)):
        why = os.strerror(ctypes.get_errno())
        return f"Milvus listens on every address, and a network of its own to shut it in is not to be had here ({why})"
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        set_flags, up = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", up))
    return ""


class Standalone:
    """A Milvus server in a folder. It may be killed and started again: the folder keeps what it holds."""

    uri = "http://127.0.0.1:19530"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> None:
        """Start it; wait until it says it is healthy."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [os.environ[PYTHON], str(HERE / "run_milvus.py"), str(self.folder)], stdout=output, stderr=output
            )
        if wait:
            self.wait()

    def wait(self, seconds: float = 300) -> None:
        """Wait until it says it is healthy."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"Milvus ended while it started: {self._tail()}")
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen("http://127.0.0.1:9091/healthz", timeout=5) as said,
            ):
                if b"OK" in said.read():
                    return
            time.sleep(0.2)
        raise TimeoutError(f"Milvus was not healthy after {seconds:g} s: {self._tail()}")

    def _tail(self) -> str:
        return (self.folder / "output.txt").read_text(errors="replace")[-2000:]

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it."""
        self._end(signal.SIGTERM)

    def remove(self) -> None:
        """End it, and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it waits for its own parts to say goodbye
            process.kill()
            process.wait(timeout=10)


if __name__ == "__main__":
    main(sys.argv[1:])
