"""How long work reports that it goes on; the command line turns it into a bar, a library caller may ignore it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total)."""


def silent(what: str, done: int, total: int) -> None:
    """The progress of somebody who does not want to know."""
