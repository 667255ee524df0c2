"""How well does a number tell yes from no? The area under the ROC curve, and how much is answered at a precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from halation._arrays import Array
from halation._errors import InputError
from halation.calibration._maps import as_pairs

__all__ = ["Coverage", "auroc", "coverage_at_precision"]


class Coverage(NamedTuple):
    """What is answered when everything from `threshold` on is.

    threshold   None where no threshold reaches the precision
    precision   share of the answered that are right to be
    answered    share of all that is answered
    found       share of those that should be answered and are
    """

    threshold: float | None
    precision: float
    answered: float
    found: float


def auroc(values: Array, labels: Array) -> float:
    """Probability that a random yes has a bigger value than a random no, ties counting half (Mann-Whitney).

    >>> auroc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    0.875
    """
    x, y = as_pairs(values, labels, "values")
    yes = int(y.sum())
    above = rankdata(x)[y].sum() - yes * (yes + 1) / 2
    return float(above / (yes * (len(y) - yes)))


def coverage_at_precision(values: Array, labels: Array, precision: float = 0.9) -> Coverage:
    """The lowest threshold from which on at least `precision` of the answered are yes, and what it covers.

    >>> coverage_at_precision([0.9, 0.8, 0.6, 0.4, 0.1], [1, 1, 0, 1, 0], precision=0.75)
    Coverage(threshold=0.4, precision=0.75, answered=0.8, found=1.0)
    """
    if not 0 < precision <= 1:
        raise InputError(f"precision is {precision}; it must be above 0 and at most 1")
    x, y = as_pairs(values, labels, "values")
    order = np.argsort(-x, kind="stable")
    x, right = x[order], np.cumsum(y[order])
    last = np.append(x[1:] != x[:-1], True)  # a threshold takes all equal values or none
    share = right / np.arange(1, len(x) + 1)
    good = np.flatnonzero(last & (share >= precision))
    if not len(good):
        return Coverage(None, float("nan"), 0.0, 0.0)
    place = int(good[-1])
    return Coverage(float(x[place]), float(share[place]), (place + 1) / len(x), float(right[place] / right[-1]))
