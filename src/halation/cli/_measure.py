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
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Also write the result to this JSON file.")]
TableFormat = Annotated[Format, typer.Option("--format", help="How to print the result.")]
Seed = Annotated[int, typer.Option(help="Seed of the resampling.")]
Scores = Annotated[
    Path | None,
    typer.Argument(metavar="SCORES", help="Scores (images, captions) as .npy, bigger = closer; or a run's folder."),
]
ImageEmbeddings = Annotated[
    Path | None, typer.Option(help="Image embeddings as .npy, instead of SCORES; compared by cosine.")
]
CaptionEmbeddings = Annotated[Path | None, typer.Option(help="Caption embeddings as .npy, with --images.")]
Split = Annotated[str | None, typer.Option(help="The split to measure, if the dataset has several.")]
CaptionsPerImage = Annotated[
    int | None, typer.Option(help="Use only the first N captions of each image (5 for Karpathy's COCO JSON).")
]
Protocol = Annotated[str | None, typer.Option(help="coco-5k, coco-1k, cxc, eccv, flickr or cub.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC", help='Measure only this metric, such as "R@1" or "ASP(cider)"; repeatable.'),
]
Folds = Annotated[int | None, typer.Option(help="Average over this many folds of consecutive images.")]
Tokenizer = Annotated[
    str | None, typer.Option(help="How ASP splits captions into words: words, treebank or whitespace.")
]
Resamples = Annotated[int, typer.Option(help="Bootstrap draws for the confidence intervals; 0 for none.")]
Trec = Annotated[Path | None, typer.Option(help="Also write TREC run and qrels files into this folder.")]
TrecDepth = Annotated[int, typer.Option(help="How many items per query go into the TREC run files.")]


def evaluate(
    scores: Scores = None,
    data: Data = Path("captions.jsonl"),
    images: ImageEmbeddings = None,
    captions: CaptionEmbeddings = None,
    split: Split = None,
    captions_per_image: CaptionsPerImage = None,
    protocol: Protocol = None,
    metric: Metrics = None,
    folds: Folds = None,
    tokenizer: Tokenizer = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    out: Out = None,
    trec: Trec = None,
    trec_depth: TrecDepth = 1000,
    table_format: TableFormat = Format.table,
) -> None:
    """Measure scores, embeddings or a run with every metric of the field."""
    from halation.evaluation import evaluate as evaluate_scores
    from halation.evaluation import named_protocol

    _check_arguments(scores, images, captions, trec)
    _check_writable(out)
    matrix, truth = _scores_and_truth(scores, data, split, captions_per_image)
    if protocol is not None:
        truth = named_protocol(protocol).prepare(truth)  # the TREC files need it too
    with progress_bar() as progress:
        report = evaluate_scores(
            matrix, truth, metric or None, folds, images=_matrix(images), captions=_matrix(captions),
            protocol=protocol, tokenizer=tokenizer, resamples=resamples, seed=seed, progress=progress,
        )  # fmt: skip
    _print(report, table_format)
    if out is not None:
        report.to_json(out)
        print(f"\nwrote {out}\nnext: halation compare {out} OTHER.json", file=sys.stderr)
    if trec is not None:
        with progress_bar() as progress:
            _write_trec(trec, matrix, truth, trec_depth, progress)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A report written by `halation evaluate --out`.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another report, on the same data.")],
    resamples: Annotated[int, typer.Option(help="Random draws for the test and the interval.")] = 5000,
    seed: Seed = 0,
    out: Out = None,
    table_format: TableFormat = Format.table,
) -> None:
    """Test whether report B is better than report A.

    Each metric gets a paired randomisation test and a confidence interval.
    """
    from halation.evaluation import Report
    from halation.evaluation import compare as compare_reports

    _check_writable(out)
    reports = Report.from_json(a), Report.from_json(b)
    with progress_bar() as progress:
        result = compare_reports(*reports, resamples=resamples, seed=seed, progress=progress)
    if table_format is Format.table:
        print(f"A = {a}\nB = {b}\n")
    _print(result, table_format)
    if out is not None:
        result.to_json(out)
        print(f"\nwrote {out}", file=sys.stderr)


def _check_arguments(scores: Path | None, images: Path | None, captions: Path | None, trec: Path | None) -> None:
    if (scores is None) == (images is None) or (images is None) != (captions is None):
        raise InputError("give either SCORES.npy or both --images and --captions")
    if trec is not None and scores is None:
        raise InputError("--trec ranks a score matrix", remedy="give SCORES.npy")


def _scores_and_truth(  # type: ignore[no-untyped-def]  # numpy's types would import numpy for --help
    scores: Path | None, data: Path, split: str | None, captions_per_image: int | None
):
    """The score matrix (None where embeddings are measured), read or computed by a run, and the dataset's truth."""
    from halation.data import open_dataset, recognise

    if scores is not None and scores.is_dir():
        return _scores_of_run(scores, data, recognise(data).resolve(split), captions_per_image)
    matrix = _matrix(scores)
    return matrix, open_dataset(data, split, captions_per_image=captions_per_image, pictures=False).truth


def _scores_of_run(run: Path, data: Path, split: str, captions_per_image: int | None):  # type: ignore[no-untyped-def]
    from halation.encoders import load

    model = load(run)
    dataset = model.open_dataset(data, split)
    if captions_per_image is not None:
        dataset = dataset.first_captions(captions_per_image)
    with progress_bar() as progress:
        return model.scores(dataset, progress=progress), dataset.truth


def _matrix(path: Path | None):  # type: ignore[no-untyped-def]
    from halation._arrays import as_scores
    from halation._files import read_npy

    return None if path is None else as_scores(read_npy(path), str(path))


def _check_writable(path: Path | None) -> None:
    """Raise an `InputError` for a file that cannot be written, before any work is done."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise InputError("cannot be written", path=path, remedy="name a file in an existing folder")


def _print(result, table_format: Format) -> None:  # type: ignore[no-untyped-def]
    print(result if table_format is Format.table else getattr(result, f"to_{table_format.value}")())


def _write_trec(folder: Path, matrix, truth, depth: int, progress: Progress) -> None:  # type: ignore[no-untyped-def]
    from halation.evaluation import write_qrels, write_run

    folder.mkdir(parents=True, exist_ok=True)
    for direction in ("i2t", "t2i"):
        write_run(folder / f"{direction}.run", matrix, truth, direction, depth=depth, progress=progress)
        write_qrels(truth, folder / f"{direction}.qrels", direction)
        print(f"wrote {folder / direction}.run and .qrels", file=sys.stderr)
