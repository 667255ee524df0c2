"""`gather_facts`: measure a run on a dataset and collect the `Facts` of its report."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from halation._arrays import FloatArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.data import Dataset, Direction
from halation.encoders import Encoded
from halation.evaluation import DIRECTIONS, compare
from halation.report._facts import Bars, Facts, Gallery, Items, Line, Missing, ReliabilityFacts
from halation.report._figure_data import (
    Blocks,
    beyond_written,
    certainty_extremes,
    class_line,
    positives_to_find,
    precision_line,
    recall_by_sigma,
    sigma_histograms,
)
from halation.report._galleries import asp_histograms, choose_galleries, truth_coverage
from halation.report._measured_run import MeasuredRun, measure_run
from halation.report._rankings import all_rankings
from halation.report._reliability import reliabilities
from halation.semantics import Corpus, Semantics

__all__ = ["gather_facts"]

Folder = str | os.PathLike[str]

_RESAMPLES = 2000
_ROWS = 256  # of a matrix at a time
MOST_QUERIES = 5_000  # the rankings of a query take 2 KB of the page
_NO_SIGMA = Missing(
    "This model has no σ: it embeds items as points, or does not embed them at all. Probabilistic heads have one:",
    'model.head = "pcme"',
)


def gather_facts(
    run: Folder,
    data: Folder,
    *,
    split: str = "test",
    against: Folder | None = None,
    queries: int = 300,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Facts, Dataset]:
    """The facts that a report shows of a run on a split, and the split (for its pictures).

    against    another run to compare with: differences are run − against
    queries    for how many queries both rankings are kept, those of the galleries first; at most 5,000
    """
    if not 0 <= queries <= MOST_QUERIES:
        raise InputError(
            f"queries is {queries:,}; it must be 0 to {MOST_QUERIES:,}: with more, the page is too large to open"
        )
    runs = _measure_runs(run, against, data, split, progress)
    return _facts(runs, queries, seed, progress), runs[0].dataset


def _measure_runs(
    run: Folder, against: Folder | None, data: Folder, split: str, progress: Progress
) -> list[MeasuredRun]:
    """The report's run, and the run to compare with if there is one, measured on the split."""
    folders = [folder for folder in (run, against) if folder is not None]
    return [
        measure_run(title, number, folder, data, split, progress)
        for number, (title, folder) in enumerate(zip(_titles(folders), folders, strict=True))
    ]


def _facts(runs: list[MeasuredRun], queries: int, seed: int, progress: Progress) -> Facts:
    ours, theirs = runs[0], runs[1] if len(runs) > 1 else None
    dataset, truth = ours.dataset, ours.dataset.truth
    corpus = Semantics.fit(dataset.captions, dataset.image_of, "tfidf").corpus()
    galleries = [gallery for direction in DIRECTIONS for gallery in _galleries(ours, theirs, direction)]
    comparison = None
    if theirs is not None:
        comparison = compare(theirs.report, ours.report, resamples=_RESAMPLES, seed=seed, progress=progress)
    precision, precision_note = _precision(runs, corpus)
    return Facts(
        data=dataset.name,
        runs=tuple(one.facts() for one in runs),
        items=Items(tuple(map(str, truth.image_ids)), dataset.captions, tuple(dataset.image_of.tolist())),
        report=ours.report,
        other=None if theirs is None else theirs.report,
        comparison=comparison,
        recall={direction: _recall(runs, direction) for direction in DIRECTIONS},
        precision=precision,
        precision_note=precision_note,
        reliability=_reliabilities(ours, seed, progress),
        recall_by_sigma=_recall_by_sigma(runs) if ours.sigma else _NO_SIGMA,
        sigma_histograms=sigma_histograms(ours.sigma) if ours.sigma else _NO_SIGMA,
        asp_histograms={direction: asp_histograms(ours.report.per_query[direction]) for direction in DIRECTIONS},
        galleries=tuple(galleries),
        certainty=certainty_extremes(ours.sigma) if ours.sigma else (),
        queries=all_rankings(runs, corpus, galleries, queries, seed, progress),
        sigma=ours.sigma,
        right_counts={"images": truth.n_positives("i2t"), "captions": truth.n_positives("t2i")},
        coverage=truth_coverage(dataset),
        map=ours.map(seed=seed, progress=progress),
        notes=tuple(ours.report.notes()),
    )


def _reliabilities(ours: MeasuredRun, seed: int, progress: Progress) -> dict[Direction, ReliabilityFacts | Missing]:
    queries: dict[Direction, Encoded] = {"i2t": ours.images, "t2i": ours.captions}
    return reliabilities(ours.model, ours.dataset, ours.scores, queries, seed=seed, progress=progress)


def _titles(folders: list[Folder]) -> list[str]:
    """The names of the folders; with the names of their parents, if two are the same."""
    paths = [Path(folder).resolve() for folder in folders]
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [f"{path.parent.name}/{path.name}" for path in paths]


def _galleries(ours: MeasuredRun, theirs: MeasuredRun | None, direction: Direction) -> list[Gallery]:
    other = None if theirs is None else theirs.report.per_query[direction]
    items, columns = ours.report.queries[direction].items, ours.report.per_query[direction]
    texts = [ours.dataset.captions[item] for item in items] if direction == "t2i" else None
    return choose_galleries(direction, items, columns, other, coverage=truth_coverage(ours.dataset), texts=texts)


def _recall(runs: list[MeasuredRun], direction: Direction) -> tuple[Line, ...]:
    """R@K over K, from the rank of the first right answer, which is in the column of MedR."""
    lines = []
    for run in runs:
        ranks = run.report.per_query[direction]["MedR"]
        gallery = max(run.report.about["gallery"][direction])
        ks = np.unique(np.geomspace(1, min(gallery, 1000), 48).round().astype(int))
        shares = 100 * (ranks[:, None] <= ks).mean(axis=0)
        lines.append(Line(run.title, tuple(map(float, ks)), tuple(shares.tolist()), run.number))
    return tuple(lines)


def _precision(runs: list[MeasuredRun], corpus: Corpus) -> tuple[tuple[Line, ...], str]:
    """The precision lines of the runs, of tf-idf and of class vectors, and a note on which pairs are right."""
    dataset = runs[0].dataset
    pairs, unwritten = positives_to_find(dataset)

    def counted(blocks: Blocks) -> Blocks:
        return partial(beyond_written, blocks, dataset.image_of) if unwritten else blocks

    lines = [precision_line(run.title, counted(partial(_blocks, run.scores)), pairs, run=run.number) for run in runs]
    note = f"The {len(pairs):,} pairs that annotators wrote are right."
    if unwritten:
        note = (
            f"{len(pairs):,} pairs are right: they match although the caption was not written for that image. Pairs "
            "that were written are not counted."
        )
        # only here: among the pairs that were written, tf-idf would compare a caption with itself
        semantics = precision_line("caption semantics (tf-idf)", counted(partial(_relevance_blocks, corpus)), pairs)
        lines.append(Line(semantics.name, semantics.x, semantics.y, 2))
    classes = class_line(dataset, pairs)
    if classes is not None:
        lines.append(Line(classes.name, classes.x, classes.y, 3))
    return tuple(lines), note


def _blocks(matrix: FloatArray) -> Iterable[tuple[int, FloatArray]]:
    for start in range(0, len(matrix), _ROWS):
        yield start, matrix[start : start + _ROWS]


def _relevance_blocks(corpus: Corpus) -> Iterable[tuple[int, FloatArray]]:
    for start in range(0, corpus.n_images, _ROWS):
        yield start, corpus.rows(start, min(start + _ROWS, corpus.n_images))


def _recall_by_sigma(runs: list[MeasuredRun]) -> dict[Direction, tuple[Bars, ...]]:
    bars: dict[Direction, tuple[Bars, ...]] = {}
    for direction in DIRECTIONS:
        kind, of_runs = ("images" if direction == "i2t" else "captions"), []
        for run in runs:
            if run.sigma:
                queries, hits = run.report.queries[direction], run.report.per_query[direction]["R@1"]
                sigma = run.sigma[kind][queries.items]
                of_runs.append(recall_by_sigma(run.title, hits, sigma, queries, run=run.number))
        bars[direction] = tuple(of_runs)
    return bars
