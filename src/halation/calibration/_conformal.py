"""`Conformal`: for each query the set of items that holds a match with a stated probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from halation._arrays import Array, FloatArray, IntArray, to_numpy
from halation._errors import InputError
from halation.calibration._judged_scores import JudgedScores

__all__ = ["Conformal", "Nonconformity", "weighted_quantile"]

_BEST_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_CLIP = 3.0  # standard deviations of ln σ beyond which a set grows no more


@dataclass(frozen=True)
class Nonconformity:
    """How badly an item fits a query: best_weight · best − score − slope · x.

    best    the query's best score
    x       ln σ of the query, standardised and cut at ±3; with slope > 0 uncertain queries get larger sets

    Fit it on other images than the quantile of `Conformal`, so that the sets keep their guarantee.
    """

    best_weight: float = 1.0
    slope: float = 0.0
    centre: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, judged: JudgedScores, alpha: float = 0.1) -> Nonconformity:
        """The weight that gives the smallest sets, each with the slope that makes coverage equal for every σ.

        The slope is that of a linear quantile regression of the matches' nonconformity on x at the level 1 − α.
        """
        centre, scale, x = 0.0, 1.0, np.zeros(len(judged))
        if judged.uncertainty is not None and (judged.uncertainty > 0).all():
            logs = np.log(judged.uncertainty.astype(np.float64))
            centre, scale = float(logs.mean()), float(logs.std())
            x = np.clip((logs - centre) / scale, -_CLIP, _CLIP) if scale > 0 else x
        best = judged.scores.max(axis=1).astype(np.float64)
        query, item = np.nonzero(judged.matches)
        weights = match_weights(judged)[query]
        fitted: list[tuple[float, Nonconformity]] = []
        for best_weight in _BEST_WEIGHTS:
            misfit = best_weight * best[query] - judged.scores[query, item]
            slope = _slope(x[query], misfit, weights, 1 - alpha) if x.any() else 0.0
            quantile = weighted_quantile(misfit - slope * x[query], weights, (1 - alpha) * weights.sum())
            size = np.mean(judged.scores >= (best_weight * best - slope * x - quantile)[:, None])
            fitted.append((float(size), cls(best_weight, slope, centre, scale if scale > 0 else 1.0)))
        return min(fitted, key=lambda pair: pair[0])[1]

    def offset(self, best: FloatArray, uncertainty: FloatArray | None) -> FloatArray:
        """best_weight · best − slope · x of each query, (q,): nonconformity is this minus the item's score."""
        values = self.best_weight * np.asarray(best, dtype=np.float64)
        if self.slope == 0:
            return values
        if uncertainty is None or not (np.asarray(uncertainty) > 0).all():
            raise InputError("these sets were fitted with the query's uncertainty; pass uncertainty=")
        x = (np.log(np.asarray(uncertainty, dtype=np.float64)) - self.centre) / self.scale
        return np.asarray(values - self.slope * np.clip(x, -_CLIP, _CLIP))


@dataclass(frozen=True)
class Conformal:
    """Sets that hold a match with probability 1 − α: items whose score ≥ best_weight · best − slope · x − quantile.

    "A match" is one drawn at random from the query's matches; the set then holds at least one with at least that
    probability. The probability is over queries drawn as those of the fit were, with such a gallery (marginal
    coverage), not for every single query. `quantile` is the finite-sample quantile of the matches' nonconformity in
    which every image counts equally, its queries equally within it and their matches equally within them, and one more
    image, the unseen one, counts as infinitely bad: ⌈(K + 1)(1 − α)⌉ of K where each image has one query with one
    match. (Split conformal prediction; by groups as Lee, Barber and Willett, 2023.)

    >>> image = np.arange(4)
    >>> judged = JudgedScores(np.eye(4) + 0.1, np.eye(4, dtype=bool), image, image)
    >>> conformal = Conformal.fit(judged, Nonconformity(), alpha=0.2)
    >>> conformal.prediction_set([0.3, 0.9, 0.1]).tolist()
    [1]
    """

    nonconformity: Nonconformity
    alpha: float
    quantile: float
    images: int
    gallery: int

    @classmethod
    def fit(cls, judged: JudgedScores, nonconformity: Nonconformity, alpha: float = 0.1) -> Conformal:
        """The sets for this nonconformity, from images that it was not fitted on."""
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha}; it must be above 0 and below 1")
        query, item = np.nonzero(judged.matches)
        offset = nonconformity.offset(judged.scores.max(axis=1), judged.uncertainty)
        misfit = offset[query] - judged.scores[query, item]
        groups = len(judged.images)
        weights = match_weights(judged)[query] / (groups + 1)
        quantile = weighted_quantile(misfit, weights, 1 - alpha)
        return cls(nonconformity, alpha, quantile, groups, judged.gallery)

    def bounds(self, best: Array, uncertainty: Array | None = None) -> FloatArray:
        """The lowest score inside the set, for each query's best score (q,); −inf: every item is inside."""
        sigma = None if uncertainty is None else to_numpy(uncertainty)
        offset = self.nonconformity.offset(to_numpy(best), sigma)
        return offset - self.quantile - 1e-12 * (1 + np.abs(offset))  # the match that set the quantile is inside

    def prediction_set(self, scores: Array, uncertainty: float | None = None) -> IntArray:
        """The items of one query's set, best first, from its scores (n,): all of the gallery's, or the best of them.

        Where all the scores you pass are inside, the rest of the gallery may hold more.
        """
        values = to_numpy(scores).astype(np.float64)
        if values.ndim != 1 or not len(values):
            raise InputError(f"scores must be those of one query (n,), not an array of shape {values.shape}")
        bound = self.bounds(values.max()[None], None if uncertainty is None else [uncertainty])[0]
        order = np.argsort(-values, kind="stable")
        return np.asarray(order[values[order] >= bound])

    def sizes(self, judged: JudgedScores) -> IntArray:
        """The number of items in the set of each query, (q,)."""
        bound = self.bounds(judged.scores.max(axis=1), judged.uncertainty)
        return np.asarray((judged.scores >= bound[:, None]).sum(axis=1))

    def coverage(self, judged: JudgedScores) -> FloatArray:
        """The share of each query's matches inside its set, (q,): the mean is the coverage of a random match."""
        bound = self.bounds(judged.scores.max(axis=1), judged.uncertainty)
        inside = (judged.scores >= bound[:, None]) & judged.matches
        return np.asarray(inside.sum(axis=1) / judged.matches.sum(axis=1))

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`; an infinite quantile is null."""
        shape = self.nonconformity
        return {
            "nonconformity": {
                "best_weight": shape.best_weight, "slope": shape.slope, "centre": shape.centre, "scale": shape.scale,
            },
            "alpha": self.alpha,
            "quantile": self.quantile if np.isfinite(self.quantile) else None,
            "images": self.images,
            "gallery": self.gallery,
        }  # fmt: skip

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Conformal:
        """The sets that `to_json` wrote."""
        shape = document["nonconformity"]
        nonconformity = Nonconformity(*(float(shape[name]) for name in ("best_weight", "slope", "centre", "scale")))
        quantile = float("inf") if document["quantile"] is None else float(document["quantile"])
        return cls(nonconformity, float(document["alpha"]), quantile, int(document["images"]), int(document["gallery"]))


def match_weights(judged: JudgedScores) -> FloatArray:
    """The weight of each match of a query, (q,), such that every image weighs 1 in all."""
    _, group, size = np.unique(judged.query_image, return_inverse=True, return_counts=True)
    return np.asarray(1 / (size[group] * judged.matches.sum(axis=1)))


def weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    """The smallest value up to which the weights sum to `level`; infinite where they never do.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.25, 0.25]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weights[order])
    index = int(np.searchsorted(running, level * (1 - 1e-12)))
    return float(values[order[index]]) if index < len(order) else float("inf")


def _slope(x: FloatArray, values: FloatArray, weights: FloatArray, level: float) -> float:
    """The slope of the linear quantile regression of values on x: the pinball loss is convex in it."""

    def loss(slope: float) -> float:
        rest = values - slope * x
        rest = rest - weighted_quantile(rest, weights, level * weights.sum())
        return float((weights * np.maximum(level * rest, (level - 1) * rest)).sum())

    widest = 2 * float(values.std()) + 1e-12
    return float(minimize_scalar(loss, bounds=(-widest, widest), method="bounded", options={"xatol": 1e-4 * widest}).x)
