"""A similarity as a value: a callable, and for some the points an ordinary L2 index stores."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from halation._arrays import Array
from halation.similarity._gaussian import Gaussian

__all__ = ["IndexedSimilarity", "Similarity", "indexed"]

Items = Gaussian | Array
ToPoints = Callable[[Gaussian], Tensor]


class Similarity(Protocol):
    """Anything that scores two batches of Gaussians (or plain arrays, as points): (n_a, n_b), bigger = closer."""

    def __call__(self, a: Items, b: Items, /) -> Tensor: ...


class IndexedSimilarity:
    """A similarity that ranks a gallery exactly as the L2 distance between `query_points(q)` and `points(gallery)`.

    So a vector index serves it without approximation of its own, and approximate indexes keep their recall (the
    inner-product form of the same ranking loses half of it).

    >>> import torch
    >>> from halation.similarity import csd
    >>> gallery = Gaussian(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 0.0], [-9.0, -9.0]]))
    >>> torch.cdist(csd.query_points([[0.4, 0.0]]), csd.points(gallery)).argmin(), csd([[0.4, 0.0]], gallery).argmax()
    (tensor(1), tensor(1))

    From a squared distance back to the score: own(q) − squared / `unit`, where own(q) is what the points leave out.

    >>> squared = torch.cdist(csd.query_points([[0.4, 0.0]]), csd.points(gallery)).square()
    >>> torch.allclose(csd.from_squared([[0.4, 0.0]], squared), csd([[0.4, 0.0]], gallery))
    True
    """

    def __init__(
        self,
        scores: Callable[[Items, Items], Tensor],
        gallery: ToPoints,
        queries: ToPoints,
        own: ToPoints | None = None,
        unit: float = 1.0,
    ) -> None:
        functools.update_wrapper(self, scores)
        self._scores, self._gallery, self._queries, self._own = scores, gallery, queries, own
        self.unit = unit  # what one unit of score is worth in squared distance

    @property
    def name(self) -> str:
        """Its name in `halation.similarity`."""
        return str(self._scores.__name__)

    def __call__(self, a: Items, b: Items, /) -> Tensor:
        return self._scores(a, b)

    def points(self, gallery: Items) -> Tensor:
        """What the index stores, one row per item (n, d')."""
        return self._gallery(Gaussian.of(gallery))

    def query_points(self, queries: Items) -> Tensor:
        """What the index is searched with, one row per query (q, d')."""
        return self._queries(Gaussian.of(queries))

    def own(self, queries: Items) -> Tensor | None:
        """What the points of queries leave out of every score, (q,); None: nothing."""
        return None if self._own is None else self._own(Gaussian.of(queries))

    def from_squared(self, queries: Items, squared: Tensor) -> Tensor:
        """The scores that squared distances (q, k) between the points of q queries and any k items stand for."""
        scores, own = squared / -self.unit, self.own(queries)
        return scores if own is None else scores + own.to(scores)[:, None]

    def __reduce__(self) -> str:
        """Copied and pickled by name, as a function is."""
        name: str = self._scores.__qualname__
        return name

    def __repr__(self) -> str:
        return f"halation.similarity.{self._scores.__name__}"


def indexed(
    gallery: ToPoints, queries: ToPoints | None = None, own: ToPoints | None = None, unit: float = 1.0
) -> Callable[[Callable[[Items, Items], Tensor]], IndexedSimilarity]:
    """Give a similarity its points; queries take the gallery's form unless told otherwise."""
    return lambda scores: IndexedSimilarity(scores, gallery, queries or gallery, own, unit)
