"""From a score to a probability, one number in and one out: Platt's sigmoid and isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from halation._arrays import Array, BoolArray, FloatArray, sigmoid, to_numpy
from halation._errors import InputError
from halation.calibration._logistic import fit_logistic, log_odds, smoothed

__all__ = ["Isotonic", "Platt", "as_pairs", "as_targets", "map_from_json"]


@dataclass(frozen=True)
class Platt:
    """p = σ(slope · score + offset), slope ≥ 0.

    Platt, 1999: maximum likelihood with slightly smoothed labels. Where bigger scores match less often, the slope is 0
    and every score gets the base rate: calibration never reverses a ranking.

    >>> platt = Platt.fit([0.1, 0.4, 0.5, 0.9], [False, False, True, True])
    >>> platt([0.2, 0.8]).round(2)
    array([0.3 , 0.73])
    """

    slope: float
    offset: float

    @classmethod
    def fit(cls, scores: Array, is_match: Array) -> Platt:
        """The sigmoid fitted to scores (n,) and is_match (n,): yes or no, or a probability of yes."""
        values, labels = as_targets(scores, is_match)
        targets = smoothed(labels)
        slope, offset = fit_logistic(values[:, None], targets)
        if slope > 0:
            return cls(float(slope), float(offset))
        return cls(0.0, float(log_odds(targets.mean())))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p/(1 − p) of any number of scores."""
        return self.slope * np.asarray(scores, dtype=np.float64) + self.offset

    def __call__(self, scores: Array) -> FloatArray:
        """Probabilities, in the shape of the scores."""
        return sigmoid(self.log_odds(to_numpy(scores)))

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`."""
        return {"kind": "platt", "slope": self.slope, "offset": self.offset}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Platt:
        """The sigmoid that `to_json` wrote."""
        return cls(float(document["slope"]), float(document["offset"]))


@dataclass(frozen=True)
class Isotonic:
    """The non-decreasing step function nearest to the labels, joined by straight lines; constant beyond its ends.

    Probabilities stay 1/(n + 2) away from 0 and 1: n examples cannot show that something never happens.

    >>> isotonic = Isotonic.fit([0.1, 0.2, 0.3, 0.4, 0.5], [False, True, False, True, True])
    >>> isotonic([0.0, 0.25, 0.5]).round(2)
    array([0.14, 0.5 , 0.86])
    """

    scores: tuple[float, ...]  # increasing
    probabilities: tuple[float, ...]

    @classmethod
    def fit(cls, scores: Array, is_match: Array) -> Isotonic:
        """The step function fitted to scores (n,) and is_match (n,): yes or no, or a probability of yes.

        Equal scores count as one, with their share of matches.
        """
        values, labels = as_targets(scores, is_match)
        distinct, level = np.unique(values, return_inverse=True)
        count = np.bincount(level)
        share = np.bincount(level, labels) / count
        steps = isotonic_regression(share, weights=count).x
        least = 1 / (len(values) + 2)
        steps = np.clip(steps, least, 1 - least)
        bends = np.ones(len(steps), dtype=np.bool_)  # interpolation gives the inside of a level
        bends[1:-1] = (steps[1:-1] != steps[:-2]) | (steps[1:-1] != steps[2:])
        return cls(tuple(distinct[bends].tolist()), tuple(steps[bends].tolist()))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p/(1 − p) of any number of scores."""
        return log_odds(self(scores))

    def __call__(self, scores: Array) -> FloatArray:
        """Probabilities, in the shape of the scores."""
        return np.asarray(np.interp(to_numpy(scores), self.scores, self.probabilities))

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`."""
        return {"kind": "isotonic", "scores": list(self.scores), "probabilities": list(self.probabilities)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Isotonic:
        """The step function that `to_json` wrote."""
        return cls(tuple(map(float, document["scores"])), tuple(map(float, document["probabilities"])))


def map_from_json(document: Mapping[str, Any]) -> Platt | Isotonic:
    """The map, of either kind, that `to_json` wrote."""
    return Platt.from_json(document) if document["kind"] == "platt" else Isotonic.from_json(document)


def as_pairs(values: Array, labels: Array, what: str = "scores") -> tuple[FloatArray, BoolArray]:
    """Finite numbers and a yes or no for each, (n,) and (n,); both answers must occur."""
    numbers, marks = as_targets(values, labels, what)
    if not np.isin(marks, (0, 1)).all():
        raise InputError("matches must be true or false")
    return numbers, marks.astype(np.bool_)


def as_targets(values: Array, labels: Array, what: str = "scores") -> tuple[FloatArray, FloatArray]:
    """Finite numbers and for each a yes or no or a probability of yes, (n,) and (n,); not all yes and not all no."""
    numbers, marks = to_numpy(values).astype(np.float64), to_numpy(labels).astype(np.float64)
    if numbers.ndim != 1 or numbers.shape != marks.shape:
        raise InputError(f"{what} {numbers.shape} and matches {marks.shape} must be two lists of one length")
    if not np.isfinite(numbers).all():
        index = int(np.argmax(~np.isfinite(numbers)))
        raise InputError(f"{what}[{index}] is {numbers[index]}; every number must be finite")
    if not ((marks >= 0) & (marks <= 1)).all():
        raise InputError("matches must be true or false, or probabilities in 0…1")
    if not marks.any() or (marks == 1).all():
        missing = "match" if not marks.any() else "non-match"
        raise InputError(f"there is not a single {missing} among {len(marks):,}; both are needed for a fit")
    return numbers, marks
