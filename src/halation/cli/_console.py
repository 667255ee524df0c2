"""What a person sees: a progress bar on long work, one line for an error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from halation._progress import Progress

__all__ = ["fail", "print_line", "progress_bar"]


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Progress]:
    """A bar on standard error while work goes on, with how many a second and how long it will still take; silent where
    nobody watches (a pipe, a log file).
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        """How many a second."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if not speed else f"{speed:,.{0 if speed >= 10 else 1}f}/s", style="progress.data.speed")

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        tasks: dict[str, object] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        yield report


def print_line(line: str) -> None:
    """A line a person follows a run by, at once."""
    print(line, flush=True)


def fail(message: str) -> None:
    """One message on standard error, exit code 2."""
    print(f"halation: {message}", file=sys.stderr)
    raise SystemExit(2)
