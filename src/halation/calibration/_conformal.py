"""`Conformal`: for each query the set of items that holds a match with a stated probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from halation._arrays import Array, FloatArray, IntArray, to_numpy
from halation._errors import InputError
from halation.calibration._judged import JudgedScores

__all__ = ["Conformal", "Shape", "weighted_quantile"]

_LEANS = (0.0, 0.25, 0.5, 0.75, 1.0)
_CLIP = 3.0  # standard deviations of ln σ: beyond them a set grows no more


@dataclass(frozen=True)
class Shape:
    """How badly an item fits a query: nonconformity = lean · best − score − slope · x.

    best    the query's best score: a set reaches as far below it as the best itself is good
    x       ln σ of the query, standardised and cut at ±3; with slope > 0 uncertain queries get larger sets

    Fit it on other images than the threshold of `Conformal`, and the sets keep their guarantee.
    """

    lean: float = 1.0
    slope: float = 0.0
    centre: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, judged: JudgedScores, alpha: float = 0.1) -> Shape:
        """The lean with the smallest sets, where for each lean the slope makes coverage alike for every uncertainty.

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
        found: list[tuple[float, Shape]] = []
        for lean in _LEANS:
            misfit = lean * best[query] - judged.scores[query, item]
            slope = _slope(x[query], misfit, weights, 1 - alpha) if x.any() else 0.0
            reach = weighted_quantile(misfit - slope * x[query], weights, (1 - alpha) * weights.sum())
            size = np.mean(judged.scores >= (lean * best - slope * x - reach)[:, None])
            found.append((float(size), cls(lean, slope, centre, scale if scale > 0 else 1.0)))
        return min(found, key=lambda row: row[0])[1]

    def allowance(self, best: FloatArray, uncertainty: FloatArray | None) -> FloatArray:
        """lean · best − slope · x of each query, (q,): what an item's score is held against."""
        allowed = self.lean * np.asarray(best, dtype=np.float64)
        if self.slope == 0:
            return allowed
        if uncertainty is None or not (np.asarray(uncertainty) > 0).all():
            raise InputError("these sets were fitted with the query's uncertainty; give it")
        x = (np.log(np.asarray(uncertainty, dtype=np.float64)) - self.centre) / self.scale
        return np.asarray(allowed - self.slope * np.clip(x, -_CLIP, _CLIP))


@dataclass(frozen=True)
class Conformal:
    """Sets that hold a match with probability at least 1 − α: items whose score ≥ lean · best − slope · x − reach.

    "A match" is one drawn at random from the query's matches; the set then holds at least one with at least that
    probability. The probability is over queries drawn as those of the fit were, with such a gallery (marginal
    coverage): not for every single query. `reach` is the finite-sample quantile of the matches' nonconformity in which
    every image counts alike, its queries alike within it and their matches alike within them, and one more image, the
    unseen one, counts as infinitely bad: ⌈(K + 1)(1 − α)⌉ of K where each image has one query with one match. (Split
    conformal prediction; by groups as Lee, Barber and Willett, 2023.)

    >>> own = np.arange(4)
    >>> scores = np.eye(4) + 0.1
    >>> conformal = Conformal.fit(JudgedScores(scores, np.eye(4, dtype=bool), own, own), Shape(), alpha=0.2)
    >>> conformal.rows([0.3, 0.9, 0.1]).tolist()
    [1]
    """

    shape: Shape
    alpha: float
    reach: float
    images: int
    gallery: int

    @classmethod
    def fit(cls, judged: JudgedScores, shape: Shape, alpha: float = 0.1) -> Conformal:
        """The reach, from images that the shape was not fitted on."""
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha}; it must be above 0 and below 1")
        query, item = np.nonzero(judged.matches)
        allowed = shape.allowance(judged.scores.max(axis=1), judged.uncertainty)
        misfit = allowed[query] - judged.scores[query, item]
        groups = len(judged.images)
        weights = match_weights(judged)[query] / (groups + 1)
        return cls(shape, alpha, weighted_quantile(misfit, weights, 1 - alpha), groups, judged.gallery)

    def bounds(self, best: Array, uncertainty: Array | None = None) -> FloatArray:
        """The least score inside the set, for each query's best score (q,); −inf: everything."""
        sigma = None if uncertainty is None else to_numpy(uncertainty)
        allowed = self.shape.allowance(to_numpy(best), sigma)
        return allowed - self.reach - 1e-12 * (1 + np.abs(allowed))  # the match that made the reach is inside it

    def rows(self, scores: Array, uncertainty: float | None = None) -> IntArray:
        """The items of one query's set, best first, from its scores (n,): all of the gallery's, or the best of them.

        Where all the scores given are inside, a gallery that goes on may hold more.
        """
        values = to_numpy(scores).astype(np.float64)
        if values.ndim != 1 or not len(values):
            raise InputError(f"the scores of one query are a list, not of shape {values.shape}")
        bound = self.bounds(values.max()[None], None if uncertainty is None else [uncertainty])[0]
        order = np.argsort(-values, kind="stable")
        return np.asarray(order[values[order] >= bound])

    def sizes(self, judged: JudgedScores) -> IntArray:
        """How large the set of each query is, (q,)."""
        bound = self.bounds(judged.scores.max(axis=1), judged.uncertainty)
        return np.asarray((judged.scores >= bound[:, None]).sum(axis=1))

    def covered(self, judged: JudgedScores) -> FloatArray:
        """The share of each query's matches inside its set, (q,): the mean is the coverage of a random match."""
        bound = self.bounds(judged.scores.max(axis=1), judged.uncertainty)
        inside = (judged.scores >= bound[:, None]) & judged.matches
        return np.asarray(inside.sum(axis=1) / judged.matches.sum(axis=1))

    def to_json(self) -> dict[str, Any]:
        """For `json.dump`; an infinite reach is null."""
        return {**asdict(self), "reach": self.reach if np.isfinite(self.reach) else None}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Conformal:
        """What `to_json` gave."""
        shape = Shape(**{name: float(value) for name, value in document["shape"].items()})
        reach = float("inf") if document["reach"] is None else float(document["reach"])
        return cls(shape, float(document["alpha"]), reach, int(document["images"]), int(document["gallery"]))


def match_weights(judged: JudgedScores) -> FloatArray:
    """(q,): what each match of a query weighs, so that every image weighs 1 in all."""
    _, group, size = np.unique(judged.query_image, return_inverse=True, return_counts=True)
    return np.asarray(1 / (size[group] * judged.matches.sum(axis=1)))


def weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    """The smallest value up to which the weights sum to `level`; infinite where they never do.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.25, 0.25]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weights[order])
    place = int(np.searchsorted(running, level * (1 - 1e-12)))
    return float(values[order[place]]) if place < len(order) else float("inf")


def _slope(x: FloatArray, values: FloatArray, weights: FloatArray, level: float) -> float:
    """Slope of the linear quantile regression of values on x: the pinball loss is convex in it."""

    def loss(slope: float) -> float:
        rest = values - slope * x
        rest = rest - weighted_quantile(rest, weights, level * weights.sum())
        return float((weights * np.maximum(level * rest, (level - 1) * rest)).sum())

    widest = 2 * float(values.std()) + 1e-12
    return float(minimize_scalar(loss, bounds=(-widest, widest), method="bounded", options={"xatol": 1e-4 * widest}).x)
