"""The verbs that measure: evaluate, compare."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from halation._errors import InputError
from halation._progress import Progress
from halation.cli._console import progress_bar

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of this file to the command line."""
    for verb in (evaluate, compare):
        app.command(rich_help_panel="Measure")(verb)


class Format(str, Enum):
    """How a table is printed."""

    table = "table"
    markdown = "markdown"
    latex = "latex"
    json = "json"


Data = Annotated[Path, typer.Option(help="The dataset: its folder, a captions.jsonl, or a COCO or Karpathy JSON.")]
Out = Annotated[Path | None, typer.Option(help="Also write the result to this JSON file.")]
TableFormat = Annotated[Format, typer.Option("--format", help="How to print the result.")]
Seed = Annotated[int, typer.Option(help="Seed of the resampling.")]


def evaluate(
    scores: Annotated[
        Path | None, typer.Argument(help="Scores (images, captions) as .npy, bigger = closer; or a run's folder.")
    ] = None,
    data: Data = Path("captions.jsonl"),
    images: Annotated[
        Path | None, typer.Option(help="Image embeddings as .npy, instead of SCORES; compared by cosine.")
    ] = None,
    captions: Annotated[Path | None, typer.Option(help="Caption embeddings as .npy, with --images.")] = None,
    split: Annotated[str | None, typer.Option(help="Which split, if the dataset has several.")] = None,
    captions_per_image: Annotated[
        int | None, typer.Option(help="Use only the first N captions of each image (5 for Karpathy's COCO JSON).")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="coco-5k, coco-1k, cxc, eccv, flickr or cub.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help='Only this metric, as "R@1" or "ASP(cider)"; repeatable.')
    ] = None,
    folds: Annotated[int | None, typer.Option(help="Average over this many folds of consecutive images.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Tokenizer of the captions for ASP: words, treebank or whitespace.")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap draws for the confidence intervals; 0 for none.")] = 1000,
    seed: Seed = 0,
    out: Out = None,
    trec: Annotated[Path | None, typer.Option(help="Also write TREC run and qrels files into this folder.")] = None,
    trec_depth: Annotated[int, typer.Option(help="How many items of each query go into the TREC run files.")] = 1000,
    table_format: TableFormat = Format.table,
) -> None:
    """Measure scores, a run or embeddings with every metric of the field."""
    from halation.data import open_dataset, recognise
    from halation.evaluation import evaluate as measure
    from halation.evaluation import named_protocol

    if (scores is None) == (images is None) or (images is None) != (captions is None):
        raise InputError("give either SCORES.npy or both --images and --captions")
    if trec is not None and scores is None:
        raise InputError("--trec ranks a score matrix; give SCORES.npy")
    _check_writable(out)
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
    _print(report, table_format)
    if out is not None:
        report.to_json(out)
        print(f"\nwrote {out}\nnext: halation compare {out} OTHER.json", file=sys.stderr)
    if trec is not None:
        with progress_bar() as progress:
            _write_trec(trec, matrix, truth, trec_depth, progress)


def compare(
    a: Annotated[Path, typer.Argument(help="A report written by `halation evaluate --out`.")],
    b: Annotated[Path, typer.Argument(help="Another report, on the same data.")],
    resamples: Annotated[int, typer.Option(help="Draws for the test and the interval.")] = 5000,
    seed: Seed = 0,
    out: Out = None,
    table_format: TableFormat = Format.table,
) -> None:
    """Test whether report B is better than report A.

    A paired randomisation test and a confidence interval for every metric.
    """
    from halation.evaluation import Report
    from halation.evaluation import compare as measure

    _check_writable(out)
    reports = Report.from_json(a), Report.from_json(b)
    with progress_bar() as progress:
        result = measure(*reports, resamples=resamples, seed=seed, progress=progress)
    if table_format is Format.table:
        print(f"A = {a}\nB = {b}\n")
    _print(result, table_format)
    if out is not None:
        result.to_json(out)
        print(f"\nwrote {out}", file=sys.stderr)


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


def _check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise InputError("cannot be written; name a file in an existing folder", path=path)


def _print(result, table_format: Format) -> None:  # type: ignore[no-untyped-def]
    print(result if table_format is Format.table else getattr(result, f"to_{table_format.value}")())


def _write_trec(folder: Path, matrix, truth, depth: int, progress: Progress) -> None:  # type: ignore[no-untyped-def]
    from halation.evaluation import write_qrels, write_run

    folder.mkdir(parents=True, exist_ok=True)
    for direction in ("i2t", "t2i"):
        write_run(folder / f"{direction}.run", matrix, truth, direction, depth=depth, progress=progress)
        write_qrels(truth, folder / f"{direction}.qrels", direction)
        print(f"wrote {folder / direction}.run and .qrels", file=sys.stderr)
