"""`Abstention`: does anything in the gallery match this query at all?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from halation._arrays import Array, FloatArray, to_numpy
from halation._errors import InputError, one_of
from halation.calibration._logistic import fit_logistic, smoothed
from halation.calibration._maps import as_pairs
from halation.calibration._roc import coverage_at_precision

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
_LEAST = 0.1  # share of the queries a threshold must answer to be one


@dataclass(frozen=True)
class Abstention:
    """Evidence that something matches, a weighted sum of a query's best scores, and the least to go on.

        evidence = Σ weight · feature,   features of the `depth` best scores:
        best, mean, last;  margin = best − mean;  z = margin/sd;  sigma = ln σ of the query;  size = ln gallery

    statistic   which features, by name
    weights     of the features, the intercept under "one"
    threshold   evidence below it: nothing here matches. None: this model cannot tell with the precision asked for, or
                worse scores would speak for a match
    precision   asked for, where half of the queries have a match
    found       share of the queries with a match that are answered, where it was fitted: the price of the precision

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
    found: float = 0.0

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
        """scores (t, depth) best first, has_match (t,), `gallery` the size of each query's.

        Galleries of several sizes teach how the evidence moves with the size. `threshold_from` (t,): the rows the
        threshold is read from; all without it.
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
        found = cls(statistic, rows.shape[1], weights, None, precision)
        here = np.ones(len(rows), dtype=np.bool_) if threshold_from is None else to_numpy(threshold_from)
        covered = coverage_at_precision(found._evidence(features)[here], labels[here], precision)
        level = sum(weights[name] for name in used if name in _LEVELS)  # when all scores rise alike
        usable = covered.threshold is not None and covered.answered >= _LEAST and level >= 0
        told = (covered.threshold, precision, covered.found) if usable else (None, precision, 0.0)
        return cls(statistic, rows.shape[1], weights, *told)

    def evidence(self, scores: Array, gallery: Array | int, uncertainty: Array | None = None) -> FloatArray:
        """Log-odds that something matches, where half of the queries have a match: (t,) of scores (t, depth)."""
        rows = np.atleast_2d(to_numpy(scores).astype(np.float64))
        if rows.shape[1] < min(self.depth, int(np.min(gallery))):
            raise InputError(f"abstention looks at the {self.depth} best scores of a query; {rows.shape[1]} were given")
        sigma = None if uncertainty is None else np.atleast_1d(to_numpy(uncertainty).astype(np.float64))
        if "sigma" in self.weights and (sigma is None or not (sigma > 0).all()):
            raise InputError("this abstention was fitted with the query's uncertainty; give it")
        sizes = np.broadcast_to(np.asarray(gallery, dtype=np.float64), len(rows))
        return self._evidence(_features(rows[:, : self.depth], sizes, sigma if "sigma" in self.weights else None))

    def _evidence(self, features: Mapping[str, FloatArray]) -> FloatArray:
        total = sum(weight * features[name] for name, weight in self.weights.items())
        return np.asarray(total, dtype=np.float64)

    def nothing_matches(self, scores: Array, gallery: int, uncertainty: float | None = None) -> bool:
        """True where the evidence is below the threshold; never where there is no threshold."""
        if self.threshold is None:
            return False
        sigma = None if uncertainty is None else [uncertainty]
        return bool(self.evidence(np.atleast_1d(to_numpy(scores))[None], gallery, sigma)[0] < self.threshold)

    def to_json(self) -> dict[str, Any]:
        """For `json.dump`."""
        return {**vars(self), "weights": dict(self.weights)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Abstention:
        """What `to_json` gave."""
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
    there = np.isfinite(rows)
    known, count = np.where(there, rows, 0.0), np.maximum(there.sum(axis=1), 1)
    best, mean = np.where(there[:, 0], rows[:, 0], 0.0), known.sum(axis=1) / count
    spread = np.sqrt(np.where(there, (known - mean[:, None]) ** 2, 0.0).sum(axis=1) / count)
    last = known[np.arange(len(rows)), count - 1]
    found = {"best": best, "mean": mean, "last": last, "margin": best - mean}
    found["z"] = np.where(spread > 0, (best - mean) / np.where(spread > 0, spread, 1.0), 0.0)
    if sigma is not None:
        found["sigma"] = np.log(sigma)
    return {**found, "size": np.log(sizes), "one": np.ones(len(rows))}
