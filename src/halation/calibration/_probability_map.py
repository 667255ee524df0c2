"""`ProbabilityMap`: the probability that a candidate matches, for the gallery it was fitted on and for others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from halation._arrays import Array, FloatArray, sigmoid, to_numpy
from halation._errors import InputError, one_of
from halation.calibration._judged_scores import PAGE, JudgedScores
from halation.calibration._logistic import fit_logistic, log_odds, smoothed
from halation.calibration._maps import Isotonic, Platt, map_from_json
from halation.data import Direction

__all__ = ["CONTEXT", "Kind", "ProbabilityMap"]

Kind = Literal["platt", "isotonic"]
_MAPS: dict[str, type[Platt] | type[Isotonic]] = {"platt": Platt, "isotonic": Isotonic}
_FAR = 8  # times bigger or smaller than the gallery of the fit: not tested beyond
_MEAN_OF = 10  # best scores

CONTEXT = ("best", "mean", "sigma")
"""What a map may know of the query: its best score, the mean of its ten best, and ln σ."""


@dataclass(frozen=True)
class ProbabilityMap:
    """Turns the scores of a query's candidates into probabilities that they match.

        evidence = score + Σ weight · context            context: best and mean score of the query, its ln σ
        ln p/(1 − p) = map(evidence) − gallery_exponent · ln(gallery'/gallery)   in a gallery of another size

    Where people judge, it is fitted on the galleries as they are. Where matches are known as true or false, it is
    fitted on these and, equally often, on the same galleries with all matches taken out: the probability then holds if
    every second query has a match at all.

    Within a query the order never changes (equal probabilities may arise). `context` makes queries comparable: a score
    may mean more where the query's other scores are low.

    Among ten times as many items ten times as many are wrong. Where a query has one match however big the gallery is,
    the prior odds fall with its size (`gallery_exponent` 1). Where matches grow with the gallery they hardly fall. The
    exponent is fitted on parts of the gallery; it is 0 where people judge each pair by itself. Where you know the share
    of all pairs that match, `base_rate=` shifts the log-odds by the difference of both shares' log-odds, which is exact
    when only the prevalence differs.

    >>> calibration = ProbabilityMap(Platt(10.0, -5.0), "t2i", gallery=1000, positives=1.0, top=10)
    >>> calibration([0.7, 0.5]).round(3)
    array([0.881, 0.5  ])
    >>> calibration([0.7, 0.5], gallery=10_000).round(3)        # ten times as many wrong answers
    array([0.425, 0.091])
    """

    map: Platt | Isotonic
    direction: Direction
    gallery: int
    positives: float  # mean number of matches per query in that gallery; half of the queries may have none
    top: int  # the number of candidates per query that it was fitted on
    context: Mapping[str, float] = field(default_factory=dict)  # weight of each, by name
    gallery_exponent: float = 1.0

    @classmethod
    def fit(
        cls,
        judged: JudgedScores,
        kind: Kind = "platt",
        *,
        context: Sequence[str] = (),
        top: int = PAGE,
        seed: int = 0,
    ) -> ProbabilityMap:
        """The map fitted to the `top` best candidates of every query. context: names of `CONTEXT` that it may use."""
        one_of(kind, _MAPS, "kind of calibration")
        for name in context:
            one_of(name, CONTEXT, "context")
        weights, gallery_exponent = _weights_and_exponent(judged, tuple(context), top, seed)
        scores, truth = judged.candidates(top)
        present = np.isfinite(scores)
        evidence = _evidence(scores, weights, judged.candidate_uncertainty)
        fitted = _MAPS[kind].fit(evidence[present], truth[present])
        positives = judged.base_rate * judged.gallery
        return cls(fitted, judged.direction, judged.gallery, positives, top, weights, gallery_exponent)

    @property
    def kind(self) -> str:
        """ "platt" or "isotonic"."""
        return "platt" if isinstance(self.map, Platt) else "isotonic"

    @property
    def base_rate(self) -> float:
        """Share of all pairs of query and item that match, where it was fitted."""
        return self.positives / self.gallery

    def __call__(
        self,
        scores: Array,
        gallery: int | None = None,
        *,
        base_rate: float | None = None,
        uncertainty: Array | float | None = None,
    ) -> FloatArray:
        """Probabilities of candidates, in the shape of the scores (..., k); each row holds the candidates of one query.

        The query's ten best scores must be among them, in any order, unless the gallery has no more.

        gallery       the number of items that were searched, if it differs from that of the fit
        base_rate     the share of all pairs that match there, if you know it; then the size has no effect
        uncertainty   σ of each query (...), where the map was fitted with it
        Scores of −inf or NaN, where there is no candidate, get 0.
        """
        values = np.asarray(to_numpy(scores), dtype=np.float64)
        if not values.ndim:
            return np.asarray(self(values[None], gallery, base_rate=base_rate, uncertainty=uncertainty)[0])
        present = np.isfinite(values)
        sigma = None if uncertainty is None else np.asarray(to_numpy(uncertainty), dtype=np.float64)
        evidence = np.where(present, _evidence(values, self.context, sigma), 0.0)
        return np.where(present, sigmoid(self.map.log_odds(evidence) + self._shift(gallery, base_rate)), 0.0)

    def _shift(self, gallery: int | None, base_rate: float | None) -> float:
        if base_rate is not None:
            if not 0 < base_rate < 1:
                raise InputError(f"base_rate is {base_rate}; it must be above 0 and below 1")
            return float(log_odds(base_rate) - log_odds(self.base_rate))
        if gallery is None:
            return 0.0
        if gallery < 1:
            raise InputError(f"a gallery of {gallery} items has no candidates")
        return self.gallery_exponent * math.log(self.gallery / max(gallery, self.top))  # below `top` all are candidates

    def note(self, gallery: int) -> str | None:
        """A warning to show with probabilities in a gallery of this size; None where it is close to that of the fit."""
        if self.gallery / _FAR <= gallery <= self.gallery * _FAR:
            return None
        return (
            f"probabilities were calibrated on {self.gallery:,} items and corrected for {gallery:,}; "
            "take them as a rough guide"
        )

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`."""
        return {
            "map": self.map.to_json(),
            "direction": self.direction,
            "gallery": self.gallery,
            "positives": self.positives,
            "top": self.top,
            "context": dict(self.context),
            "gallery_exponent": self.gallery_exponent,
            "base_rate": self.base_rate,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ProbabilityMap:
        """The map that `to_json` wrote."""
        return cls(
            map=map_from_json(document["map"]),
            direction=document["direction"],
            gallery=int(document["gallery"]),
            positives=float(document["positives"]),
            top=int(document["top"]),
            context={str(name): float(weight) for name, weight in document["context"].items()},
            gallery_exponent=float(document["gallery_exponent"]),
        )


def _evidence(scores: FloatArray, weights: Mapping[str, float], uncertainty: FloatArray | None) -> FloatArray:
    """Score plus weighted context of each candidate, in the shape of the scores (..., k)."""
    if not weights:
        return scores
    columns = _context(scores, uncertainty, tuple(weights))
    return scores + sum(weight * columns[name] for name, weight in weights.items())


def _context(scores: FloatArray, uncertainty: FloatArray | None, names: tuple[str, ...]) -> dict[str, FloatArray]:
    """Each named context of the queries, (..., 1)."""
    columns: dict[str, FloatArray] = {}
    if "best" in names or "mean" in names:
        best_first = -np.sort(np.where(np.isfinite(scores), -scores, np.inf), axis=-1)[..., :_MEAN_OF]
        known = np.isfinite(best_first)
        count = np.maximum(known.sum(axis=-1, keepdims=True), 1)
        columns["best"] = np.where(known[..., :1], best_first[..., :1], 0.0)
        columns["mean"] = np.where(known, best_first, 0.0).sum(axis=-1, keepdims=True) / count
    if "sigma" in names:
        if uncertainty is None or not (np.asarray(uncertainty) > 0).all():
            raise InputError("these probabilities were fitted with the query's uncertainty; pass uncertainty=")
        columns["sigma"] = np.log(np.asarray(uncertainty, dtype=np.float64))[..., None]
    return columns


def _weights_and_exponent(
    judged: JudgedScores, names: tuple[str, ...], top: int, seed: int
) -> tuple[dict[str, float], float]:
    """Fitted together over the gallery and parts of it: the weight of each context, and the gallery's exponent."""
    features, labels = [], []
    parts = judged.smaller_galleries(5 * top, seed)
    for part in parts:
        scores, truth = part.candidates(top)
        present = np.isfinite(scores)
        context = _context(scores, part.candidate_uncertainty, names)
        size = np.full(scores.shape, math.log(part.gallery / judged.gallery))
        columns = [scores, *(np.broadcast_to(context[name], scores.shape) for name in names), size]
        features.append(np.stack(columns, axis=-1)[present])
        labels.append(truth[present])
    weights = fit_logistic(np.concatenate(features), smoothed(np.concatenate(labels)))
    slope = float(weights[0])
    context_weights = {name: float(weights[1 + k]) / slope if slope > 0 else 0.0 for k, name in enumerate(names)}
    if judged.is_graded:
        return context_weights, 0.0
    return context_weights, float(np.clip(-weights[1 + len(names)], 0, 1)) if len(parts) > 1 else 1.0
