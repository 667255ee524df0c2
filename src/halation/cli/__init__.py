"""The command line: thin verbs over the library."""

from __future__ import annotations

from collections.abc import Sequence

from halation.cli._console import progress_bar

__all__ = ["main", "progress_bar"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `halation …`; bad input prints one clear message and exits with code 2."""
    from halation.cli._app import run

    run(arguments)
