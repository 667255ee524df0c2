"""One process at a time where several end their work on one folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this system: two writers are then the user's own affair
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone_in"]


@contextmanager
def alone_in(folder: Path) -> Iterator[bool]:
    """One process at a time replaces what a folder holds; False where the system has no such lock."""
    handle, locked = None, False
    if fcntl is not None:
        handle = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some file systems of networks
            fcntl.flock(handle, fcntl.LOCK_EX)
            locked = True
    try:
        yield locked
    finally:
        if handle is not None:
            os.close(handle)  # and with it the lock
