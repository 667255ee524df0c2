"""The numbers behind the figures: precision of the highest-scored pairs, uncertainty, training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.data import Dataset
from halation.evaluation import Queries, bootstrap
from halation.report._facts import Bars, CertaintyExtremes, Histogram, Line, Missing, Training
from halation.training import Run

__all__ = [
    "Blocks",
    "beyond_written",
    "called_and_found",
    "certainty_extremes",
    "class_line",
    "positives_to_find",
    "precision_line",
    "recall_by_sigma",
    "sigma_histograms",
    "training_of",
]

Blocks = Callable[[], Iterable[tuple[int, FloatArray]]]
"""Gives blocks of rows of a (n_images, n_captions) matrix, each with the row it starts at; called more than once."""

_THRESHOLDS = 160
_FEWEST_FOUND = 10  # the precision of fewer pairs is chance
_RESAMPLES = 1000
_BINS = 48
_TRAINING_POINTS = 240
_NOT_A_LOSS = {"step", "epoch", "gradient"}


def positives_to_find(dataset: Dataset) -> tuple[IntArray, bool]:
    """The right (image, caption) pairs, (p, 2), and whether they are pairs that nobody wrote.

    If the truth knows more pairs than annotators wrote, these are the others; otherwise they are the written ones.
    """
    pairs = dataset.truth.pairs("i2t")
    beyond = dataset.image_of[pairs[:, 1]] != pairs[:, 0]
    if beyond.any():
        return pairs[beyond], True
    return pairs, False


def beyond_written(blocks: Blocks, image_of: IntArray) -> Iterable[tuple[int, FloatArray]]:
    """The blocks with −∞ for every caption and the image it was written for, so that these pairs never count."""
    for start, block in blocks():
        rest = np.array(block, np.float64)
        captions = np.flatnonzero((image_of >= start) & (image_of < start + len(block)))
        rest[image_of[captions] - start, captions] = -np.inf
        yield start, rest


def precision_line(name: str, blocks: Blocks, pairs: IntArray, *, run: int = 0) -> Line:
    """The precision of the highest-scored pairs, as the threshold gets lower (Li et al., NeurIPS 2022, appendix B).

    x is how many of `pairs` are found, y the percentage of the pairs above the threshold that they make up.
    """
    called, found = called_and_found(blocks, pairs)
    return Line(name, tuple(found.tolist()), tuple((100 * found / called).tolist()), run)


def called_and_found(blocks: Blocks, pairs: IntArray, points: int = _THRESHOLDS) -> tuple[IntArray, IntArray]:
    """How many pairs are called positive, and how many of `pairs` are among them, at ever lower thresholds.

    The thresholds are scores of the pairs themselves, so no change between two of them is missed and no matrix is
    sorted.
    """
    scores = np.concatenate([_scores_of(start, block, pairs) for start, block in blocks()])
    ascending = np.sort(scores)
    ranks = np.unique(np.geomspace(min(_FEWEST_FOUND, len(scores)), len(scores), points).astype(np.int64))
    thresholds = np.unique(ascending[len(scores) - ranks])  # ascending
    counts = np.zeros(len(thresholds) + 1, np.int64)
    for _, block in blocks():
        counts += np.bincount(np.searchsorted(thresholds, block.ravel(), side="right"), minlength=len(counts))
    called = np.cumsum(counts[:0:-1])  # the highest threshold first
    found = len(scores) - np.searchsorted(ascending, thresholds[::-1], side="left")
    return called, found


def _scores_of(start: int, block: FloatArray, pairs: IntArray) -> FloatArray:
    inside = pairs[(pairs[:, 0] >= start) & (pairs[:, 0] < start + len(block))]
    return block[inside[:, 0] - start, inside[:, 1]]


def class_line(dataset: Dataset, pairs: IntArray, limit: int = 5) -> Line | None:
    """The precision line of class vectors that differ in at most 0, 1, … `limit` classes; None without such vectors."""
    truth = dataset.truth
    if truth.classes is None or truth.annotated is None or truth.kind == "classes":
        return None
    codes = truth.classes[truth.annotated].astype(np.float32)
    size = codes.sum(axis=1)
    differences = np.rint(size[:, None] + size[None, :] - 2 * codes @ codes.T)  # (annotated, annotated)
    row = np.cumsum(truth.annotated) - 1
    captions = np.bincount(dataset.image_of, minlength=len(dataset))[truth.annotated]
    image, written_for = pairs[:, 0], dataset.image_of[pairs[:, 1]]
    both: BoolArray = truth.annotated[image] & truth.annotated[written_for]
    of_pairs = differences[row[image[both]], row[written_for[both]]]
    found = [int((of_pairs <= zeta).sum()) for zeta in range(limit + 1)]
    written = int(captions.sum()) if (image != written_for).all() else 0  # they do not differ: called at every ζ
    called = [int(((differences <= zeta).sum(axis=0) * captions).sum()) - written for zeta in range(limit + 1)]
    points = [(f, 100 * f / c) for f, c in zip(found, called, strict=True) if f]  # a log axis has no 0
    return Line("class vectors", tuple(x for x, _ in points), tuple(y for _, y in points)) if points else None


def recall_by_sigma(name: str, hits: FloatArray, sigma: FloatArray, queries: Queries, *, run: int = 0) -> Bars:
    """The mean of hits (q,) in percent for each fifth of the queries by σ (q,), with intervals over images.

    The fifths are as equal in size as possible; queries of equal σ may be parted.
    """
    fifths = np.array_split(np.argsort(sigma, kind="stable"), min(5, len(sigma)))
    means, low, high = [], [], []
    for rows in fifths:
        draws = 100 * bootstrap(hits[rows, None], queries.subset(rows), _RESAMPLES, seed=0)[:, 0]
        ends = np.nanpercentile(draws, (2.5, 97.5))
        means.append(100 * float(hits[rows].mean()))
        low.append(float(ends[0]))
        high.append(float(ends[1]))
    ranges = tuple((float(sigma[rows].min()), float(sigma[rows].max())) for rows in fifths)
    return Bars(name, ranges, tuple(map(len, fifths)), tuple(means), tuple(low), tuple(high), run)


def sigma_histograms(sigma: Mapping[str, FloatArray], bins: int = _BINS) -> tuple[Histogram, ...]:
    """Histograms of σ over common bins; the outermost half percent is counted in the first and the last bin."""
    together = np.concatenate(list(sigma.values()))
    low, high = np.quantile(together, (0.0025, 0.9975))
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    return tuple(
        Histogram(name, tuple(edges.tolist()), _ints(np.histogram(np.clip(values, low, high), edges)[0]))
        for name, values in sigma.items()
    )


def certainty_extremes(sigma: Mapping[str, FloatArray], count: int = 8) -> tuple[CertaintyExtremes, ...]:
    """The `count` images and captions with the smallest and with the largest σ."""
    kinds: tuple[Literal["images", "captions"], ...] = ("images", "captions")
    orders = [(kind, np.argsort(sigma[kind], kind="stable")) for kind in kinds]
    return tuple(CertaintyExtremes(kind, _ints(order[:count]), _ints(order[::-1][:count])) for kind, order in orders)


def _ints(values: IntArray) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def training_of(run: Run, number: int = 0) -> Training | Missing:
    """Losses by step and validation by epoch, each a line. `number` is 0 for the report's run, 1 for the other."""
    history = run.history()
    if not history:
        return Missing("the run's folder has no metrics.jsonl, the log that training writes")
    losses = _lines(((row["step"], row) for row in history if "step" in row), _NOT_A_LOSS, number)
    epochs = [row for row in history if "dev" in row]
    validation = _lines(((row["epoch"] + 1, row["dev"]) for row in epochs), set(), number)
    kept = [int(row["epoch"]) + 1 for row in epochs if row.get("selected")]
    return Training(losses, validation, kept[-1] if kept else None)


def _lines(rows: Iterable[tuple[int, Mapping[str, Any]]], without: set[str], run: int) -> tuple[Line, ...]:
    """One line per name; values that are not finite (a loss that went to infinity) leave a gap."""
    points: dict[str, list[tuple[float, float]]] = {}
    for x, values in rows:
        for name, value in values.items():
            if name not in without and isinstance(value, (int, float)) and math.isfinite(value):
                points.setdefault(name, []).append((float(x), float(value)))
    thinned = {name: _thinned(line) for name, line in points.items()}
    return tuple(
        Line(name, tuple(x for x, _ in line), tuple(y for _, y in line), run) for name, line in thinned.items()
    )


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most about 240 points, evenly chosen, and the last."""
    step = max(1, len(points) // _TRAINING_POINTS)
    return points[:-1:step] + points[-1:]
