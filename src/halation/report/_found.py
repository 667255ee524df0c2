"""How right is what is called positive, as the threshold loosens? (Li et al., NeurIPS 2022, appendix B.)"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.data import Dataset
from halation.report._facts import Line

__all__ = ["beyond_written", "called_and_found", "class_line", "positives_to_find", "precision_line"]

Blocks = Callable[[], Iterable[tuple[int, FloatArray]]]
"""Blocks of rows of a (n_images, n_captions) matrix, each with the row it starts at; called more than once."""

_POINTS = 160
_FIRST = 10  # found: the precision of fewer is chance


def positives_to_find(dataset: Dataset) -> tuple[IntArray, bool]:
    """(image, caption) pairs that are right, (p, 2), and whether they are pairs that nobody wrote.

    That is so where the truth knows more than the annotators wrote; otherwise they are what they wrote.
    """
    pairs = dataset.truth.pairs("i2t")
    beyond = dataset.image_of[pairs[:, 1]] != pairs[:, 0]
    if beyond.any():
        return pairs[beyond], True
    return pairs, False


def beyond_written(blocks: Blocks, image_of: IntArray) -> Iterable[tuple[int, FloatArray]]:
    """The blocks with every caption's own picture out of the count: neither called positive nor found."""
    for start, block in blocks():
        left = np.array(block, np.float64)
        here = np.flatnonzero((image_of >= start) & (image_of < start + len(block)))
        left[image_of[here] - start, here] = -np.inf
        yield start, left


def precision_line(name: str, blocks: Blocks, pairs: IntArray, *, run: int = 0) -> Line:
    """x: how many of the pairs are found, y: the share of all pairs called that they are, in percent."""
    called, found = called_and_found(blocks, pairs)
    return Line(name, tuple(found.tolist()), tuple((100 * found / called).tolist()), run)


def called_and_found(blocks: Blocks, pairs: IntArray, points: int = _POINTS) -> tuple[IntArray, IntArray]:
    """At thresholds that find ever more of the pairs: how many pairs are called positive, how many of them are found.

    The thresholds are values of the pairs themselves, so nothing between two of them is missed and no matrix is sorted.
    """
    values = np.concatenate([_values(start, block, pairs) for start, block in blocks()])
    ascending = np.sort(values)
    ranks = np.unique(np.geomspace(min(_FIRST, len(values)), len(values), points).astype(np.int64))
    thresholds = np.unique(ascending[len(values) - ranks])  # ascending
    counts = np.zeros(len(thresholds) + 1, np.int64)
    for _, block in blocks():
        counts += np.bincount(np.searchsorted(thresholds, block.ravel(), side="right"), minlength=len(counts))
    called = np.cumsum(counts[:0:-1])  # ≥ the highest threshold first
    found = len(values) - np.searchsorted(ascending, thresholds[::-1], side="left")
    return called, found


def class_line(dataset: Dataset, pairs: IntArray, limit: int = 5) -> Line | None:
    """The same for class vectors that differ in at most 0, 1, … `limit` places; None where there is nothing to show."""
    truth = dataset.truth
    if truth.classes is None or truth.annotated is None or truth.kind == "classes":
        return None
    codes = truth.classes[truth.annotated].astype(np.float32)
    size = codes.sum(axis=1)
    apart = np.rint(size[:, None] + size[None, :] - 2 * codes @ codes.T)  # (annotated, annotated)
    place = np.cumsum(truth.annotated) - 1
    captions = np.bincount(dataset.image_of, minlength=len(dataset))[truth.annotated]
    image, owner = pairs[:, 0], dataset.image_of[pairs[:, 1]]
    both: BoolArray = truth.annotated[image] & truth.annotated[owner]
    own = apart[place[image[both]], place[owner[both]]]
    found = [int((own <= zeta).sum()) for zeta in range(limit + 1)]
    written = int(captions.sum()) if (image != owner).all() else 0  # no place apart: called at every ζ
    called = [int(((apart <= zeta).sum(axis=0) * captions).sum()) - written for zeta in range(limit + 1)]
    some = [(f, 100 * f / c) for f, c in zip(found, called, strict=True) if f]  # nothing found has no place on the axis
    return Line("class vectors", tuple(f for f, _ in some), tuple(y for _, y in some)) if some else None


def _values(start: int, block: FloatArray, pairs: IntArray) -> FloatArray:
    here = pairs[(pairs[:, 0] >= start) & (pairs[:, 0] < start + len(block))]
    return block[here[:, 0] - start, here[:, 1]]
