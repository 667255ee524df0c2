"""The verbs that train: recipes, train, demo."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from shutil import get_terminal_size
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halation._errors import InputError
from halation.cli._console import is_first_process, print_line, progress_bar

if TYPE_CHECKING:
    from halation.training import Run, TrainState

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
        Path | None,
        typer.Argument(metavar="RECIPE", help="A name that `halation recipes` lists, or your own TOML file."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The dataset's folder.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A new folder for the run.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting of the recipe; repeatable."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Continue this run instead; --set train.epochs=N trains up to epoch N."),
    ] = None,
) -> None:
    """Train a model from a recipe, or continue a run.

    To use several processes, start it with torchrun.
    """
    from halation._progress import no_log
    from halation.training import Run

    folder, start = _plan(recipe, data, out, resume)
    run, is_first = Run(folder), is_first_process()
    before = run.about()
    try:
        with progress_bar(shown=is_first) as progress:
            state = start(overrides=overrides, progress=progress, log=print_line if is_first else no_log)
    except KeyboardInterrupt:
        if is_first and run.has_weights():
            print(f"\ninterrupted; to continue: halation train --resume {quote(str(folder))}", file=sys.stderr)
        raise
    if is_first:
        _print_end(run, state, before)


def _plan(
    recipe: Path | None, data: Path | None, out: Path | None, resume: Path | None
) -> tuple[Path, Callable[..., TrainState]]:
    """The run's folder and the function that trains: it begins a run or continues one, as the arguments say."""
    from halation.training import resume as continue_run
    from halation.training import train as begin_run

    if resume is not None and recipe is None and out is None:
        return resume, partial(continue_run, resume, data=data)
    if resume is None and recipe is not None and data is not None and out is not None:
        return out, partial(begin_run, recipe, data, out)
    raise InputError(
        "to begin a run: halation train RECIPE --data FOLDER --out RUN; to continue one: halation train --resume RUN"
    )


def _print_end(run: Run, state: TrainState, before: dict[str, Any]) -> None:
    """Print the best epoch and what to run next; `before` is what the run's folder held before training."""
    folder, about = quote(str(run.folder)), run.about()
    best = f"best epoch {state.best_epoch + 1} of {state.epoch}" if state.epoch else "no epochs"
    print(f"\n{run.folder}: {best}, {state.seconds / 60:.1f} minutes")
    if state.epoch and before.get("state") == "finished" and before.get("epochs") == about.get("epochs"):
        print(f"more epochs: halation train --resume {folder} --set train.epochs={2 * state.epoch}")
    print(f"next: halation evaluate {folder} --data {quote(str(about.get('data_folder', 'FOLDER')))}")


def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="A Flickr8k folder to use instead of drawn scenes; missing features are computed."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the scenes and the runs.")] = Path("demo"),
    images: Annotated[
        int | None, typer.Option(help=r"Scenes to draw for training; 600 for a quick look.  \[default: 6000]")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting of both recipes; repeatable."),
    ] = None,
) -> None:
    """Train PCME with and without DAA on drawn scenes and compare the two, in about two minutes."""
    from halation.cli._demo import run_demo

    with progress_bar() as progress:
        text = run_demo(out, data, images, tuple(overrides or ()), progress, print_line)
    print(text)
