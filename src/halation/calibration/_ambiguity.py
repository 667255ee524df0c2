"""`Ambiguity`: a query's uncertainty in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from halation._arrays import Array, to_numpy
from halation._errors import InputError

__all__ = ["Ambiguity"]

_WORDS = ("specific", "ordinary", "broad")
_LEAST = 0.1  # rank correlation below which σ carries no information about breadth


@dataclass(frozen=True)
class Ambiguity:
    """A word for a query's σ: "specific" (the quarter that covers least), "ordinary" or "broad" (the quarter most).

    low, high     quartiles of the validation queries' σ
    correlation   Spearman's correlation of σ with the number of items that answer a query. Below −0.1, σ runs the other
                  way (that happens to models whose variances were hardly trained) and the words are swapped. Between
                  −0.1 and 0.1, σ is not informative and there is no word. None: not measured; σ is trusted

    >>> ambiguity = Ambiguity.fit([0.1, 0.2, 0.3, 0.4, 0.5], breadth=[1, 1, 2, 5, 9])
    >>> ambiguity(0.05), ambiguity(0.3), ambiguity(0.9)
    ('specific', 'ordinary', 'broad')
    """

    low: float
    high: float
    correlation: float | None = None

    @classmethod
    def fit(cls, uncertainties: Array, breadth: Array | None = None) -> Ambiguity | None:
        """The words for uncertainties (q,) of validation queries; None where all are equal.

        breadth (q,): the number of items that answer each query.
        """
        sigma = to_numpy(uncertainties).astype(np.float64)
        if sigma.ndim != 1 or not len(sigma) or not np.isfinite(sigma).all():
            raise InputError("uncertainties must be a list of finite numbers, one per query")
        if sigma.min() == sigma.max():
            return None
        correlation = None
        if breadth is not None:
            counts = to_numpy(breadth)
            correlation = float(spearmanr(sigma, counts).statistic) if counts.min() < counts.max() else None
        low, high = np.quantile(sigma, (0.25, 0.75))
        return cls(float(low), float(high), correlation)

    @property
    def is_informative(self) -> bool:
        """Whether σ follows the breadth of queries, so that there are words for it."""
        return self.correlation is None or abs(self.correlation) >= _LEAST

    def __call__(self, uncertainty: float | None) -> str | None:
        """A word for a query's σ; None where σ is not informative."""
        if uncertainty is None or not self.is_informative:
            return None
        quarter = (uncertainty > self.low) + (uncertainty > self.high) * 1
        swapped = self.correlation is not None and self.correlation < 0
        return _WORDS[2 - quarter if swapped else quarter]

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`."""
        return {"low": self.low, "high": self.high, "agreement": self.correlation}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Ambiguity:
        """The words that `to_json` wrote."""
        correlation = document["agreement"]
        return cls(float(document["low"]), float(document["high"]), None if correlation is None else float(correlation))
