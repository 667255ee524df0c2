"""`Abstention`: does anything in the gallery match this query at all? Yes, no, or not sure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from halation._arrays import Array, BoolArray, FloatArray, to_numpy
from halation._errors import InputError, one_of
from halation.calibration._logistic import fit_logistic, smoothed
from halation.calibration._maps import as_pairs
from halation.calibration._quality import coverage_at_precision

__all__ = ["STATISTICS", "Abstention", "Verdict"]

Verdict = Literal["matches", "unsure", "nothing"]
"""Something matches, not sure, nothing matches."""

STATISTICS: dict[str, tuple[str, ...]] = {  # the simplest first
    "best score": ("best",),
    "mean of the top": ("mean",),
    "margin of the best": ("margin",),
    "z-score of the best": ("z",),
    "best, mean and last": ("best", "mean", "last"),
    "best, mean, last and σ": ("best", "mean", "last", "sigma"),
}
_LEVELS = ("best", "mean", "last")
_LEAST_ANSWERED = 0.02  # share of the queries that a usable threshold must answer


@dataclass(frozen=True)
class Abstention:
    """Evidence that something in the gallery matches, and two thresholds that bound both errors.

        evidence = Σ weight · feature,   features of the `depth` best scores:
        best, mean, last;  margin = best − mean;  z = margin/sd;  sigma = ln σ of the query;  size = ln gallery

    statistic       the name of the set of features
    weights         of the features; the intercept is "one"
    matches_from    evidence from which on something matches, right in at least `precision` of such queries
    nothing_below   evidence below which nothing matches, right in at least `precision` of such queries. In between the
                    answer is "unsure". None: the model cannot give this answer with the requested precision, or lower
                    scores would count for a match
    precision       the requested precision, where half of the queries have a match
    answered        share of the queries with a match that get "matches", where it was fitted
    refused         share of the queries without one that get "nothing"

    >>> best = np.array([[0.9], [0.8], [0.3], [0.2]])
    >>> abstention = Abstention.fit(best, [True, True, False, False], gallery=100)
    >>> abstention.verdict([0.85], 100), abstention.verdict([0.25], 100)
    ('matches', 'nothing')
    """

    statistic: str
    depth: int
    weights: Mapping[str, float]
    matches_from: float | None
    nothing_below: float | None
    precision: float
    answered: float = 0.0
    refused: float = 0.0

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
        threshold_from (t,) bool: the rows that set the thresholds; None: all. Rows with a match and without weigh
        equally there.
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
        fitted = cls(statistic, rows.shape[1], weights, None, None, precision)
        level = sum(weights[name] for name in used if name in _LEVELS)  # the effect when all scores rise together
        if level < 0:
            return fitted
        chosen = np.ones(len(rows), dtype=np.bool_) if threshold_from is None else to_numpy(threshold_from)
        return fitted._with_thresholds(fitted._evidence(features)[chosen], labels[chosen])

    def _with_thresholds(self, evidence: FloatArray, has_match: BoolArray) -> Abstention:
        """The same with both thresholds, from the evidence of queries with and without a match."""
        yes, no = np.flatnonzero(has_match), np.flatnonzero(~has_match)
        size = max(len(yes), len(no))
        half = np.concatenate([np.resize(yes, size), np.resize(no, size)])  # as many of each
        evidence, has_match = evidence[half], has_match[half]
        above = coverage_at_precision(evidence, has_match, self.precision)
        below = coverage_at_precision(-evidence, ~has_match, self.precision)
        high = above.threshold if above.answered >= _LEAST_ANSWERED else None
        low = None
        if below.threshold is not None and below.answered >= _LEAST_ANSWERED:
            low = float(np.nextafter(-below.threshold, np.inf))  # the threshold itself is inside
        if high is not None and low is not None and low > high:  # both answers are right enough in between
            high = low = (high + low) / 2
        answered = 0.0 if high is None else float((evidence[has_match] >= high).mean())
        refused = 0.0 if low is None else float((evidence[~has_match] < low).mean())
        return replace(self, matches_from=high, nothing_below=low, answered=answered, refused=refused)

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

    def verdict(self, scores: Array, gallery: int, uncertainty: float | None = None) -> Verdict:
        """What to say about one query, from its `depth` best scores, best first."""
        sigma = None if uncertainty is None else [uncertainty]
        evidence = self.evidence(np.atleast_1d(to_numpy(scores))[None], gallery, sigma)
        return self.verdicts(evidence)[0]

    def verdicts(self, evidence: FloatArray) -> list[Verdict]:
        """What to say about queries of this evidence, (t,)."""
        high = np.inf if self.matches_from is None else self.matches_from
        low = -np.inf if self.nothing_below is None else self.nothing_below
        return ["nothing" if value < low else "matches" if value >= high else "unsure" for value in evidence.tolist()]

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`."""
        return {**asdict(self), "weights": dict(self.weights)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Abstention:
        """The abstention that `to_json` wrote."""
        high, low = document["matches_from"], document["nothing_below"]
        return cls(
            str(document["statistic"]),
            int(document["depth"]),
            {str(name): float(weight) for name, weight in document["weights"].items()},
            None if high is None else float(high),
            None if low is None else float(low),
            float(document["precision"]),
            float(document["answered"]),
            float(document["refused"]),
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
