"""`halation export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from halation._errors import InputError
from halation.cli._console import progress_bar

__all__ = ["add_verbs"]


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A new folder for the model.")] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write ONNX graphs, for programs without torch.")] = False,
    trec: Annotated[Path | None, typer.Option(help="A new folder for TREC run and qrels files; needs --data.")] = None,
    data: Annotated[Path | None, typer.Option(help="The dataset's folder, for --trec.")] = None,
    split: Annotated[str, typer.Option(help="The split to rank, for --trec.")] = "test",
    depth: Annotated[int, typer.Option(help="How many items per query go into the TREC run files.")] = 1000,
    licence: Annotated[
        str, typer.Option("--licence", "--license", help="Licence for the model card, such as mit.")
    ] = "unknown",
    backbone: Annotated[
        str | None, typer.Option(help="Network that computed the features, for --onnx of a run trained on features.")
    ] = None,
) -> None:
    """Export a run for others to use: a model with its card, ONNX graphs or TREC files.

    -o writes the weights and a model card, or ONNX graphs with --onnx. --trec writes rankings as TREC files.
    """
    if (out is None) == (trec is None):
        raise InputError("name a folder: -o OUT for the model (with --onnx as ONNX), or --trec OUT for its rankings")
    if trec is not None:
        if data is None:
            raise InputError("--trec ranks a split of a dataset", remedy="name the dataset's folder with --data")
        _trec(run, trec, data, split, depth)
        return
    assert out is not None
    if onnx:
        from halation.export import export_onnx

        made = export_onnx(run, out, backbone=backbone, data=data)
    else:
        from halation.export import export_run

        made = export_run(run, out, licence=licence)
    for path in sorted(made.iterdir()):
        print(f"{path}  {path.stat().st_size / 1e6:.2f} MB")
    if onnx:
        _print_left_out(made)
    note = "checked: each graph gives the model's own results" if onnx else f'open it: halation.load("{made}")'
    print(note, file=sys.stderr)


def _print_left_out(made: Path) -> None:
    from halation._files import read_json

    for part, reason in read_json(made / "preprocess.json")["left_out"].items():
        print(f"left out: {part}: {reason}", file=sys.stderr)


def _trec(run: Path, out: Path, data: Path, split: str, depth: int) -> None:
    from halation.export import export_trec

    with progress_bar() as progress:
        written = export_trec(run, out, data, split=split, depth=depth, progress=progress)
    for path in written:
        print(path)


def add_verbs(app: typer.Typer) -> None:
    """Add the verb of this file to the command line."""
    app.command(rich_help_panel="Train")(export)
