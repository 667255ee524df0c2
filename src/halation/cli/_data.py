"""The verbs about data: data check, data scenes, features."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from halation.cli._console import progress_bar

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of this file to the command line."""
    group = typer.Typer(no_args_is_help=True, help="Check a dataset before you train on it, or draw one.")
    for verb in (check, scenes):
        group.command()(verb)
    app.add_typer(group, name="data", rich_help_panel="Train")
    app.command(rich_help_panel="Train")(features)


def check(folder: Annotated[Path, typer.Argument(help="The dataset's folder.")]) -> None:
    """Tell what is in a dataset's folder, and what is missing."""
    from halation.data import check as look

    with progress_bar() as progress:
        findings = look(folder, progress=progress)
    print(findings)
    if not findings.ok:
        raise SystemExit(1)


def scenes(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder for the drawings.")],
    train: Annotated[int, typer.Option(help="Images to train on.")] = 4000,
    dev: Annotated[int, typer.Option(help="Images to validate on.")] = 500,
    test: Annotated[int, typer.Option(help="Images to test on.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the drawings.")] = 0,
) -> None:
    """Draw scenes of shapes, where it is known exactly which caption is true of which picture."""
    from halation.data import draw_scenes

    with progress_bar() as progress:
        draw_scenes(folder, train=train, dev=dev, test=test, seed=seed, progress=progress)
    print(f"drew {train + dev + test:,} pictures into {folder}\nnext: halation data check {folder}")


def features(
    data: Annotated[Path, typer.Argument(help="The dataset's folder.")],
    backbone: Annotated[str, typer.Option(help="efficientnet_lite0, or the name or folder of a transformers model.")],
    out: Annotated[
        Path | None, typer.Option(help=r"Folder for the features.  \[default: DATA/features/BACKBONE]")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Pictures at a time.")] = 32,
    cells: Annotated[
        int | None,
        typer.Option(help="Reduce each cell to this many principal components, fitted on the training split."),
    ] = None,
    projection: Annotated[
        Path | None, typer.Option(help="A run's folder: reduce the cells as for its features, to evaluate it here.")
    ] = None,
) -> None:
    """Compute a backbone's features of all pictures once, to train on them.

    If it was stopped, run the same again: it goes on where it was. Pictures that were added or changed since then
    are computed alone.
    """
    from halation._files import read_json
    from halation.data import Projection, cache_features
    from halation.encoders import frozen_backbone

    target, network = out or data / "features" / Path(backbone).name, frozen_backbone(backbone)
    file = projection / Projection.FILE if projection is not None and projection.is_dir() else projection
    with progress_bar() as progress:
        store = cache_features(
            data,
            network,
            target,
            batch_size=batch_size,
            cells=cells,
            projection=None if file is None else Projection.load(file),
            progress=progress,
        )
    about = read_json(target / "meta.json")
    if cells is not None and "variance" in about:
        share = f"{about['variance']:.0%} of their variance kept"
        print(f"cells of {cells} dimensions, fitted on {about['fitted_on']:,} pictures: {share}")
    print(f"{store}\nnext: halation train RECIPE --data {data} --set data.features={target.resolve()} --out RUN")
    for name in store.corrupt:
        print(f"could not be read: {name}", file=sys.stderr)
