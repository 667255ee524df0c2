"""The verbs that look at a run: report, explain."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from halation._errors import InputError
from halation.cli._console import progress_bar

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of this file to the command line."""
    for verb in (report, explain):
        app.command(rich_help_panel="Look")(verb)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    data: Annotated[Path, typer.Option(help="The dataset's folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page; an existing page is replaced.")] = Path(
        "report"
    ),
    split: Annotated[str, typer.Option(help="The split to measure.")] = "test",
    against: Annotated[Path | None, typer.Option(help="Folder of a second run to compare with.")] = None,
    queries: Annotated[int, typer.Option(help="How many queries to show with their rankings; at most 5,000.")] = 300,
) -> None:
    """Make a web page about a run: metrics, curves, a map, and what it finds and misses.

    The page is a single file that opens without a network.
    """
    from halation.report import report_run

    start = time.monotonic()
    with progress_bar() as progress:
        page = report_run(run, data, out, split=split, against=against, queries=queries, progress=progress)
    size, seconds = page.stat().st_size / 1e6, time.monotonic() - start
    print(f"wrote {page} ({size:.1f} MB, one file, in {seconds:.0f} s)")
    print(f"next: open it in a browser: {page.resolve().as_uri()}")
    if against is None:
        print(f"to compare it with a second run: halation report {run} --data {data} --against RUN2 -o {out}")
    if not (run / "calibration.json").is_file():
        print(f"to add match probabilities, first run: halation calibrate {run} --data {data}")


def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    image: Annotated[Path, typer.Option(help="The picture.")],
    text: Annotated[str, typer.Option(help="The text to score it against.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write a web page to this .html file.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Network that computed the features, for a run trained on features.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The dataset's folder, for a run trained on features with reduced cells.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="An index made with this run: adds the match probability among its pictures.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Explain the score of a picture and a text.

    Shows the parts of the score, where the model looks, and which words and which regions of the picture matter.
    """
    if out is not None:
        if out.suffix.lower() != ".html":
            raise InputError(
                ": an explanation is written as a web page", path=out, remedy="name a file that ends in .html"
            )
        if out.is_dir() or not out.parent.is_dir():
            raise InputError("cannot be written", path=out, remedy="name a file in an existing folder")
    from halation.report import explain as explain_pair

    with contextlib.ExitStack() as opened:
        search = None
        if index is not None:
            from halation.search import open_search

            search = open_search(index, run)
            opened.callback(search.close)
        explanation = explain_pair(run, image, text, backbone=backbone, data=data, search=search)
    print(json.dumps(explanation.to_dict(), ensure_ascii=False, indent=2) if as_json else explanation)
    if out is not None:
        explanation.to_html(out)
        print(f"wrote {out}", file=sys.stderr)
