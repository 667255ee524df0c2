"""`ProbabilityMap`: the probability that a candidate matches, for the gallery it was fitted on and for others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from halation._arrays import Array, BoolArray, FloatArray, to_numpy
from halation._errors import InputError, one_of
from halation.calibration._judged import JudgedScores
from halation.calibration._logistic import fit_logistic, log_odds, sigmoid, smoothed
from halation.calibration._maps import Isotonic, Platt, map_from_json
from halation.data import Direction

__all__ = ["Kind", "ProbabilityMap"]

Kind = Literal["platt", "isotonic"]
_MAPS: dict[str, type[Platt] | type[Isotonic]] = {"platt": Platt, "isotonic": Isotonic}
_FAR = 8  # times bigger or smaller than the gallery of the fit: beyond it nothing was tried


@dataclass(frozen=True)
class ProbabilityMap:
    """Scores of a query's candidates → probabilities that they match, also where perhaps nothing does.

        evidence = score − lean · best                                   best: of the query's candidates
        ln p/(1 − p) = map(evidence) − response · ln(gallery'/gallery)   in a gallery of another size

    It is fitted on galleries as they are and, as often, on the same with all that matches taken out: what is said is
    the probability that an item matches when every second query has a match at all. Half is a choice, as the share of
    those who look for what is not there is not known; `base_rate=` says another.

    Within a query the order never changes (equal probabilities may arise). `lean` is 0 for scores taken as they are;
    above 0 a score counts by how near it comes to the query's best, which makes queries comparable. At 1 the best would
    have one probability for all queries: where the level of the scores tells queries with a match from those without,
    the fit stays below.

    Among ten times as many items ten times as many are wrong: where a query's matches stay as many, the prior odds
    fall with the size of the gallery (`response` 1); where matches grow with the gallery they fall less, and only as
    the best of what is wrong gets better. It is fitted on parts of the gallery. Where the share of all pairs that match
    is known, `base_rate=` shifts the log-odds by the difference of both shares' log-odds, which is exact when only the
    prevalence differs.

    >>> calibration = ProbabilityMap(Platt(10.0, -5.0), "t2i", gallery=1000, positives=1.0, top=10)
    >>> calibration([0.7, 0.5]).round(3)
    array([0.881, 0.5  ])
    >>> calibration([0.7, 0.5], gallery=10_000).round(3)        # ten times as many wrong answers
    array([0.425, 0.091])
    """

    map: Platt | Isotonic
    direction: Direction
    gallery: int
    positives: float  # mean number of matches of a query in so many items, those without a match counted in
    top: int  # candidates of each query it was fitted on
    lean: float = 0.0
    response: float = 1.0

    @classmethod
    def fit(
        cls, judged: JudgedScores, kind: Kind = "platt", *, relative: bool = False, top: int = 10, seed: int = 0
    ) -> ProbabilityMap:
        """From the `top` best candidates of every query; `relative`: let scores lean on the query's best."""
        one_of(kind, _MAPS, "kind of calibration")
        lean, response = _lean_and_response(judged, relative, top, seed)
        scores, best, matches = _candidates(judged, top)
        found = _MAPS[kind].fit(scores - lean * best, matches)
        positives = judged.mixed_rate * judged.gallery
        return cls(found, judged.direction, judged.gallery, positives, top, lean, response)

    @property
    def kind(self) -> str:
        """ "platt" or "isotonic"."""
        return "platt" if isinstance(self.map, Platt) else "isotonic"

    @property
    def base_rate(self) -> float:
        """Share of all pairs of query and item that match, where it was fitted."""
        return self.positives / self.gallery

    def __call__(self, scores: Array, gallery: int | None = None, *, base_rate: float | None = None) -> FloatArray:
        """Probabilities of candidates, (..., k) in the shape of the scores; each row the candidates of one query.

        gallery     how many items were searched, if not as many as in the fit
        base_rate   the share of all pairs that match there, where it is known; then the size plays no part
        Places without a candidate (−inf or NaN) get 0.
        """
        values = np.asarray(to_numpy(scores), dtype=np.float64)
        there = np.isfinite(values)
        known = np.where(there, values, -np.inf)
        best = known.max(axis=-1, keepdims=True, initial=-np.inf) if values.ndim else known
        with np.errstate(invalid="ignore"):
            evidence = np.where(there, values - self.lean * best, 0.0)
        return np.where(there, sigmoid(self.map.log_odds(evidence) + self._shift(gallery, base_rate)), 0.0)

    def _shift(self, gallery: int | None, base_rate: float | None) -> float:
        if base_rate is not None:
            if not 0 < base_rate < 1:
                raise InputError(f"base_rate is {base_rate}; it must be above 0 and below 1")
            return float(log_odds(base_rate) - log_odds(self.base_rate))
        if gallery is None:
            return 0.0
        if gallery < 1:
            raise InputError(f"a gallery of {gallery} items has no candidates")
        return self.response * math.log(self.gallery / max(gallery, self.top))  # below `top` all are candidates

    def note(self, gallery: int) -> str | None:
        """What to say beside probabilities in a gallery of this size; None where it is near that of the fit."""
        if self.gallery / _FAR <= gallery <= self.gallery * _FAR:
            return None
        return (
            f"probabilities were calibrated on {self.gallery:,} items and are corrected for {gallery:,}: "
            "so far from it, take them as a rough guide"
        )

    def to_json(self) -> dict[str, Any]:
        """For `json.dump`."""
        return {**asdict(self), "map": self.map.to_json(), "base_rate": self.base_rate}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ProbabilityMap:
        """What `to_json` gave."""
        return cls(
            map=map_from_json(document["map"]),
            direction=document["direction"],
            gallery=int(document["gallery"]),
            positives=float(document["positives"]),
            top=int(document["top"]),
            lean=float(document["lean"]),
            response=float(document["response"]),
        )


def _candidates(judged: JudgedScores, top: int) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Scores, the best score of their query, and matches of all candidates of the mixture, flat."""
    scores, matches = judged.mixed(top)
    there = np.isfinite(scores)
    best = np.broadcast_to(scores[:, :1], scores.shape)
    return scores[there].astype(np.float64), best[there].astype(np.float64), matches[there]


def _lean_and_response(judged: JudgedScores, relative: bool, top: int, seed: int) -> tuple[float, float]:
    """Fitted together over the gallery and parts of it: how scores lean on the best, how odds fall with the size."""
    features, labels = [], []
    parts = judged.smaller(5 * top, seed)
    for part in parts:
        scores, best, matches = _candidates(part, top)
        size = np.full(len(scores), math.log(part.gallery / judged.gallery))
        features.append(np.column_stack([scores, best if relative else np.zeros_like(best), size]))
        labels.append(matches)
    weights = fit_logistic(np.concatenate(features), smoothed(np.concatenate(labels).astype(np.float64)))
    slope, on_best, on_size = weights[:3]
    lean = float(np.clip(-on_best / slope, 0, 1)) if slope > 0 and relative else 0.0
    return lean, float(np.clip(-on_size, 0, 1)) if len(parts) > 1 else 1.0
