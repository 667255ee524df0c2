"""The verbs that train: recipes, train, demo."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote
from shutil import get_terminal_size
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halation._errors import InputError
from halation.cli._console import print_line, progress_bar

if TYPE_CHECKING:
    from halation.training import TrainState

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of this file to the command line."""
    for verb in (recipes, train, demo):
        app.command(rich_help_panel="Train")(verb)


def recipes() -> None:
    """List the recipes that come with the package."""
    from halation.training import list_recipes

    described = list_recipes()
    width = max(len(name) for name, _ in described)
    room = get_terminal_size().columns - width - 2 if sys.stdout.isatty() else None
    for name, description in described:
        print(f"{name.ljust(width)}  {description if room is None else shorten(description, room, placeholder=' …')}")
    print("\nnext: halation train RECIPE --data FOLDER --out RUN", file=sys.stderr)


def train(
    recipe: Annotated[
        Path | None, typer.Argument(help="A recipe: a name that `halation recipes` lists, or a TOML file.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The dataset's folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the run.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting of the recipe: section.key=value; repeatable.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Go on with this run instead; --set train.epochs=N trains up to epoch N."),
    ] = None,
) -> None:
    """Train a model by a recipe, or go on with a run.

    Start it with torchrun to use several processes.
    """
    from halation._progress import no_log
    from halation.training import Run
    from halation.training import resume as go_on
    from halation.training import train as begin

    first = os.environ.get("RANK", "0") == "0"
    log = print_line if first else no_log
    run = Run(_run_folder(recipe, data, out, resume))
    before = run.about()
    try:
        with progress_bar(shown=first) as progress:
            if recipe is not None and data is not None:
                state = begin(recipe, data, run.folder, overrides=overrides, progress=progress, log=log)
            else:
                state = go_on(run.folder, data=data, overrides=overrides, progress=progress, log=log)
    except KeyboardInterrupt:
        if first and run.has_weights():
            print(f"\ninterrupted; go on with: halation train --resume {quote(str(run.folder))}", file=sys.stderr)
        raise
    if first:
        _print_end(run.folder, state, before, run.about())


def _run_folder(recipe: Path | None, data: Path | None, out: Path | None, resume: Path | None) -> Path:
    """The run's folder, when the arguments begin a run or go on with one, and not a bit of both."""
    if resume is not None and recipe is None and out is None:
        return resume
    if resume is None and recipe is not None and data is not None and out is not None:
        return out
    raise InputError(
        "begin a run with: halation train RECIPE --data FOLDER --out RUN, "
        "or go on with one: halation train --resume RUN"
    )


def _print_end(run: Path, state: TrainState, before: dict[str, Any], about: dict[str, Any]) -> None:
    best = f"best epoch {state.best_epoch + 1} of {state.epoch}" if state.epoch else "no epochs"
    print(f"\n{run}: {best}, {state.seconds / 60:.1f} minutes")
    if state.epoch and before.get("state") == "finished" and before.get("epochs") == about.get("epochs"):
        print(f"more epochs: halation train --resume {quote(str(run))} --set train.epochs={2 * state.epoch}")
    print(f"next: halation evaluate {quote(str(run))} --data {quote(str(about.get('data_folder', 'FOLDER')))}")


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
