"""The verb that gives a run away."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from halation._errors import InputError
from halation.cli._console import progress_bar

__all__ = ["add_verbs"]


def export(
    run: Annotated[Path, typer.Argument(help="A trained run's folder.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A new folder.")] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="ONNX graphs, for programs without torch.")] = False,
    trec: Annotated[Path | None, typer.Option(help="A new folder for TREC run and qrels files; needs --data.")] = None,
    data: Annotated[Path | None, typer.Option(help="The data's folder, for --trec.")] = None,
    split: Annotated[str, typer.Option(help="Which split, for --trec.")] = "test",
    depth: Annotated[int, typer.Option(help="How many items of each query go into the TREC run files.")] = 1000,
    licence: Annotated[str, typer.Option("--licence", "--license", help="For the model card: mit, …")] = "unknown",
    backbone: Annotated[
        str | None, typer.Option(help="What computed the features, for --onnx of a run trained on features.")
    ] = None,
) -> None:
    """Write a run for others: safetensors with a model card (-o), ONNX (-o with --onnx), TREC files (--trec)."""
    if (out is None) == (trec is None):
        raise InputError("name a folder: -o OUT for the model (with --onnx as ONNX), or --trec OUT for its rankings")
    if trec is not None:
        if data is None:
            raise InputError("--trec ranks a split of data; name the data's folder with --data")
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
        _say_left_out(made)
    said = "every graph gives what the model gives" if onnx else f'open it: halation.load("{made}")'
    print(said, file=sys.stderr)


def _say_left_out(made: Path) -> None:
    from halation._files import read_json

    for what, why in read_json(made / "preprocess.json")["left_out"].items():
        print(f"left out: {what}: {why}", file=sys.stderr)


def _trec(run: Path, out: Path, data: Path, split: str, depth: int) -> None:
    from halation.export import export_trec

    with progress_bar() as progress:
        written = export_trec(run, out, data, split=split, depth=depth, progress=progress)
    for path in written:
        print(path)


def add_verbs(app: typer.Typer) -> None:
    """Make the verb known."""
    app.command()(export)
