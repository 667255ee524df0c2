"""`halation report`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from halation.cli._console import progress_bar

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Make the verb known."""
    app.command()(report)


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    data: Annotated[Path, typer.Option(help="The data's folder.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the page; one that is there is replaced.")
    ] = Path("report"),
    split: Annotated[str, typer.Option(help="Which split to measure.")] = "test",
    against: Annotated[Path | None, typer.Option(help="Another run's folder, to compare with.")] = None,
    queries: Annotated[int, typer.Option(help="Of so many queries both rankings are shown; at most 5,000.")] = 300,
) -> None:
    """One page of a run: measures with intervals, curves, what it finds and misses, a map. Opens without a network."""
    from halation.report import report_run

    start = time.monotonic()
    with progress_bar() as progress:
        page = report_run(run, data, out, split=split, against=against, queries=queries, progress=progress)
    size, seconds = page.stat().st_size / 1e6, time.monotonic() - start
    print(f"wrote {page} ({size:.1f} MB, one file, in {seconds:.0f} s)")
    print(f"next: open it in a browser: {page.resolve().as_uri()}")
    if against is None:
        print(f"or compare it with a second run: halation report {run} --data {data} --against RUN2 -o {out}")
    if not (run / "calibration.json").is_file():
        print(f"for calibrated probabilities in it, first: halation calibrate {run} --data {data}")
