"""For one query both rankings, by score and by meaning, with the ranks that ASP compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.data import Direction
from halation.metrics import rank_ratio
from halation.report._facts import Mark, Placed, Query

__all__ = ["Row", "placed", "query"]


@dataclass(frozen=True, eq=False)
class Row:
    """What one query has of every item: scores, relevance, what is right, what was written for it; (n,) each."""

    scores: FloatArray
    relevance: FloatArray
    right: BoolArray
    own: BoolArray


def query(
    direction: Direction,
    item: int,
    row: Row,
    values: Mapping[str, float],
    *,
    sigma: float | None = None,
    other: FloatArray | None = None,
    depth: int = 10,
) -> Query:
    """The first `depth` items of each ranking; `other` (n,) are the scores of another run."""
    by_meaning = np.argsort(-row.relevance, kind="stable")[:depth]
    theirs = None if other is None else Row(other, row.relevance, row.right, row.own)
    return Query(
        direction,
        item,
        values,
        int(row.right.sum()),
        sigma,
        placed(row, _best(row, depth)),
        placed(row, by_meaning),
        () if theirs is None else placed(theirs, _best(theirs, depth)),
    )


def placed(row: Row, items: IntArray) -> tuple[Placed, ...]:
    """These items with both ranks. Equal values share their ranks, and the ratio is the mean over their orders.

    >>> row = Row(np.array([0.9, 0.1, 0.5]), np.array([0.2, 0.0, 0.0]), np.array([1, 0, 0]) > 0, np.zeros(3, bool))
    >>> [(one.by_score, one.by_meaning, round(one.ratio, 3)) for one in placed(row, np.arange(3))]
    [((1, 1), (1, 1), 1.0), ((3, 3), (2, 3), 0.833), ((2, 2), (2, 3), 0.833)]
    """
    by_score, by_meaning = _ranges(row.scores, items), _ranges(row.relevance, items)
    ratios = rank_ratio(by_score, by_meaning)
    found = []
    for item, score_ranks, meaning_ranks, ratio in zip(items.tolist(), by_score, by_meaning, ratios, strict=True):
        mark: Mark = "own" if row.own[item] else "right" if row.right[item] else ""
        score, relevance = float(row.scores[item]), float(row.relevance[item])
        found.append(Placed(item, score, relevance, score_ranks, meaning_ranks, float(ratio), mark))
    return tuple(found)


def _best(row: Row, depth: int) -> IntArray:
    """Biggest score first, what is right last among equals: as every metric counts."""
    return np.lexsort((row.right, -row.scores))[:depth]


def _ranges(values: FloatArray, items: IntArray) -> list[tuple[int, int]]:
    """First and last rank of each of these items, 1 = the biggest value."""
    ascending = np.sort(values)
    above = len(values) - np.searchsorted(ascending, values[items], side="right")
    last = len(values) - np.searchsorted(ascending, values[items], side="left")
    return [(int(a) + 1, int(b)) for a, b in zip(above, last, strict=True)]
