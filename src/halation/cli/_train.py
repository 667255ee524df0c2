"""The verbs that train: recipes, train, demo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from halation.cli._console import print_line, progress_bar

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of this file to the command line."""
    for verb in (train, demo):
        app.command(rich_help_panel="Train")(verb)


def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe: its name, or a TOML file.")],
    data: Annotated[Path, typer.Option(help="The dataset's folder.")],
    out: Annotated[Path, typer.Option(help="A new folder for the run.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting of the recipe: section.key=value; repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with a run that was interrupted.")] = False,
) -> None:
    """Train a model by a recipe.

    Start it with torchrun to use several processes.
    """
    from halation.training import read_recipe, train_recipe

    chosen = read_recipe(recipe, overrides or ())
    first = os.environ.get("RANK", "0") == "0"
    with progress_bar(shown=first) as progress:
        state = train_recipe(
            chosen, data, out, resume=resume, progress=progress, tell=print_line if first else lambda line: None
        )
    if first:
        best = f"best epoch {state.best_epoch + 1} of {state.epoch}"
        print(f"\n{out}: {best}, {state.seconds / 60:.1f} minutes\nnext: halation evaluate {out} --data {data}")


def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="A Flickr8k folder, instead of drawn scenes; its features are computed if missing."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the drawings and the runs.")] = Path("demo"),
    images: Annotated[
        int | None, typer.Option(help=r"Scenes to draw for training; 600 for a quick look.  \[default: 6000]")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting of the recipes: section.key=value; repeatable.")
    ] = None,
) -> None:
    """Train PCME with and without DAA on drawn scenes and compare them: about two minutes."""
    from halation.cli._demo import run_demo

    with progress_bar() as progress:
        text = run_demo(out, data, images, tuple(overrides or ()), progress, print_line)
    print(text)
