"""Precision averaged over the places of what is relevant: AP over the whole ranking, mAP@R over its top R."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._arrays import Array
from halation.metrics._hits import Hits, per_query

__all__ = ["average_precision", "average_precision_of", "map_at_r", "map_at_r_of"]

Floats = npt.NDArray[np.float64]


def average_precision(scores: Array, relevant: Array) -> Floats:
    """Average precision: the mean, over the relevant items, of the precision at each one's rank.

        AP = 1/R Σ_{i relevant} precision@rank(i)

    scores (q, n), bigger = closer; relevant (q, n) bool. Returns (q,) in 0…1. Relevant items go last among equals.

    >>> average_precision([[0.9, 0.7, 0.5, 0.1]], [[True, False, False, True]])
    array([0.75])
    """
    return per_query(scores, relevant, average_precision_of)


def map_at_r(scores: Array, relevant: Array) -> Floats:
    """Average precision over the R best, R the number of relevant items (Musgrave et al., ECCV 2020).

        mAP@R = 1/R Σ_{r ≤ R} precision@r · [the item at rank r is relevant]

    Stricter than R-Precision: the order within the top R counts. One value per query, (q,) in 0…1; the m of the name
    is the mean that a report takes over queries.

    scores (q, n), bigger = closer; relevant (q, n) bool. Relevant items go last among equals.

    >>> map_at_r([[0.9, 0.7, 0.5, 0.1]], [[False, True, False, True]])
    array([0.25])
    """
    return per_query(scores, relevant, map_at_r_of)


def average_precision_of(hits: Hits) -> Floats:
    """`average_precision` from the ranks of the relevant items."""
    return np.add.reduceat(hits.ordinals / hits.ranks, hits.starts[:-1]) / hits.counts


def map_at_r_of(hits: Hits) -> Floats:
    """`map_at_r` from the ranks of the relevant items."""
    counted = hits.ranks <= np.repeat(hits.counts, hits.counts)
    return np.add.reduceat(np.where(counted, hits.ordinals / hits.ranks, 0.0), hits.starts[:-1]) / hits.counts
