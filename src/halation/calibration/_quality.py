"""How good are probabilities? Calibration error, Brier score, ROC area, coverage at a precision, and a plot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from halation._arrays import Array, BoolArray, FloatArray, IntArray, to_numpy
from halation._errors import InputError
from halation._storage import publish_file
from halation.calibration._maps import as_pairs

__all__ = [
    "Coverage",
    "Panel",
    "Reliability",
    "auroc",
    "brier",
    "brier_skill",
    "coverage_at_precision",
    "ece",
    "reliability",
    "reliability_plot",
]

Panel = tuple[str, Sequence[tuple[str, FloatArray, FloatArray | BoolArray]]]
"""A title, and (name, probabilities, matches) of each line; matches are true or false, or shares."""

_COLOURS = ("#b04a4a", "#2f6f9f", "#5a8f4e", "#8a6bb0")


class Reliability(NamedTuple):
    """Bins of about equal size, from the lowest to the highest probability."""

    predicted: FloatArray  # (bins,) mean probability
    observed: FloatArray  # (bins,) share of matches
    size: IntArray  # (bins,) number of predictions


def reliability(probabilities: Array, is_match: Array, bins: int = 15) -> Reliability:
    """Predicted and observed match rates in bins of about equal size. Equal probabilities stay in one bin.

    is_match   (n,) true or false, or the share of people who say yes

    >>> reliability([0.1, 0.1, 0.8, 0.8], [0, 0, 1, 0], bins=2)
    Reliability(predicted=array([0.1, 0.8]), observed=array([0. , 0.5]), size=array([2, 2]))
    """
    p, y = _checked(probabilities, is_match)
    if bins < 1:
        raise InputError(f"bins is {bins}; it must be 1 or more")
    _, level, size = np.unique(p, return_inverse=True, return_counts=True)
    which = _bins(np.cumsum(size), bins)[level]  # (n,)
    count = np.bincount(which)
    return Reliability(np.bincount(which, p) / count, np.bincount(which, y) / count, count)


def _bins(ends: IntArray, bins: int) -> IntArray:
    """The bin of each level of probability, (levels,); `ends` counts the predictions up to each level.

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
    """Expected calibration error, Σ_b n_b/n · |mean probability − share of matches|, over bins of equal size.

    Equal size, because most candidates have small probabilities: bins of equal width would measure a handful.

    >>> ece([0.1, 0.1, 0.8, 0.8], [0, 0, 1, 0], bins=2)
    0.2
    """
    curve = reliability(probabilities, is_match, bins)
    return float((curve.size * np.abs(curve.predicted - curve.observed)).sum() / curve.size.sum())


def brier(probabilities: Array, is_match: Array) -> float:
    """Brier score, the mean of (p − y)²: 0 is perfect; it rewards both calibration and sharpness. (Brier, 1950.)

    >>> brier([0.5, 1.0], [False, True])
    0.125
    """
    p, y = _checked(probabilities, is_match)
    return float(np.mean((p - y) ** 2))


def brier_skill(probabilities: Array, is_match: Array) -> float:
    """1 − Brier/Brier of the base rate: 1 is perfect, 0 is as good as always predicting the base rate.

    >>> brier_skill([0.25, 0.75], [False, True])
    0.75
    """
    p, y = _checked(probabilities, is_match)
    base = float(np.var(y))
    if base == 0:
        raise InputError("all or none of the candidates match, so no skill can be measured")
    return 1 - brier(p, y) / base


class Coverage(NamedTuple):
    """What is answered when everything from `threshold` on is.

    threshold   None where no threshold reaches the precision
    precision   share of the answered that are right to be
    answered    share of all that is answered
    recall      share of those that should be answered and are
    """

    threshold: float | None
    precision: float
    answered: float
    recall: float


def auroc(values: Array, labels: Array) -> float:
    """The probability that a random yes has a bigger value than a random no, ties counting half (Mann-Whitney).

    >>> auroc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    0.875
    """
    x, y = as_pairs(values, labels, "values")
    yes = int(y.sum())
    above = rankdata(x)[y].sum() - yes * (yes + 1) / 2
    return float(above / (yes * (len(y) - yes)))


def coverage_at_precision(values: Array, labels: Array, precision: float = 0.9) -> Coverage:
    """The lowest threshold at which at least `precision` of the answered are yes, and what it covers.

    >>> coverage_at_precision([0.9, 0.8, 0.6, 0.4, 0.1], [1, 1, 0, 1, 0], precision=0.75)
    Coverage(threshold=0.4, precision=0.75, answered=0.8, recall=1.0)
    """
    if not 0 < precision <= 1:
        raise InputError(f"precision is {precision}; it must be above 0 and at most 1")
    x, y = as_pairs(values, labels, "values")
    order = np.argsort(-x, kind="stable")
    x, right = x[order], np.cumsum(y[order])
    last = np.append(x[1:] != x[:-1], True)  # a threshold takes all equal values or none
    share = right / np.arange(1, len(x) + 1)
    precise = np.flatnonzero(last & (share >= precision))
    if not len(precise):
        return Coverage(None, float("nan"), 0.0, 0.0)
    end = int(precise[-1])
    return Coverage(float(x[end]), float(share[end]), (end + 1) / len(x), float(right[end] / right[-1]))


def reliability_plot(panels: Sequence[Panel], path: str | os.PathLike[str], bins: int = 15) -> None:
    """Write a PNG with a reliability diagram per panel; a calibrated model is on the diagonal.

    Below each diagram is a histogram of the probabilities. Axes end where the probabilities of the panel end, because
    most candidates have small ones.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(panels), 5.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, len(panels), squeeze=False, height_ratios=[4, 1])
    for column, (title, lines) in enumerate(panels):
        axes, below = grid[0, column], grid[1, column]
        curves = [(name, reliability(p, y, bins), ece(p, y, bins), p) for name, p, y in lines]
        highest = max(float(max(curve.predicted.max(), curve.observed.max())) for _, curve, _, _ in curves)
        end = min(1.0, 1.08 * highest)
        axes.plot([0, end], [0, end], color="0.6", linewidth=1, linestyle="--")
        edges = np.linspace(0, end, 31)
        for colour, (name, curve, error, p) in zip(_COLOURS, curves, strict=False):
            label = f"{name}, ECE {error:.3f}"
            axes.plot(curve.predicted, curve.observed, "o-", color=colour, markersize=4, label=label)
            share, _ = np.histogram(np.minimum(p, end), edges)
            below.stairs(share / len(p), edges, color=colour, linewidth=1.4)
        axes.set(title=title, xlim=(0, end), ylim=(0, end), ylabel="share that matched" if not column else None)
        axes.legend(frameon=False, loc="upper left", fontsize=9)
        below.set(xlim=(0, end), xlabel="predicted probability", yscale="log")
        below.set_ylabel("candidates" if not column else "")
        for part in (axes, below):
            part.grid(alpha=0.25)
    with publish_file(path) as temporary:
        figure.savefig(temporary, format="png")


def _checked(probabilities: Array, is_match: Array) -> tuple[FloatArray, FloatArray]:
    """Probabilities, and for each a yes or no or the share of people who say yes."""
    p, y = to_numpy(probabilities).astype(np.float64), to_numpy(is_match).astype(np.float64)
    if p.ndim != 1 or p.shape != y.shape or not len(p):
        raise InputError(f"probabilities {p.shape} and matches {y.shape} must be two lists of one length, not empty")
    for name, values in (("probabilities", p), ("matches", y)):
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError(f"{name} must be in 0…1; they go from {values.min():g} to {values.max():g}")
    return p, y
