"""What a search gives: per query the items, best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halation._arrays import FloatArray

__all__ = ["Ranking"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The k best items of each of q queries, best first.

    ids             per query, up to k of them
    scores          (q, k) float32, bigger = closer; −inf where there is no item
    rows            (q, k) the items' places in `Index.items`; −1 where there is no item
    probabilities   (q, k) that the item matches, where the index knows how to tell; 0 where there is no item
    own             (q, k) the similarity's own scores: those of `scores`, but for what a correction of hubs took off

    >>> Ranking([["b", "a"]], np.array([[-0.5, -2.0]]), np.array([[1, 0]]))
    Ranking(1 query, 2 items each; first: b −0.5, a −2)
    """

    ids: list[list[str]]
    scores: FloatArray
    rows: npt.NDArray[np.int64]
    probabilities: FloatArray | None = None
    taken_off: FloatArray | None = None

    @property
    def own(self) -> FloatArray:
        """The similarity's own scores, (q, k)."""
        return self.scores if self.taken_off is None else self.scores + self.taken_off

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def k(self) -> int:
        """How many items a query has at most."""
        return int(self.scores.shape[1])

    def __repr__(self) -> str:
        queries = f"{len(self)} quer{'y' if len(self) == 1 else 'ies'}"
        if not len(self) or not self.k:
            return f"Ranking({queries}, no items)"
        first = ", ".join(f"{name} {score:.4g}" for name, score in zip(self.ids[0][:3], self.scores[0], strict=False))
        return f"Ranking({queries}, {self.k} item{'s' if self.k > 1 else ''} each; first: {first.replace('-', '−')})"
