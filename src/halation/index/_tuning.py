"""Tune an approximate backend: the number of lists, and the fewest of them to search for a recall."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from halation._errors import InputError
from halation.index._backend import Keys, Points

__all__ = ["RECALL_AT", "as_recall", "fewest_probes", "n_lists", "overlap"]

RECALL_AT = 10  # recall is measured on the ten nearest
_ROUNDING = 1e-6
_STANDARD_ERRORS = 2.0  # between the recall measured and the recall promised


def overlap(keys: Keys, truth: Keys) -> Points:
    """The share of each row's true keys that are among its keys, (q,).

    >>> overlap(np.array([[1, 2, 3]]), np.array([[3, 4]]))
    array([0.5], dtype=float32)
    """
    hit = (truth[:, :, None] == keys[:, None, :]).any(axis=2) & (truth >= 0)  # (q, k)
    shares: Points = (hit.sum(axis=1) / np.maximum(1, (truth >= 0).sum(axis=1))).astype(np.float32)
    return shares


def as_recall(recall: float) -> float:
    """The recall as a float; an InputError unless it is above 0 and at most 1."""
    if not 0 < recall <= 1:
        raise InputError(f"recall is {recall}; it must be above 0 and at most 1 (0.99: one of a hundred may be missed)")
    return float(recall)


def n_lists(n: int) -> int:
    """The number of lists for n points: the power of two nearest to 4 √n, with at least 39 points per list."""
    return max(1, min(1 << round(math.log2(4 * math.sqrt(max(1, n)))), n // 39))


def fewest_probes(
    search: Callable[[Points, int], Keys], exact: Callable[[Points], Keys], queries: Points, most: int, target: float
) -> dict[str, Any]:
    """The fewest probes (at most `most`) whose recall@10 is `target` or more, and their recall.

    search(points, probes) and exact(points) give keys (q, 10). Probes are tuned on every other query, until the mean
    recall is two standard errors above the target; the recall is measured on the other half.
    """
    tuned_on, held_out = queries[::2], queries[1::2] if len(queries) > 1 else queries
    truth = exact(tuned_on)

    def enough(probes: int) -> bool:
        shares = overlap(search(tuned_on, probes), truth)
        error = float(shares.std()) / math.sqrt(len(shares))
        return float(shares.mean()) - _STANDARD_ERRORS * error >= target - _ROUNDING

    probes = 1
    while probes < most and not enough(probes):
        probes = min(most, 2 * probes)
    low, high = probes // 2, probes  # not enough, enough
    while high - low > max(1, high // 16):  # to the nearest sixteenth
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    truth = exact(held_out)
    recall = float(np.mean(overlap(search(held_out, high), truth)))
    while recall < target - _ROUNDING and high < most:
        high = min(most, high + max(1, high // 4))
        recall = float(np.mean(overlap(search(held_out, high), truth)))
    return {"probes": high, "recall": round(recall, 5), "measured_on": len(held_out)}
