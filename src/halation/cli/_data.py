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
    group = typer.Typer(help="Check a dataset before you train on it, or draw one.")
    for verb in (check, scenes):
        group.command()(verb)
    app.add_typer(group, name="data", rich_help_panel="Train")
    app.command(rich_help_panel="Train")(features)


def check(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The dataset's folder.")]) -> None:
    """Show what a dataset contains and what is missing or damaged."""
    from halation.data import check as check_dataset

    with progress_bar() as progress:
        findings = check_dataset(folder, progress=progress)
    print(findings)
    if not findings.ok:
        raise SystemExit(1)


def scenes(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder for the pictures.")],
    train: Annotated[int, typer.Option(help="Images to train on.")] = 4000,
    dev: Annotated[int, typer.Option(help="Images to validate on.")] = 500,
    test: Annotated[int, typer.Option(help="Images to test on.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the random drawings.")] = 0,
) -> None:
    """Draw a dataset of simple scenes, with the exact truth of every caption about every picture."""
    from halation.data import draw_scenes

    with progress_bar() as progress:
        draw_scenes(folder, train=train, dev=dev, test=test, seed=seed, progress=progress)
    print(f"drew {train + dev + test:,} pictures into {folder}\nnext: halation data check {folder}")


def features(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The dataset's folder.")],
    backbone: Annotated[str, typer.Option(help="efficientnet_lite0, or the name or folder of a transformers model.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=r"Folder for the features.  \[default: DATA/features/BACKBONE]"),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Pictures per batch.")] = 32,
    cells: Annotated[
        int | None,
        typer.Option(help="Reduce each cell to this many principal components, fitted on the training split."),
    ] = None,
    projection: Annotated[
        Path | None, typer.Option(help="A run's folder: reduce the cells as its features were, to evaluate it here.")
    ] = None,
) -> None:
    """Compute a frozen backbone's features of every picture once, to train on them.

    If it is interrupted, run the same command again: it continues where it stopped.

    After you add or change pictures, run it again: only those are computed.
    """
    from halation._files import read_json
    from halation.data import Projection, cache_features
    from halation.encoders import frozen_backbone

    folder, network = out or data / "features" / Path(backbone).name, frozen_backbone(backbone)
    file = projection / Projection.FILE if projection is not None and projection.is_dir() else projection
    with progress_bar() as progress:
        store = cache_features(
            data,
            network,
            folder,
            batch_size=batch_size,
            cells=cells,
            projection=None if file is None else Projection.load(file),
            progress=progress,
        )
    about = read_json(folder / "meta.json")
    if cells is not None and "variance" in about:
        share = f"{about['variance']:.0%} of their variance kept"
        print(f"cells of {cells} dimensions, fitted on {about['fitted_on']:,} pictures: {share}")
    print(f"{store}\nnext: halation train RECIPE --data {data} --set data.features={folder.resolve()} --out RUN")
    for name in store.corrupt:
        print(f"could not be read: {name}", file=sys.stderr)
