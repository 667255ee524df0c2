"""`Ranking`, the result of a search: the items of each query, best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._arrays import FloatArray

__all__ = ["Ranking"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The k best items of each of q queries, best first.

    ids             up to k per query, strings or integers as you gave them
    scores          (q, k) float32, bigger = closer; −inf where there is no item
    rows            (q, k) the items' positions in `Index.ids`; −1 where there is no item
    probabilities   (q, k) that the item matches, if the index has a calibrator; 0 where there is no item
    corrections     (q, k) the hub penalties already subtracted from `scores`; None: hubs are not corrected

    >>> Ranking([["b", "a"]], np.array([[-0.5, -2.0]]), np.array([[1, 0]]))
    Ranking(1 query, 2 items each; first: b −0.5, a −2)
    """

    ids: list[list[Any]]
    scores: FloatArray
    rows: npt.NDArray[np.int64]
    probabilities: FloatArray | None = None
    corrections: FloatArray | None = None

    @property
    def uncorrected(self) -> FloatArray:
        """The scores (q, k) without the correction for hubs."""
        return self.scores if self.corrections is None else self.scores + self.corrections

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def k(self) -> int:
        """The largest number of items of a query."""
        return int(self.scores.shape[1])

    def __repr__(self) -> str:
        queries = f"{len(self)} quer{'y' if len(self) == 1 else 'ies'}"
        if not len(self) or not self.k:
            return f"Ranking({queries}, no items)"
        best = zip(self.ids[0][:3], self.scores[0], strict=False)
        first = ", ".join(f"{item_id} {score:.4g}" for item_id, score in best)
        return f"Ranking({queries}, {self.k} item{'s' if self.k > 1 else ''} each; first: {first.replace('-', '−')})"
