"""The verb that explains one answer."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from halation._errors import InputError

__all__ = ["add_verbs"]


def explain(
    run: Annotated[Path, typer.Argument(help="A trained run's folder.")],
    image: Annotated[Path, typer.Option(help="A picture.")],
    text: Annotated[str, typer.Option(help="What is said of it.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write it as a page: an .html file.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="What computed the features, for a run trained on features of its own.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data's folder, for a run on features whose cells were made smaller.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="An index of this run: the probability among its pictures.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Why does a picture score as it does for a text? The parts of the score, where heads look, what mattered."""
    if out is not None:
        if out.suffix.lower() != ".html":
            raise InputError(f"{out}: an explanation is written as a web page; name a file that ends in .html")
        if out.is_dir() or not out.parent.is_dir():
            raise InputError(f"{out} cannot be written: name a file in an existing folder")
    from halation.report import explain as work

    with contextlib.ExitStack() as opened:
        search = None
        if index is not None:
            from halation.search import open_search

            search = open_search(index, run)
            opened.callback(search.close)
        explained = work(run, image, text, backbone=backbone, data=data, search=search)
    print(json.dumps(explained.to_dict(), ensure_ascii=False, indent=2) if as_json else explained)
    if out is not None:
        explained.to_html(out)
        print(f"wrote {out}", file=sys.stderr)


def add_verbs(app: typer.Typer) -> None:
    """Make the verb known."""
    app.command()(explain)
