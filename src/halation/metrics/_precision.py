"""How many of the first places are right, and how much of what is right is there: precision, recall, R-Precision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._arrays import Array
from halation.metrics._hits import Hits, cutoff, per_query

__all__ = ["precision_at", "precision_at_of", "r_precision", "r_precision_of", "recall_at", "recall_at_of"]

Floats = npt.NDArray[np.float64]


def precision_at(scores: Array, relevant: Array, k: int) -> Floats:
    """Share of the k best items that are relevant (of all n items where k > n).

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> precision_at([[0.9, 0.7, 0.5, 0.1]], [[True, False, True, True]], k=2)
    array([0.5])
    """
    k = cutoff(k)
    return per_query(scores, relevant, lambda hits: precision_at_of(hits, k))


def recall_at(scores: Array, relevant: Array, k: int) -> Floats:
    """Share of the relevant items that are among the k best.

    This is recall in the sense of information retrieval; what image-text papers print as R@k is `hit_at`.

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> recall_at([[0.9, 0.7, 0.5, 0.1]], [[True, False, False, True]], k=2)
    array([0.5])
    """
    k = cutoff(k)
    return per_query(scores, relevant, lambda hits: recall_at_of(hits, k))


def r_precision(scores: Array, relevant: Array) -> Floats:
    """Precision among the R best, R the number of relevant items (there precision and recall are equal).

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> r_precision([[0.9, 0.7, 0.5, 0.1]], [[True, False, True, False]])
    array([0.5])
    """
    return per_query(scores, relevant, r_precision_of)


def precision_at_of(hits: Hits, k: int) -> Floats:
    """`precision_at` from the ranks of the relevant items."""
    return hits.within(k) / min(k, hits.n)


def recall_at_of(hits: Hits, k: int) -> Floats:
    """`recall_at` from the ranks of the relevant items."""
    return hits.within(k) / hits.counts


def r_precision_of(hits: Hits) -> Floats:
    """`r_precision` from the ranks of the relevant items."""
    return hits.within(hits.counts) / hits.counts
