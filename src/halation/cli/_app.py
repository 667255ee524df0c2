"""The verbs. Each imports what it needs when it runs, so that `halation --help` stays light."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperGroup

import halation
from halation._errors import HalationError, InputError
from halation._progress import Progress
from halation.cli import _explain, _export, _report, _search, _serve
from halation.cli._calibrate import add_verbs as add_calibrate
from halation.cli._console import fail, print_line, progress_bar

__all__ = ["run"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Image-text retrieval where many answers are right: measure, compare, train, search.",
)
data_app = typer.Typer(no_args_is_help=True, help="Look at data before training on it; draw a world of one's own.")
app.add_typer(data_app, name="data")
add_calibrate(app)


class Format(str, Enum):
    """How a table is printed."""

    table = "table"
    markdown = "markdown"
    latex = "latex"
    json = "json"


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors a person can act on are printed in one line."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="halation")
    except HalationError as error:
        fail(error.render(show_argument=partial(_flag, _command(arguments))))
    except BrokenPipeError:  # `halation … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _command(arguments: Sequence[str] | None) -> Any:
    """The verb that these arguments call."""
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:] if arguments is None else arguments:
        if isinstance(command, TyperGroup) and word in command.commands:
            command = command.commands[word]
    return command


def _flag(command: Any, name: str, value: object) -> str | None:
    """An argument of the library as this verb takes it, `--run`; None where the verb does not take it."""
    parameter = next((one for one in command.params if one.name == name), None)
    if parameter is None:
        return None
    if isinstance(parameter, TyperArgument):
        return str(parameter.metavar or name.upper())
    return str(parameter.opts[0]) if value is None or value is True else f"{parameter.opts[0]} {value}"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"halation {halation.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Image-text retrieval where many answers are right: measure, compare, train, search."""


Data = Annotated[Path, typer.Option(help="captions.jsonl, a COCO or Karpathy JSON, or a dataset's folder.")]
Out = Annotated[Path | None, typer.Option(help="Also write the result to this JSON file.")]
Shown = Annotated[Format, typer.Option("--format", help="How to print the result.")]
Seed = Annotated[int, typer.Option(help="Seed of the resampling.")]


@app.command()
def evaluate(
    scores: Annotated[
        Path | None, typer.Argument(help="(images, captions) matrix as .npy, bigger = closer; or a run's folder.")
    ] = None,
    data: Data = Path("captions.jsonl"),
    images: Annotated[Path | None, typer.Option(help="Image embeddings .npy, instead of SCORES (cosine).")] = None,
    captions: Annotated[Path | None, typer.Option(help="Caption embeddings .npy, with --images.")] = None,
    split: Annotated[str | None, typer.Option(help="Which split, where the data has several.")] = None,
    captions_per_image: Annotated[
        int | None, typer.Option(help="Keep the first so many captions of each image (Karpathy's COCO JSON: 5).")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="coco-5k, coco-1k, cxc, eccv, flickr or cub.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help='Only these, e.g. "R@1" or "ASP(cider)"; repeatable.')
    ] = None,
    folds: Annotated[int | None, typer.Option(help="Average over this many sequential folds of images.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Tokenizer for ASP: words, treebank or whitespace.")] = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap draws for the intervals; 0 for none.")] = 1000,
    seed: Seed = 0,
    out: Out = None,
    trec: Annotated[Path | None, typer.Option(help="Also write TREC run and qrels files into this folder.")] = None,
    trec_depth: Annotated[int, typer.Option(help="How many items of each query go into the run files.")] = 1000,
    shown: Shown = Format.table,
) -> None:
    """Measure a score matrix, a trained run or two sets of embeddings with every metric of the field."""
    from halation.data import open_dataset, recognise
    from halation.evaluation import evaluate as measure
    from halation.evaluation import named_protocol

    if (scores is None) == (images is None) or (images is None) != (captions is None):
        raise InputError("give either SCORES.npy or both --images and --captions")
    if trec is not None and scores is None:
        raise InputError("--trec needs SCORES.npy")
    _writable(out)
    if scores is not None and scores.is_dir():
        matrix, truth = _scores_of_run(scores, data, recognise(data).resolve(split), captions_per_image)
    else:
        matrix = None if scores is None else _matrix(scores)
        truth = open_dataset(data, split, captions_per_image=captions_per_image, pictures=False).truth
    truth = truth if protocol is None else named_protocol(protocol).prepare(truth)
    with progress_bar() as progress:
        report = measure(
            matrix,
            truth,
            metric or None,
            folds,
            images=None if images is None else _matrix(images),
            captions=None if captions is None else _matrix(captions),
            protocol=protocol,
            tokenizer=tokenizer,
            resamples=resamples,
            seed=seed,
            progress=progress,
        )
    _show(report, shown)
    if out is not None:
        report.to_json(out)
        print(f"\nreport: {out}   compare with another: halation compare {out} OTHER.json", file=sys.stderr)
    if trec is not None:
        with progress_bar() as progress:
            _write_trec(trec, matrix, truth, trec_depth, progress)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="A report written by `halation evaluate --out`.")],
    b: Annotated[Path, typer.Argument(help="Another, on the same data.")],
    resamples: Annotated[int, typer.Option(help="Draws of the test and of the interval.")] = 5000,
    seed: Seed = 0,
    out: Out = None,
    shown: Shown = Format.table,
) -> None:
    """Is B better than A? Paired randomisation test and interval for every metric."""
    from halation.evaluation import Report
    from halation.evaluation import compare as measure

    _writable(out)
    reports = Report.from_json(a), Report.from_json(b)
    with progress_bar() as progress:
        result = measure(*reports, resamples=resamples, seed=seed, progress=progress)
    if shown is Format.table:
        print(f"A = {a}\nB = {b}\n")
    _show(result, shown)
    if out is not None:
        result.to_json(out)
        print(f"\ncomparison: {out}", file=sys.stderr)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe (TOML); see the folder recipes/.")],
    data: Annotated[Path, typer.Option(help="The data's folder.")],
    out: Annotated[Path, typer.Option(help="A folder for the run.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="section.key=value over the recipe's; repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with a run that was interrupted.")] = False,
) -> None:
    """Train a model as a recipe says; start with torchrun to use several processes."""
    from halation.training import read_recipe, train_recipe
    from halation.training._loop import quiet

    chosen = read_recipe(recipe, overrides or ())
    first = os.environ.get("RANK", "0") == "0"
    with progress_bar(shown=first) as progress:
        place = train_recipe(chosen, data, out, resume=resume, progress=progress, tell=print_line if first else quiet)
    if first:
        best = f"best epoch {place.best_epoch + 1} of {place.epoch}" if place.epoch else "no epochs"
        print(f"\n{out}: {best}, {place.seconds / 60:.1f} minutes\nnext: halation evaluate {out} --data {data}")


@data_app.command()
def check(folder: Annotated[Path, typer.Argument(help="A dataset's folder.")]) -> None:
    """Say what is in a folder of data, and what is missing."""
    from halation.data import check as look

    with progress_bar() as progress:
        findings = look(folder, progress=progress)
    print(findings)
    if not findings.ok:
        raise SystemExit(1)


@data_app.command()
def scenes(
    folder: Annotated[Path, typer.Argument(help="An empty folder for the drawings.")],
    train: Annotated[int, typer.Option(help="Images to train on.")] = 4000,
    dev: Annotated[int, typer.Option(help="Images to validate on.")] = 500,
    test: Annotated[int, typer.Option(help="Images to test on.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the world.")] = 0,
) -> None:
    """Draw a world of shapes in which it is known which caption is true of which picture."""
    from halation.data import draw_scenes

    with progress_bar() as progress:
        draw_scenes(folder, train=train, dev=dev, test=test, seed=seed, progress=progress)
    print(f"drew {train + dev + test:,} pictures into {folder}\nnext: halation data check {folder}")


@app.command()
def features(
    data: Annotated[Path, typer.Argument(help="The data's folder.")],
    backbone: Annotated[str, typer.Option(help="efficientnet_lite0, or the name or folder of a transformers model.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the features; default: DATA/features/BACKBONE.")] = None,
    batch_size: Annotated[int, typer.Option(help="Pictures at a time.")] = 32,
    cells: Annotated[
        int | None,
        typer.Option(help="Dimensions of a cell: principal components of the training split's; default: all."),
    ] = None,
    projection: Annotated[
        Path | None, typer.Option(help="A run: make the cells smaller as those of its features, to evaluate it here.")
    ] = None,
) -> None:
    """Compute a backbone's features of every picture once, to train on them; resumable, and new pictures are added."""
    from halation._files import read_json
    from halation.data import Projection, cache_features
    from halation.encoders import frozen_backbone

    target, network = out or data / "features" / Path(backbone).name, frozen_backbone(backbone)
    kept = projection / Projection.FILE if projection is not None and projection.is_dir() else projection
    terms = None if kept is None else Projection.load(kept)
    with progress_bar() as progress:
        store = cache_features(
            data, network, target, batch_size=batch_size, cells=cells, projection=terms, progress=progress
        )
    about = read_json(target / "meta.json")
    if cells is not None and "variance" in about:
        share = f"{about['variance']:.0%} of their variance kept"
        print(f"cells of {cells} dimensions, fitted on {about['fitted_on']:,} pictures: {share}")
    print(f"{store}\nuse them: halation train RECIPE --data {data} --set data.features={target.resolve()} --out RUN")
    for name in store.corrupt:
        print(f"could not be read: {name}", file=sys.stderr)


@app.command()
def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="A Flickr8k folder; without it, scenes are drawn. Features are computed where it has none."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the drawings and the runs.")] = Path("demo"),
    images: Annotated[
        int | None, typer.Option(help="Scenes to draw for training, 6,000 by default; 600 for a quick look.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="section.key=value over the recipes'; repeatable.")
    ] = None,
) -> None:
    """Train PCME with and without DAA on drawn scenes, and compare them with exact truth: about two minutes."""
    from halation.cli._demo import run_demo

    with progress_bar() as progress:
        text = run_demo(out, data, images, tuple(overrides or ()), progress, print_line)
    print(text)


_report.add_verbs(app)
_search.add_verbs(app)
_explain.add_verbs(app)
_export.add_verbs(app)
_serve.add_verbs(app)


def _scores_of_run(run: Path, data: Path, split: str, captions_per_image: int | None):  # type: ignore[no-untyped-def]
    from halation.encoders import load

    model = load(run)
    dataset = model.open_dataset(data, split)
    if captions_per_image is not None:
        dataset = dataset.first_captions(captions_per_image)
    with progress_bar() as progress:
        return model.scores(dataset, progress=progress), dataset.truth


def _matrix(path: Path):  # type: ignore[no-untyped-def]  # numpy's types would import numpy for --help
    from halation._arrays import as_scores
    from halation._files import read_npy

    return as_scores(read_npy(path), str(path))


def _writable(path: Path | None) -> None:
    """Find out before the work, not after it, that the result cannot be written."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise InputError(f"{path} cannot be written: name a file in an existing folder")


def _show(result, shown: Format) -> None:  # type: ignore[no-untyped-def]
    print(result if shown is Format.table else getattr(result, f"to_{shown.value}")())


def _write_trec(folder: Path, matrix, truth, depth: int, progress: Progress) -> None:  # type: ignore[no-untyped-def]
    from halation.data import write_qrels
    from halation.evaluation import write_run

    folder.mkdir(parents=True, exist_ok=True)
    for direction in ("i2t", "t2i"):
        write_run(folder / f"{direction}.run", matrix, truth, direction, depth=depth, progress=progress)
        write_qrels(truth, folder / f"{direction}.qrels", direction)
        print(f"wrote {folder / direction}.run and .qrels", file=sys.stderr)
