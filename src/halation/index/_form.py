"""How a similarity lives in an L2 index: the points it stores, the points it is asked, and back to scores."""

from __future__ import annotations

import numpy as np
import torch

from halation._arrays import FloatArray
from halation._errors import InputError
from halation.index._backend import Points
from halation.similarity import Gaussian, IndexedSimilarity, Similarity, cosine, csd, l2

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

    def ask(self, queries: Gaussian) -> tuple[Points, FloatArray]:
        """What is asked, (q, d'), and what every score has beside its distances: (q,), or (1,) if all have the same."""
        plain, own = _csd_asked(queries) if self._by is csd else _asked(self._by, queries)
        moved = plain if self.origin is None else plain - self.origin
        if not self._penalty:
            return moved, own
        return self._with(moved, np.zeros(len(plain))), own - np.float32(self.floor)

    def _with(self, points: Points, last: FloatArray) -> Points:
        if not self._penalty:
            return points
        return np.concatenate([points, last.astype(np.float32)[:, None]], axis=1)

    def scores(self, own: FloatArray, squared: Points) -> FloatArray:
        """Scores (q, k), penalties taken off, from squared distances; −inf where there is no item."""
        scores: FloatArray = own[:, None] - squared / np.float32(self._by.unit)
        return scores


@torch.inference_mode()
def _asked(similarity: IndexedSimilarity, queries: Gaussian) -> tuple[Points, FloatArray]:
    points, own = similarity.query_points(queries), similarity.own(queries)
    left_out = np.zeros(1, np.float32) if own is None else own.numpy().astype(np.float32, copy=False)
    return points.numpy().astype(np.float32, copy=False), left_out


def _csd_asked(queries: Gaussian) -> tuple[Points, FloatArray]:
    """`_asked` of CSD in numpy alone: caches are cold after a scan, and torch's first calls cost a tenth of one."""
    mean = queries.mean.numpy()
    points = np.zeros((len(mean), mean.shape[1] + 1), np.float32)
    points[:, :-1] = mean
    if queries.log_var is None:
        return points, np.zeros(1, np.float32)
    with np.errstate(over="ignore"):
        return points, -np.exp(queries.log_var.numpy()).sum(axis=1)
