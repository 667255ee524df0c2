"""Statistics of per-query values, and how sure they are: images are resampled, as their captions are not independent.

A query belongs to a cluster (its image) and to a fold. A statistic is computed within each fold and averaged over
folds, which is what "COCO 1K" means; without folds there is one fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halation._arrays import FloatArray, IntArray

__all__ = ["Queries", "bootstrap", "randomised_difference", "statistic"]

_CHUNK = 250  # resamples at a time: bounds the weight matrix to a few MB per thousand images


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries of one direction: which items they are, the image (cluster) and the fold each belongs to."""

    items: IntArray  # (q,) index of the image or caption
    clusters: IntArray  # (q,)
    folds: IntArray  # (q,)

    def __len__(self) -> int:
        return len(self.items)


def statistic(values: FloatArray, queries: Queries, *, median: bool = False) -> float:
    """Mean (or floor of the median: MedR) of the values that are not NaN, within each fold, averaged over folds."""
    per_fold = []
    for fold in np.unique(queries.folds):
        here = values[queries.folds == fold]
        here = here[~np.isnan(here)]
        if len(here):
            per_fold.append(np.floor(np.median(here)) if median else here.mean())
    return float(np.mean(per_fold)) if per_fold else float("nan")


def bootstrap(
    values: FloatArray, queries: Queries, resamples: int, seed: int, *, median: bool = False
) -> npt.NDArray[np.float64]:
    """`statistic` of `resamples` draws of images with replacement, within folds; (resamples,).

    The same seed and clusters give the same draws whatever the metric, so sums and differences of metrics stay paired.
    """
    parts = [
        _bootstrap_fold(values, queries, queries.folds == fold, resamples, seed + 7919 * int(fold), median)
        for fold in np.unique(queries.folds)
    ]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nanmean(np.stack(parts), axis=0))


def _bootstrap_fold(
    values: FloatArray, queries: Queries, here: npt.NDArray[np.bool_], resamples: int, seed: int, median: bool
) -> npt.NDArray[np.float64]:
    clusters, cluster = np.unique(queries.clusters[here], return_inverse=True)
    kept = ~np.isnan(values[here])
    value, cluster = values[here][kept], cluster[kept]
    sums = np.bincount(cluster, value, minlength=len(clusters))
    counts = np.bincount(cluster, minlength=len(clusters)).astype(np.float64)
    order = np.argsort(value, kind="stable")
    drawn = []
    for weights in _weights(len(clusters), resamples, seed):  # (chunk, clusters)
        if median:
            drawn.append(_weighted_floor_median(value[order], weights[:, cluster[order]]))
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn.append((weights @ sums) / (weights @ counts))
    return np.concatenate(drawn)


def _weights(clusters: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.float64]]:
    """How often each cluster is drawn, (chunk, clusters) at a time."""
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - start)
        drawn = generator.integers(clusters, size=(size, clusters))
        drawn += np.arange(size)[:, None] * clusters
        counts = np.bincount(drawn.ravel(), minlength=size * clusters)
        yield counts.reshape(size, clusters).astype(np.float64)


def _weighted_floor_median(ascending: FloatArray, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """floor(median) of the multiset in which `ascending[j]` occurs `weights[b, j]` times, for every b."""
    reached = np.cumsum(weights, axis=1)  # (b, q)
    total = reached[:, -1]
    out = np.full(len(weights), np.nan)
    for b in np.flatnonzero(total > 0):
        lower = np.searchsorted(reached[b], np.floor((total[b] - 1) / 2), side="right")
        upper = np.searchsorted(reached[b], np.floor(total[b] / 2), side="right")
        out[b] = np.floor((ascending[lower] + ascending[upper]) / 2)
    return out


def randomised_difference(
    a: FloatArray, b: FloatArray, queries: Queries, resamples: int, seed: int, *, median: bool = False
) -> float:
    """Two-sided p of `statistic(a) - statistic(b)` when, image by image, it is a coin toss which system is which.

    p = (1 + #{|random difference| >= |observed|}) / (1 + resamples), so it is never 0.
    """
    observed = abs(statistic(a, queries, median=median) - statistic(b, queries, median=median))
    generator = np.random.default_rng(seed)
    clusters, cluster = np.unique(queries.clusters, return_inverse=True)
    as_extreme = 0
    for start in range(0, resamples, _CHUNK):
        swap = generator.random((min(_CHUNK, resamples - start), len(clusters))) < 0.5
        if median:
            drawn = _swapped_medians(a, b, queries, swap[:, cluster])
        else:
            drawn = _swapped_means(a - b, queries, cluster, np.where(swap, -1.0, 1.0))
        as_extreme += int((np.abs(drawn) >= observed * (1 - 1e-12)).sum())
    return (1 + as_extreme) / (1 + resamples)


def _swapped_means(
    difference: FloatArray, queries: Queries, cluster: IntArray, signs: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    kept = ~np.isnan(difference)
    folds = np.unique(queries.folds[kept])
    total = np.zeros(len(signs))
    for fold in folds:
        here = kept & (queries.folds == fold)
        sums = np.bincount(cluster[here], difference[here], minlength=signs.shape[1])
        total += signs @ sums / here.sum()
    return total / len(folds)


def _swapped_medians(
    a: FloatArray, b: FloatArray, queries: Queries, swap: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    out = np.empty(len(swap))
    for row, swapped in enumerate(swap):
        first, second = np.where(swapped, b, a), np.where(swapped, a, b)
        out[row] = statistic(first, queries, median=True) - statistic(second, queries, median=True)
    return out
