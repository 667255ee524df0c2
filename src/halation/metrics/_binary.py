"""Metrics of yes-or-no relevance: best rank, hit rate (the papers' R@K), precision, recall and their averages.

Each has two forms: from scores, and (`…_of`) from the ranks of the relevant items, so that one sort serves them all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._arrays import Array
from halation.metrics._relevant_ranks import RelevantRanks, cutoff, per_query

__all__ = [
    "average_precision",
    "average_precision_of",
    "best_rank",
    "best_rank_of",
    "hit_at",
    "hit_at_of",
    "map_at_r",
    "map_at_r_of",
    "median_rank",
    "precision_at",
    "precision_at_of",
    "r_precision",
    "r_precision_of",
    "recall_at",
    "recall_at_of",
]

Floats = npt.NDArray[np.float64]


def best_rank(scores: Array, relevant: Array) -> npt.NDArray[np.int64]:
    """Rank of the best relevant item of every query, 1 = top.

    Equal scores count against the model: everything irrelevant that scores the same goes first.

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) int64.

    >>> best_rank([[0.9, 0.1, 0.5], [0.5, 0.5, 0.5]], [[False, False, True], [True, False, False]])
    array([2, 3])
    """
    return per_query(scores, relevant, best_rank_of)


def hit_at(scores: Array, relevant: Array, k: int) -> Floats:
    """Whether a relevant item is among the k best (image-text papers call the mean of this R@k).

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) of 0.0 or 1.0.

    >>> hit_at([[0.9, 0.1, 0.5]], [[False, False, True]], k=2)
    array([1.])
    """
    k = cutoff(k)
    return per_query(scores, relevant, lambda positives: hit_at_of(positives, k))


def median_rank(scores: Array, relevant: Array) -> float:
    """Median over all queries of the rank of the best relevant item, rounded down (the papers' MedR).

    Unlike the other metrics it is one number for all queries, because a single query has no median.

    scores (q, n), bigger = closer; relevant (q, n) bool.

    >>> median_rank([[0.9, 0.1], [0.9, 0.1]], [[True, False], [False, True]])
    1.0
    """
    return float(np.floor(np.median(best_rank(scores, relevant))))


def precision_at(scores: Array, relevant: Array, k: int) -> Floats:
    """Share of the k best items that are relevant (of all n items where k > n).

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> precision_at([[0.9, 0.7, 0.5, 0.1]], [[True, False, True, True]], k=2)
    array([0.5])
    """
    k = cutoff(k)
    return per_query(scores, relevant, lambda positives: precision_at_of(positives, k))


def recall_at(scores: Array, relevant: Array, k: int) -> Floats:
    """Share of the relevant items that are among the k best.

    This is recall as in information retrieval. The R@k of image-text papers is `hit_at`.

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> recall_at([[0.9, 0.7, 0.5, 0.1]], [[True, False, False, True]], k=2)
    array([0.5])
    """
    k = cutoff(k)
    return per_query(scores, relevant, lambda positives: recall_at_of(positives, k))


def r_precision(scores: Array, relevant: Array) -> Floats:
    """Precision among the R best, where R is the number of relevant items (precision and recall are equal there).

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> r_precision([[0.9, 0.7, 0.5, 0.1]], [[True, False, True, False]])
    array([0.5])
    """
    return per_query(scores, relevant, r_precision_of)


def average_precision(scores: Array, relevant: Array) -> Floats:
    """Average precision: the mean, over the relevant items, of the precision at each one's rank.

        AP = 1/R Σ_{i relevant} precision@rank(i)

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> average_precision([[0.9, 0.7, 0.5, 0.1]], [[True, False, False, True]])
    array([0.75])
    """
    return per_query(scores, relevant, average_precision_of)


def map_at_r(scores: Array, relevant: Array) -> Floats:
    """Average precision over the R best, where R is the number of relevant items (Musgrave et al., ECCV 2020).

        mAP@R = 1/R Σ_{r ≤ R} precision@r · [the item at rank r is relevant]

    It is stricter than R-Precision: the order within the top R counts. Returns (q,) in 0…1; the m in the name is the
    mean that a report takes over queries.

    scores (q, n), bigger = closer; relevant (q, n) bool. Relevant items go last among equals.

    >>> map_at_r([[0.9, 0.7, 0.5, 0.1]], [[False, True, False, True]])
    array([0.25])
    """
    return per_query(scores, relevant, map_at_r_of)


def best_rank_of(positives: RelevantRanks) -> npt.NDArray[np.int64]:
    """`best_rank` from the ranks of the relevant items."""
    return positives.ranks[positives.starts[:-1]].astype(np.int64)


def hit_at_of(positives: RelevantRanks, k: int) -> Floats:
    """`hit_at` from the ranks of the relevant items."""
    return (best_rank_of(positives) <= k).astype(np.float64)


def precision_at_of(positives: RelevantRanks, k: int) -> Floats:
    """`precision_at` from the ranks of the relevant items."""
    return positives.within(k) / min(k, positives.n)


def recall_at_of(positives: RelevantRanks, k: int) -> Floats:
    """`recall_at` from the ranks of the relevant items."""
    return positives.within(k) / positives.counts


def r_precision_of(positives: RelevantRanks) -> Floats:
    """`r_precision` from the ranks of the relevant items."""
    return positives.within(positives.counts) / positives.counts


def average_precision_of(positives: RelevantRanks) -> Floats:
    """`average_precision` from the ranks of the relevant items."""
    return np.add.reduceat(positives.ordinals / positives.ranks, positives.starts[:-1]) / positives.counts


def map_at_r_of(positives: RelevantRanks) -> Floats:
    """`map_at_r` from the ranks of the relevant items."""
    counted = positives.ranks <= np.repeat(positives.counts, positives.counts)
    precision = np.where(counted, positives.ordinals / positives.ranks, 0.0)
    return np.add.reduceat(precision, positives.starts[:-1]) / positives.counts
