"""Progress of long work. The command line shows it; a caller of the library may ignore it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Log", "Progress", "no_log", "silent"]

Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total)."""

Log = Callable[[str], None]
"""Called with one line for a person to read."""


def silent(what: str, done: int, total: int) -> None:
    """Report no progress; the default everywhere."""


def no_log(line: str) -> None:
    """Show no log; the default everywhere."""
