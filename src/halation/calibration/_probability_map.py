"""`ProbabilityMap`: the probability that a candidate matches, for the gallery it was fitted on and for others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from halation._arrays import Array, BoolArray, FloatArray, sigmoid, to_numpy
from halation._errors import InputError, one_of
from halation.calibration._judged_scores import JudgedScores
from halation.calibration._logistic import fit_logistic, log_odds, smoothed
from halation.calibration._maps import Isotonic, Platt, map_from_json
from halation.data import Direction

__all__ = ["Kind", "ProbabilityMap"]

Kind = Literal["platt", "isotonic"]
_MAPS: dict[str, type[Platt] | type[Isotonic]] = {"platt": Platt, "isotonic": Isotonic}
_FAR = 8  # times bigger or smaller than the gallery of the fit: not tested beyond


@dataclass(frozen=True)
class ProbabilityMap:
    """Turns the scores of a query's candidates into probabilities that they match.

        evidence = score − best_weight · best                best: of the query's candidates
        ln p/(1 − p) = map(evidence) − gallery_exponent · ln(gallery'/gallery)   in a gallery of another size

    It is fitted on galleries as they are and, equally often, on the same galleries with all that matches taken out. The
    result is the probability that an item matches if every second query has a match at all. One half is a choice,
    because nobody knows how often people search for what is not there; `base_rate=` sets another.

    Within a query the order never changes (equal probabilities may arise). With `best_weight` 0, scores are taken as
    they are. Above 0, a score counts by how close it comes to the query's best, which makes queries comparable. At 1
    the best would have one probability for all queries; where the level of the scores tells queries with a match from
    those without, the fit stays below.

    Among ten times as many items ten times as many are wrong. Where the number of a query's matches stays the same,
    the prior odds fall with the size of the gallery (`gallery_exponent` 1). Where matches grow with the gallery they
    fall less, only because the best wrong item gets better. The exponent is fitted on parts of the gallery. Where you
    know the share of all pairs that match, `base_rate=` shifts the log-odds by the difference of both shares' log-odds,
    which is exact when only the prevalence differs.

    >>> calibration = ProbabilityMap(Platt(10.0, -5.0), "t2i", gallery=1000, positives=1.0, top=10)
    >>> calibration([0.7, 0.5]).round(3)
    array([0.881, 0.5  ])
    >>> calibration([0.7, 0.5], gallery=10_000).round(3)        # ten times as many wrong answers
    array([0.425, 0.091])
    """

    map: Platt | Isotonic
    direction: Direction
    gallery: int
    positives: float  # mean number of matches per query in that gallery, queries without a match included
    top: int  # the number of candidates per query that it was fitted on
    best_weight: float = 0.0
    gallery_exponent: float = 1.0

    @classmethod
    def fit(
        cls, judged: JudgedScores, kind: Kind = "platt", *, relative: bool = False, top: int = 10, seed: int = 0
    ) -> ProbabilityMap:
        """The map fitted to the `top` best candidates of every query.

        relative: fit `best_weight` too, so that scores count relative to the query's best.
        """
        one_of(kind, _MAPS, "kind of calibration")
        best_weight, gallery_exponent = _best_weight_and_exponent(judged, relative, top, seed)
        scores, best, matches = _candidates(judged, top)
        fitted = _MAPS[kind].fit(scores - best_weight * best, matches)
        positives = judged.mixed_match_rate * judged.gallery
        return cls(fitted, judged.direction, judged.gallery, positives, top, best_weight, gallery_exponent)

    @property
    def kind(self) -> str:
        """ "platt" or "isotonic"."""
        return "platt" if isinstance(self.map, Platt) else "isotonic"

    @property
    def base_rate(self) -> float:
        """Share of all pairs of query and item that match, where it was fitted."""
        return self.positives / self.gallery

    def __call__(self, scores: Array, gallery: int | None = None, *, base_rate: float | None = None) -> FloatArray:
        """Probabilities of candidates, in the shape of the scores (..., k); each row holds the candidates of one query.

        gallery     the number of items that were searched, if it differs from that of the fit
        base_rate   the share of all pairs that match there, if you know it; then the size has no effect
        Scores of −inf or NaN, where there is no candidate, get 0.
        """
        values = np.asarray(to_numpy(scores), dtype=np.float64)
        present = np.isfinite(values)
        known = np.where(present, values, -np.inf)
        best = known.max(axis=-1, keepdims=True, initial=-np.inf) if values.ndim else known
        with np.errstate(invalid="ignore"):
            evidence = np.where(present, values - self.best_weight * best, 0.0)
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
            "lean": self.best_weight,
            "response": self.gallery_exponent,
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
            best_weight=float(document["lean"]),
            gallery_exponent=float(document["response"]),
        )


def _candidates(judged: JudgedScores, top: int) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Scores, the best score of their query, and matches of all candidates of the mixture, flat."""
    scores, matches = judged.mixed(top)
    present = np.isfinite(scores)
    best = np.broadcast_to(scores[:, :1], scores.shape)
    return scores[present].astype(np.float64), best[present].astype(np.float64), matches[present]


def _best_weight_and_exponent(judged: JudgedScores, relative: bool, top: int, seed: int) -> tuple[float, float]:
    """Fitted together over the gallery and parts of it: the weight of the best score, and the gallery's exponent."""
    features, labels = [], []
    parts = judged.smaller_galleries(5 * top, seed)
    for part in parts:
        scores, best, matches = _candidates(part, top)
        size = np.full(len(scores), math.log(part.gallery / judged.gallery))
        features.append(np.column_stack([scores, best if relative else np.zeros_like(best), size]))
        labels.append(matches)
    weights = fit_logistic(np.concatenate(features), smoothed(np.concatenate(labels).astype(np.float64)))
    slope, on_best, on_size = weights[:3]
    best_weight = float(np.clip(-on_best / slope, 0, 1)) if slope > 0 and relative else 0.0
    return best_weight, float(np.clip(-on_size, 0, 1)) if len(parts) > 1 else 1.0
