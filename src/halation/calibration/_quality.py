"""How good are probabilities? Expected calibration error, Brier score and its skill."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halation._arrays import Array, BoolArray, FloatArray, IntArray, to_numpy
from halation._errors import InputError

__all__ = ["Reliability", "brier", "brier_skill", "ece", "reliability"]


class Reliability(NamedTuple):
    """Bins of equal mass from the least to the most probable: what was said, what was so, how many."""

    said: FloatArray  # (bins,) mean probability
    was: FloatArray  # (bins,) share of matches
    size: IntArray  # (bins,)


def reliability(probabilities: Array, is_match: Array, bins: int = 15) -> Reliability:
    """Predictions in bins of about equal mass. Equal probabilities stay together, whatever order they come in.

    >>> reliability([0.1, 0.1, 0.8, 0.8], [0, 0, 1, 0], bins=2)
    Reliability(said=array([0.1, 0.8]), was=array([0. , 0.5]), size=array([2, 2]))
    """
    p, y = _checked(probabilities, is_match)
    if bins < 1:
        raise InputError(f"bins is {bins}; it must be 1 or more")
    _, level, size = np.unique(p, return_inverse=True, return_counts=True)
    which = _bins(np.cumsum(size), bins)[level]  # (n,)
    count = np.bincount(which)
    return Reliability(np.bincount(which, p) / count, np.bincount(which, y) / count, count)


def _bins(ends: IntArray, bins: int) -> IntArray:
    """The bin of each level of probability, (levels,); `ends` says how many predictions there are up to each.

    A bin takes levels until it has its share of what is left, and no less than its share of the whole.
    """
    total, done, first = int(ends[-1]), 0, [0]
    while done < total:
        share = max(total // bins, (total - done) / max(1, bins - len(first) + 1))
        level = min(int(np.searchsorted(ends, done + share)), len(ends) - 1)
        first.append(level + 1)
        done = int(ends[level])
    if len(first) > 2 and total - ends[first[-2] - 1] < total / bins / 2:  # what many equal ones left over
        del first[-2]
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def ece(probabilities: Array, is_match: Array, bins: int = 15) -> float:
    """Expected calibration error, Σ_b n_b/n · |mean probability − share of matches|, over bins of equal mass.

    Equal mass, since over candidates most probabilities are small: bins of equal width would look at a handful.

    >>> ece([0.1, 0.1, 0.8, 0.8], [0, 0, 1, 0], bins=2)
    0.2
    """
    bins_ = reliability(probabilities, is_match, bins)
    return float((bins_.size * np.abs(bins_.said - bins_.was)).sum() / bins_.size.sum())


def brier(probabilities: Array, is_match: Array) -> float:
    """Brier score, the mean of (p − y)²: 0 is perfect; it rewards both calibration and sharpness. (Brier, 1950.)

    >>> brier([0.5, 1.0], [False, True])
    0.125
    """
    p, y = _checked(probabilities, is_match)
    return float(np.mean((p - y) ** 2))


def brier_skill(probabilities: Array, is_match: Array) -> float:
    """1 − Brier/Brier of the base rate: 1 is perfect, 0 as good as always saying the share of matches, below 0 worse.

    >>> brier_skill([0.25, 0.75], [False, True])
    0.75
    """
    p, y = _checked(probabilities, is_match)
    blind = float(np.var(y))
    if blind == 0:
        raise InputError("all or none of the candidates match: no skill can be measured")
    return 1 - brier(p, y) / blind


def _checked(probabilities: Array, is_match: Array) -> tuple[FloatArray, BoolArray]:
    p, y = to_numpy(probabilities).astype(np.float64), to_numpy(is_match)
    if p.ndim != 1 or p.shape != y.shape or not len(p):
        raise InputError(f"probabilities {p.shape} and matches {y.shape} must be two lists of one length, not empty")
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"probabilities must be in 0…1; they go from {p.min():g} to {p.max():g}")
    return p, y.astype(np.bool_)
