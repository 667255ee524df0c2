"""`Abstention`: does anything in the gallery match this query at all?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halation._arrays import Array, FloatArray, to_numpy
from halation._errors import InputError, one_of
from halation.calibration._logistic import fit_logistic, smoothed
from halation.calibration._maps import as_pairs
from halation.calibration._quality import coverage_at_precision

__all__ = ["STATISTICS", "Abstention"]

STATISTICS: dict[str, tuple[str, ...]] = {  # the simplest first
    "best score": ("best",),
    "mean of the top": ("mean",),
    "margin of the best": ("margin",),
    "z-score of the best": ("z",),
    "best, mean and last": ("best", "mean", "last"),
    "best, mean, last and σ": ("best", "mean", "last", "sigma"),
}
_LEVELS = ("best", "mean", "last")
_LEAST_ANSWERED = 0.1  # share of the queries that a usable threshold must answer


@dataclass(frozen=True)
class Abstention:
    """Evidence that something in the gallery matches, and the threshold below which nothing does.

        evidence = Σ weight · feature,   features of the `depth` best scores:
        best, mean, last;  margin = best − mean;  z = margin/sd;  sigma = ln σ of the query;  size = ln gallery

    statistic   the name of the set of features
    weights     of the features; the intercept is "one"
    threshold   evidence below it: nothing here matches. None: this model cannot tell with the requested precision, or
                lower scores would count for a match
    precision   the requested precision, where half of the queries have a match
    recall      share of the queries with a match that are answered, where it was fitted: the price of the precision

    >>> best = np.array([[0.9], [0.8], [0.3], [0.2]])
    >>> abstention = Abstention.fit(best, [True, True, False, False], gallery=100)
    >>> abstention.nothing_matches([0.85], 100), abstention.nothing_matches([0.25], 100)
    (False, True)
    """

    statistic: str
    depth: int
    weights: Mapping[str, float]
    threshold: float | None
    precision: float
    recall: float = 0.0

    @classmethod
    def fit(
        cls,
        scores: Array,
        has_match: Array,
        precision: float = 0.9,
        *,
        gallery: Array | int,
        uncertainty: Array | None = None,
        statistic: str = "best score",
        threshold_from: Array | None = None,
    ) -> Abstention:
        """The abstention fitted to scores (t, depth), best first, and has_match (t,).

        gallery: the size of the gallery of each query; several sizes teach how the evidence changes with it.
        threshold_from (t,) bool: the rows that set the threshold; None: all.
        """
        rows = np.atleast_2d(to_numpy(scores).astype(np.float64))
        names = STATISTICS[one_of(statistic, STATISTICS, "statistic")]
        sizes = np.broadcast_to(np.asarray(gallery, dtype=np.float64), len(rows))
        sigma = None if uncertainty is None else to_numpy(uncertainty).astype(np.float64)
        if sigma is None or not (sigma > 0).all():
            sigma, names = None, tuple(name for name in names if name != "sigma")
        features = _features(rows, sizes, sigma)
        _, labels = as_pairs(features["best"], has_match, "best scores")
        used = (*names, "size")
        design = np.column_stack([features[name] for name in used])
        weights = dict(
            zip((*used, "one"), fit_logistic(design, smoothed(labels.astype(np.float64))).tolist(), strict=True)
        )
        fitted = cls(statistic, rows.shape[1], weights, None, precision)
        chosen = np.ones(len(rows), dtype=np.bool_) if threshold_from is None else to_numpy(threshold_from)
        coverage = coverage_at_precision(fitted._evidence(features)[chosen], labels[chosen], precision)
        level = sum(weights[name] for name in used if name in _LEVELS)  # the effect when all scores rise together
        if coverage.threshold is None or coverage.answered < _LEAST_ANSWERED or level < 0:
            return fitted
        return replace(fitted, threshold=coverage.threshold, recall=coverage.recall)

    def evidence(self, scores: Array, gallery: Array | int, uncertainty: Array | None = None) -> FloatArray:
        """Log-odds that something matches, where half of the queries have a match: (t,) of scores (t, depth)."""
        rows = np.atleast_2d(to_numpy(scores).astype(np.float64))
        if rows.shape[1] < min(self.depth, int(np.min(gallery))):
            raise InputError(f"abstention needs the {self.depth} best scores of a query; you passed {rows.shape[1]}")
        sigma = None if uncertainty is None else np.atleast_1d(to_numpy(uncertainty).astype(np.float64))
        if "sigma" in self.weights and (sigma is None or not (sigma > 0).all()):
            raise InputError("this abstention was fitted with the query's uncertainty; pass uncertainty=")
        sizes = np.broadcast_to(np.asarray(gallery, dtype=np.float64), len(rows))
        return self._evidence(_features(rows[:, : self.depth], sizes, sigma if "sigma" in self.weights else None))

    def _evidence(self, features: Mapping[str, FloatArray]) -> FloatArray:
        total = sum(weight * features[name] for name, weight in self.weights.items())
        return np.asarray(total, dtype=np.float64)

    def nothing_matches(self, scores: Array, gallery: int, uncertainty: float | None = None) -> bool:
        """Whether the evidence is below the threshold; False where there is no threshold."""
        if self.threshold is None:
            return False
        sigma = None if uncertainty is None else [uncertainty]
        return bool(self.evidence(np.atleast_1d(to_numpy(scores))[None], gallery, sigma)[0] < self.threshold)

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`."""
        return {
            "statistic": self.statistic,
            "depth": self.depth,
            "weights": dict(self.weights),
            "threshold": self.threshold,
            "precision": self.precision,
            "found": self.recall,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Abstention:
        """The abstention that `to_json` wrote."""
        threshold = document["threshold"]
        return cls(
            str(document["statistic"]),
            int(document["depth"]),
            {str(name): float(weight) for name, weight in document["weights"].items()},
            None if threshold is None else float(threshold),
            float(document["precision"]),
            float(document["found"]),
        )


def _features(rows: FloatArray, sizes: FloatArray, sigma: FloatArray | None) -> dict[str, FloatArray]:
    present = np.isfinite(rows)
    known, count = np.where(present, rows, 0.0), np.maximum(present.sum(axis=1), 1)
    best, mean = np.where(present[:, 0], rows[:, 0], 0.0), known.sum(axis=1) / count
    spread = np.sqrt(np.where(present, (known - mean[:, None]) ** 2, 0.0).sum(axis=1) / count)
    last = known[np.arange(len(rows)), count - 1]
    features = {"best": best, "mean": mean, "last": last, "margin": best - mean}
    features["z"] = np.where(spread > 0, (best - mean) / np.where(spread > 0, spread, 1.0), 0.0)
    if sigma is not None:
        features["sigma"] = np.log(sigma)
    return {**features, "size": np.log(sizes), "one": np.ones(len(rows))}
