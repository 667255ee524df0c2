"""Both rankings of one query, by score and by relevance, with the ranks that ASP compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.data import Direction
from halation.metrics import rank_ratio
from halation.report._facts import Mark, Query, RankedItem

__all__ = ["Row", "query_rankings", "ranked_items"]


@dataclass(frozen=True, eq=False)
class Row:
    """One query against every item, (n,) each: scores, relevance, which items are right, which were written for it."""

    scores: FloatArray
    relevance: FloatArray
    right: BoolArray
    written: BoolArray


def query_rankings(
    direction: Direction,
    item: int,
    row: Row,
    values: Mapping[str, float],
    *,
    sigma: float | None = None,
    other_scores: FloatArray | None = None,
    depth: int = 10,
) -> Query:
    """A query with the first `depth` items of each ranking; other_scores (n,) are those of another run."""
    by_relevance = np.argsort(-row.relevance, kind="stable")[:depth]
    other = None if other_scores is None else Row(other_scores, row.relevance, row.right, row.written)
    return Query(
        direction,
        item,
        values,
        int(row.right.sum()),
        sigma,
        ranked_items(row, _best(row, depth)),
        ranked_items(row, by_relevance),
        () if other is None else ranked_items(other, _best(other, depth)),
    )


def ranked_items(row: Row, items: IntArray) -> tuple[RankedItem, ...]:
    """These items with both ranks. Ties share their ranks, and the ratio is the mean over all orders of ties.

    >>> row = Row(np.array([0.9, 0.1, 0.5]), np.array([0.2, 0.0, 0.0]), np.array([1, 0, 0]) > 0, np.zeros(3, bool))
    >>> [(i.score_ranks, i.relevance_ranks, round(i.ratio, 3)) for i in ranked_items(row, np.arange(3))]
    [((1, 1), (1, 1), 1.0), ((3, 3), (2, 3), 0.833), ((2, 2), (2, 3), 0.833)]
    """
    score_ranks, relevance_ranks = _ranges(row.scores, items), _ranges(row.relevance, items)
    ratios = rank_ratio(score_ranks, relevance_ranks)
    ranked = []
    for item, by_score, by_relevance, ratio in zip(items.tolist(), score_ranks, relevance_ranks, ratios, strict=True):
        mark: Mark = "written" if row.written[item] else "right" if row.right[item] else ""
        score, relevance = float(row.scores[item]), float(row.relevance[item])
        ranked.append(RankedItem(item, score, relevance, by_score, by_relevance, float(ratio), mark))
    return tuple(ranked)


def _best(row: Row, depth: int) -> IntArray:
    """The items with the biggest scores; among ties, right items come last, as in every metric."""
    return np.lexsort((row.right, -row.scores))[:depth]


def _ranges(values: FloatArray, items: IntArray) -> list[tuple[int, int]]:
    """The first and last rank of each of these items, 1 = the biggest value."""
    ascending = np.sort(values)
    above = len(values) - np.searchsorted(ascending, values[items], side="right")
    last = len(values) - np.searchsorted(ascending, values[items], side="left")
    return [(int(a) + 1, int(b)) for a, b in zip(above, last, strict=True)]
