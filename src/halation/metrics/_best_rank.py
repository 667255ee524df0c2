"""How far down the first right answer is: best rank, hit rate (the papers' R@K), median rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._arrays import Array
from halation.metrics._hits import Hits, cutoff, per_query

__all__ = ["best_rank", "best_rank_of", "hit_at", "hit_at_of", "median_rank", "median_rank_of"]


def best_rank(scores: Array, relevant: Array) -> npt.NDArray[np.int64]:
    """Rank of the best relevant item of every query, 1 = top.

    Equal scores count against the model: everything irrelevant that scores the same goes first.

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) int64.

    >>> best_rank([[0.9, 0.1, 0.5], [0.5, 0.5, 0.5]], [[False, False, True], [True, False, False]])
    array([2, 3])
    """
    return per_query(scores, relevant, best_rank_of)


def hit_at(scores: Array, relevant: Array, k: int) -> npt.NDArray[np.float64]:
    """Whether a relevant item is among the k best (image-text papers call the mean of this R@k).

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) of 0.0 or 1.0.

    >>> hit_at([[0.9, 0.1, 0.5]], [[False, False, True]], k=2)
    array([1.])
    """
    k = cutoff(k)
    return per_query(scores, relevant, lambda hits: hit_at_of(hits, k))


def median_rank(scores: Array, relevant: Array) -> float:
    """Median over all queries of the rank of the best relevant item, rounded down (the papers' MedR).

    Unlike the rest of this room it is one number for all queries together: a single query has no median.

    scores (q, n), bigger = closer; relevant (q, n) bool.

    >>> median_rank([[0.9, 0.1], [0.9, 0.1]], [[True, False], [False, True]])
    1.0
    """
    return median_rank_of(best_rank(scores, relevant))


def best_rank_of(hits: Hits) -> npt.NDArray[np.int64]:
    """`best_rank` from the ranks of the relevant items."""
    return hits.ranks[hits.starts[:-1]].astype(np.int64)


def hit_at_of(hits: Hits, k: int) -> npt.NDArray[np.float64]:
    """`hit_at` from the ranks of the relevant items."""
    return (best_rank_of(hits) <= k).astype(np.float64)


def median_rank_of(best: npt.NDArray[np.int64]) -> float:
    """`median_rank` from the best ranks."""
    return float(np.floor(np.median(best)))
