"""How many lists to look into: the fewest that reach a stated recall, measured on queries that were held out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from halation._errors import InputError
from halation.index._backend import Keys, Points
from halation.index._nearest import overlap

__all__ = ["AT", "as_recall", "n_lists", "tune"]

AT = 10  # recall is that of the ten best
_ROUNDING = 1e-6
_CAREFUL = 2.0  # standard errors between what is measured and what is promised


def as_recall(recall: float) -> float:
    """A share above 0 and at most 1."""
    if not 0 < recall <= 1:
        raise InputError(f"recall is {recall}; it must be above 0 and at most 1 (0.99: one of a hundred may be missed)")
    return float(recall)


def n_lists(n: int) -> int:
    """How many lists n points are divided into: the power of two nearest to 4 √n, with 39 points for each at least."""
    return max(1, min(1 << round(math.log2(4 * math.sqrt(max(1, n)))), n // 39))


def tune(
    search: Callable[[Points, int], Keys], exact: Callable[[Points], Keys], queries: Points, most: int, target: float
) -> dict[str, Any]:
    """The fewest probes (of `most`) whose recall@10 is `target` or more, and the recall they have.

    search(points, probes) and exact(points) give keys (q, 10). Every other query is tuned on, until even two standard
    errors below the mean recall there is the target; the others measure what came out.
    """
    tuned_on, held_out = queries[::2], queries[1::2] if len(queries) > 1 else queries
    truth = exact(tuned_on)

    def enough(probes: int) -> bool:
        shares = overlap(search(tuned_on, probes), truth)
        error = float(shares.std()) / math.sqrt(len(shares))
        return float(shares.mean()) - _CAREFUL * error >= target - _ROUNDING

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
