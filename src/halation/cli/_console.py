"""What you see at the prompt: a progress bar for long work, one line for an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from halation._progress import Progress

__all__ = ["fail", "is_first_process", "print_line", "progress_bar"]


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Progress]:
    """Show a progress bar on standard error within the block, with the rate and the time left.

    It shows nothing where standard error is not a terminal (a pipe, a log file). Yields the function to report to.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        """Items per second."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if not speed else f"{speed:,.{0 if speed >= 10 else 1}f}/s", style="progress.data.speed")

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        tasks: dict[str, object] = {}

        def report(task: str, done: int, total: int) -> None:
            if task not in tasks:
                tasks[task] = bar.add_task(task, total=total)
            bar.update(tasks[task], completed=done, total=total)  # type: ignore[arg-type]

        yield report


def is_first_process() -> bool:
    """Whether this is the only process, or the first of those that torchrun started: the one that prints."""
    return os.environ.get("RANK", "0") == "0"


def print_line(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


def fail(message: str) -> None:
    """Print one message on standard error and exit with code 2."""
    print(f"halation: {message}", file=sys.stderr)
    raise SystemExit(2)
