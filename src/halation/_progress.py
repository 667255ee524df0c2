"""Progress of long work: the command line shows it as a bar, a library caller may ignore it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total)."""


def silent(what: str, done: int, total: int) -> None:
    """Report no progress; the default everywhere."""
