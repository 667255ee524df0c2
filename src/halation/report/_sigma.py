"""Uncertainty: how it is spread, and whether the uncertain are answered worse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from halation._arrays import FloatArray, IntArray
from halation.evaluation import Queries, bootstrap
from halation.report._facts import Bars, Certain, Histogram

__all__ = ["certain", "fifths", "spread"]

_DRAWS = 1000
_BINS = 48


def fifths(name: str, values: FloatArray, sigma: FloatArray, queries: Queries, *, run: int = 0) -> Bars:
    """The mean of values (q,) in percent for each fifth of the queries by σ (q,), with intervals over images.

    As equal as possible in size; equal σ may be parted.
    """
    parts = np.array_split(np.argsort(sigma, kind="stable"), min(5, len(sigma)))
    means, low, high = [], [], []
    for rows in parts:
        draws = 100 * bootstrap(values[rows, None], queries.subset(rows), _DRAWS, seed=0)[:, 0]
        ends = np.nanpercentile(draws, (2.5, 97.5))
        means.append(100 * float(values[rows].mean()))
        low.append(float(ends[0]))
        high.append(float(ends[1]))
    limits = tuple((float(sigma[rows].min()), float(sigma[rows].max())) for rows in parts)
    return Bars(name, limits, tuple(map(len, parts)), tuple(means), tuple(low), tuple(high), run)


def spread(sigma: Mapping[str, FloatArray], bins: int = _BINS) -> tuple[Histogram, ...]:
    """How σ is spread, over common edges; the outermost half percent is counted in the first and the last bin."""
    together = np.concatenate(list(sigma.values()))
    low, high = np.quantile(together, (0.0025, 0.9975))
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    return tuple(
        Histogram(name, tuple(edges.tolist()), _counts(np.clip(values, low, high), edges))
        for name, values in sigma.items()
    )


def certain(sigma: Mapping[str, FloatArray], count: int = 8) -> tuple[Certain, ...]:
    """The `count` items of the smallest and of the largest σ, the most extreme first."""
    found = []
    kinds: tuple[Literal["images", "captions"], ...] = ("images", "captions")
    for kind in kinds:
        order = np.argsort(sigma[kind], kind="stable")
        found.append(Certain(kind, _ints(order[:count]), _ints(order[::-1][:count])))
    return tuple(found)


def _counts(values: FloatArray, edges: FloatArray) -> tuple[int, ...]:
    return _ints(np.histogram(values, edges)[0])


def _ints(values: IntArray) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
