"""`Ambiguity`: a query's uncertainty in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from halation._arrays import Array, to_numpy
from halation._errors import InputError

__all__ = ["Ambiguity"]

_WORDS = ("specific", "ordinary", "broad")
_LEAST = 0.1  # rank correlation below which σ says nothing about how much a query covers


@dataclass(frozen=True)
class Ambiguity:
    """ "specific", "ordinary" or "broad": the quarter of queries that cover least, the middle half, the quarter most.

    low, high    quartiles of the validation queries' σ
    agreement    Spearman's correlation of σ with how many items answer a query. Below −0.1 σ runs the other way (a
                 model trained with hardly any pull on its variances can do that), and the words are turned round;
                 between, σ says nothing and there is no word. None: not measured, σ is taken at its word

    >>> ambiguity = Ambiguity.fit([0.1, 0.2, 0.3, 0.4, 0.5], breadth=[1, 1, 2, 5, 9])
    >>> ambiguity(0.05), ambiguity(0.3), ambiguity(0.9)
    ('specific', 'ordinary', 'broad')
    """

    low: float
    high: float
    agreement: float | None = None

    @classmethod
    def fit(cls, uncertainties: Array, breadth: Array | None = None) -> Ambiguity | None:
        """Uncertainties (q,) of validation queries, breadth (q,): how many items answer each. None without any σ."""
        sigma = to_numpy(uncertainties).astype(np.float64)
        if sigma.ndim != 1 or not len(sigma) or not np.isfinite(sigma).all():
            raise InputError("uncertainties must be a list of finite numbers, one for each query")
        if sigma.min() == sigma.max():
            return None
        agreement = None
        if breadth is not None:
            counts = to_numpy(breadth)
            agreement = float(spearmanr(sigma, counts).statistic) if counts.min() < counts.max() else None
        low, high = np.quantile(sigma, (0.25, 0.75))
        return cls(float(low), float(high), agreement)

    @property
    def speaks(self) -> bool:
        """Whether there are words at all."""
        return self.agreement is None or abs(self.agreement) >= _LEAST

    def __call__(self, uncertainty: float | None) -> str | None:
        """A word for a query's σ; None where it says nothing."""
        if uncertainty is None or not self.speaks:
            return None
        place = (uncertainty > self.low) + (uncertainty > self.high) * 1
        turned = self.agreement is not None and self.agreement < 0
        return _WORDS[2 - place if turned else place]

    def to_json(self) -> dict[str, Any]:
        """For `json.dump`."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Ambiguity:
        """What `to_json` gave."""
        agreement = document["agreement"]
        return cls(float(document["low"]), float(document["high"]), None if agreement is None else float(agreement))
