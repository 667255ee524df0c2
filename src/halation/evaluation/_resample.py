"""Statistics of per-query values, with bootstrap draws and randomisation tests over images.

The unit is the image, because the captions of an image are not independent.

A query belongs to a cluster (its image) and to a fold. A statistic is computed within each fold and averaged over
folds, as in "COCO 1K"; without folds there is one fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halation._arrays import FloatArray, IntArray

__all__ = [
    "Queries",
    "bootstrap",
    "bootstrap_median",
    "randomisation_test",
    "randomisation_test_median",
    "statistic",
]

Draws = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Statistic = Callable[[Draws], Draws]
"""From cluster weights (b, clusters) to a statistic of each draw."""

_EQUAL = 1e-9  # differences that differ only by rounding are equal: for a median, most are ties
_CHUNK = 250  # resamples at a time: bounds the weight matrix to a few MB per thousand images


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries of one direction: the item of each, and the image (cluster) and fold it belongs to."""

    items: IntArray  # (q,) index of the image or caption
    clusters: IntArray  # (q,)
    folds: IntArray  # (q,)

    def __len__(self) -> int:
        return len(self.items)

    def subset(self, rows: IntArray) -> Queries:
        """Only these queries, in this order."""
        return Queries(self.items[rows], self.clusters[rows], self.folds[rows])


def statistic(values: FloatArray, queries: Queries, *, median: bool = False) -> float:
    """Mean (or floor of the median: MedR) of the values that are not NaN, within each fold, averaged over folds."""
    per_fold = []
    for fold in np.unique(queries.folds):
        known = values[queries.folds == fold]
        known = known[~np.isnan(known)]
        if len(known):
            per_fold.append(np.floor(np.median(known)) if median else known.mean())
    return float(np.mean(per_fold)) if per_fold else float("nan")


def bootstrap(values: FloatArray, queries: Queries, resamples: int = 1000, seed: int = 0) -> Draws:
    """Means over `resamples` draws of images with replacement, within folds: values (q, m) to (resamples, m).

    The same seed and clusters give the same draws whatever the values, so sums and differences of metrics stay paired.
    """
    return _over_folds(
        queries, resamples, seed, lambda in_fold: _drawn_means(values[in_fold], queries.clusters[in_fold])
    )


def bootstrap_median(ranks: FloatArray, queries: Queries, resamples: int, seed: int) -> Draws:
    """The same draws as `bootstrap`, of the floor of the median of (q,) ranks: (resamples,)."""
    return _over_folds(
        queries, resamples, seed, lambda in_fold: _drawn_medians(ranks[in_fold], queries.clusters[in_fold])
    )


def _over_folds(queries: Queries, resamples: int, seed: int, prepare: Callable[[Mask], Statistic]) -> Draws:
    """The draws within each fold, averaged over folds."""
    folds = []
    for fold in np.unique(queries.folds):
        in_fold = queries.folds == fold
        compute = prepare(in_fold)
        clusters = len(np.unique(queries.clusters[in_fold]))
        folds.append(np.concatenate([compute(w) for w in _weights(clusters, resamples, seed + 7919 * int(fold))]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a draw of queries that were all left out is NaN
        return np.asarray(np.nanmean(np.stack(folds), axis=0))


def _weights(clusters: int, resamples: int, seed: int) -> Iterator[Draws]:
    """How often each cluster is drawn, (chunk, clusters) at a time."""
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - start)
        drawn = generator.integers(clusters, size=(size, clusters))
        drawn += np.arange(size)[:, None] * clusters
        counts = np.bincount(drawn.ravel(), minlength=size * clusters)
        yield counts.reshape(size, clusters).astype(np.float64)


def _drawn_means(values: FloatArray, clusters: IntArray) -> Statistic:
    sums, counts = _by_cluster(values, clusters)  # (clusters, m)

    def compute(weights: Draws) -> Draws:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((weights @ sums) / (weights @ counts))

    return compute


def _by_cluster(values: FloatArray, clusters: IntArray) -> tuple[Draws, Draws]:
    """Sums and counts of the values that are not NaN, cluster by cluster; (clusters, m) each."""
    distinct, cluster = np.unique(clusters, return_inverse=True)
    known = ~np.isnan(values)
    shape = (len(distinct), values.shape[1])
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, cluster, np.where(known, values, 0.0))
    np.add.at(counts, cluster, known)
    return sums, counts


def _drawn_medians(ranks: FloatArray, clusters: IntArray) -> Statistic:
    cluster = np.unique(clusters, return_inverse=True)[1]
    order = np.argsort(ranks, kind="stable")
    order = order[~np.isnan(ranks[order])]
    ascending, cluster = ranks[order], cluster[order]

    def compute(weights: Draws) -> Draws:
        """floor(median) of the multiset in which a rank occurs as often as its cluster was drawn."""
        reached = np.cumsum(weights[:, cluster], axis=1)  # (b, q)
        out = np.full(len(weights), np.nan)
        for b, counted in enumerate(reached):
            if len(counted) and counted[-1] > 0:
                middle = [(counted[-1] - 1) // 2, counted[-1] // 2]
                out[b] = np.floor(ascending[np.searchsorted(counted, middle, side="right")].mean())
        return out

    return compute


def randomisation_test(a: FloatArray, b: FloatArray, queries: Queries, resamples: int, seed: int) -> Draws:
    """Two-sided p-values of the difference of means: for each image, a coin decides whether the systems swap.

    a, b (q, m) to (m,); p = (1 + #{|random difference| >= |observed|}) / (1 + resamples), so it is never 0.
    """
    folds = np.unique(queries.folds)
    distinct, cluster = np.unique(queries.clusters, return_inverse=True)
    shares = np.zeros((len(distinct), a.shape[1]))  # what each cluster adds to the difference of the fold averages
    for fold in folds:
        in_fold = queries.folds == fold
        difference = (a - b)[in_fold]
        known = ~np.isnan(difference)
        np.add.at(
            shares, cluster[in_fold], np.where(known, difference, 0.0) / np.maximum(known.sum(axis=0), 1) / len(folds)
        )
    observed = np.abs(shares.sum(axis=0)) - _EQUAL
    as_extreme = np.zeros(a.shape[1])
    for swap in _coins(len(distinct), resamples, seed):
        as_extreme += (np.abs(np.where(swap, -1.0, 1.0) @ shares) >= observed).sum(axis=0)
    return np.asarray((1 + as_extreme) / (1 + resamples))


def randomisation_test_median(
    a: FloatArray,
    b: FloatArray,
    queries: Queries,
    resamples: int,
    seed: int,
    step: Callable[[int, int], None] | None = None,
) -> float:
    """The p-value of `randomisation_test` for MedR, from (q,) ranks of two systems; `step(done, resamples)` reports."""
    distinct, cluster = np.unique(queries.clusters, return_inverse=True)
    known = ~np.isnan(a + b)
    folds = [np.flatnonzero(known & (queries.folds == fold)) for fold in np.unique(queries.folds[known])]
    ranks = [np.stack([a[fold], b[fold]]) for fold in folds]  # (2, q of the fold)

    def difference(swap: Mask) -> float:
        total = 0.0
        for fold, both in zip(folds, ranks, strict=True):
            swapped = swap[cluster[fold]]
            medians = np.floor(np.median(np.where(swapped, both[::-1], both), axis=1))
            total += medians[0] - medians[1]
        return abs(total) / len(folds)

    observed = difference(np.zeros(len(distinct), np.bool_)) - _EQUAL
    as_extreme = done = 0
    for swaps in _coins(len(distinct), resamples, seed):
        as_extreme += sum(difference(swap) >= observed for swap in swaps)
        done += len(swaps)
        if step is not None:
            step(done, resamples)
    return (1 + as_extreme) / (1 + resamples)


def _coins(clusters: int, resamples: int, seed: int) -> Iterator[Mask]:
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, _CHUNK):
        yield generator.random((min(_CHUNK, resamples - start), clusters)) < 0.5
