"""How a similarity lives in an L2 index: the points it stores, the points it is asked, and back to scores."""

from __future__ import annotations

import numpy as np

from halation._arrays import FloatArray
from halation._errors import InputError
from halation.gaussian import Gaussian
from halation.index._backend import Points
from halation.similarity import IndexedSimilarity, Similarity, cosine, l2

__all__ = ["Form"]


class Form:
    """Points of a similarity, moved to the middle of the first batch (distances do not change, their digits do).

    direct     the similarity has points of its own; otherwise items are fetched by their means and scored again
    penalty    each item has a number b taken off its scores: one more coordinate √(unit · (b − floor)), 0 for queries,
               adds exactly that to every squared distance
    """

    def __init__(self, similarity: Similarity, *, penalty: bool) -> None:
        self.direct = isinstance(similarity, IndexedSimilarity)
        self._by: IndexedSimilarity = similarity if isinstance(similarity, IndexedSimilarity) else l2
        self._penalty = penalty and self.direct
        self.origin: Points | None = None  # (d',)
        self.floor = 0.0

    def fits(self, penalties: FloatArray) -> bool:
        """Whether these penalties have a coordinate: none is below the floor."""
        return not self._penalty or not len(penalties) or float(penalties.min()) >= self.floor

    def begin(self, gaussians: Gaussian, penalties: FloatArray) -> None:
        """Choose the middle and the floor by the first batch."""
        plain = self._by.points(gaussians).numpy().astype(np.float32)
        self.origin = plain.mean(axis=0, dtype=np.float64).astype(np.float32)
        if self._penalty and len(penalties):
            low, high = float(penalties.min()), float(penalties.max())
            self.floor = low - (high - low)  # room for items that are added later

    def points(self, gaussians: Gaussian, penalties: FloatArray, names: list[str]) -> Points:
        """What is stored, (n, d')."""
        assert self.origin is not None
        plain = self._by.points(gaussians).numpy().astype(np.float32)
        if self._by is cosine and (lost := np.flatnonzero(~plain.any(axis=1))).size:
            raise InputError(
                f"the mean of {names[lost[0]]!r} is zero, and a cosine with it is no direction; leave the item out, or "
                "use another similarity"
            )
        return self._with(plain - self.origin, np.sqrt(self._by.unit * np.maximum(0, penalties - self.floor)))

    def query_points(self, queries: Gaussian) -> Points:
        """What is asked, (q, d')."""
        plain: Points = self._by.query_points(queries).numpy().astype(np.float32, copy=False)
        moved = plain if self.origin is None else plain - self.origin
        return self._with(moved, np.zeros(len(plain))) if self._penalty else moved

    def own(self, queries: Gaussian) -> FloatArray:
        """What every score of a query has beside its distances, (q,) or, where all have the same, (1,)."""
        own = self._by.own(queries)
        left_out: FloatArray = np.zeros(1, np.float32) if own is None else own.numpy().astype(np.float32, copy=False)
        return left_out - np.float32(self.floor) if self._penalty else left_out

    def _with(self, points: Points, last: FloatArray) -> Points:
        if not self._penalty:
            return points
        return np.concatenate([points, last.astype(np.float32)[:, None]], axis=1)

    def scores(self, own: FloatArray, squared: Points) -> FloatArray:
        """Scores (q, k), penalties taken off, from squared distances; −inf where there is no item.

        In numpy: a scan has just emptied the caches, and the first calls of torch after it would cost a tenth of it.
        """
        scores: FloatArray = own[:, None] - squared / np.float32(self._by.unit)
        return scores
