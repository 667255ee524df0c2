"""The similarities that an ordinary vector index can search (cosine, L2, CSD, Wasserstein-2), with their points."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from halation._arrays import Array
from halation._torch import product, widen
from halation.similarity._gaussian import Gaussian
from halation.similarity._geometry import minus_squared_distances, pair

__all__ = ["IndexedSimilarity", "Similarity", "cosine", "csd", "l2", "wasserstein2"]

Items = Gaussian | Array
ToPoints = Callable[[Gaussian], Tensor]


class Similarity(Protocol):
    """Anything that scores two batches of Gaussians (or plain arrays, as points): (n_a, n_b), bigger = closer."""

    def __call__(self, a: Items, b: Items, /) -> Tensor: ...


class IndexedSimilarity:
    """A similarity that ranks exactly as the L2 distance between `query_points(queries)` and `points(gallery)`.

    So a vector index can search by it without further approximation, and approximate indexes keep their recall (the
    inner-product form of the same ranking loses half of it).

    >>> import torch
    >>> from halation.similarity import csd
    >>> gallery = Gaussian(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 0.0], [-9.0, -9.0]]))
    >>> torch.cdist(csd.query_points([[0.4, 0.0]]), csd.points(gallery)).argmin(), csd([[0.4, 0.0]], gallery).argmax()
    (tensor(1), tensor(1))

    A squared distance stands for the score query_offset(queries) − squared / `squared_per_score`.

    >>> squared = torch.cdist(csd.query_points([[0.4, 0.0]]), csd.points(gallery)).square()
    >>> torch.allclose(csd.from_squared([[0.4, 0.0]], squared), csd([[0.4, 0.0]], gallery))
    True
    """

    def __init__(
        self,
        scores: Callable[[Items, Items], Tensor],
        gallery: ToPoints,
        queries: ToPoints,
        query_offset: ToPoints | None = None,
        squared_per_score: float = 1.0,
    ) -> None:
        functools.update_wrapper(self, scores)
        self._scores, self._gallery, self._queries, self._query_offset = scores, gallery, queries, query_offset
        self.squared_per_score = squared_per_score  # the squared distance that one unit of score stands for

    @property
    def name(self) -> str:
        """Its name in `halation.similarity`."""
        return str(self._scores.__name__)

    def __call__(self, a: Items, b: Items, /) -> Tensor:
        return self._scores(a, b)

    def points(self, gallery: Items) -> Tensor:
        """The points to store in the index, one row per item (n, d')."""
        return self._gallery(Gaussian.of(gallery))

    def query_points(self, queries: Items) -> Tensor:
        """The points to search the index with, one row per query (q, d')."""
        return self._queries(Gaussian.of(queries))

    def query_offset(self, queries: Items) -> Tensor | None:
        """The part of each query's scores that its point lacks, (q,); None: there is none."""
        return None if self._query_offset is None else self._query_offset(Gaussian.of(queries))

    def from_squared(self, queries: Items, squared: Tensor) -> Tensor:
        """The scores (q, k) from the squared distances between the points of q queries and any k items."""
        scores, offset = squared / -self.squared_per_score, self.query_offset(queries)
        return scores if offset is None else scores + offset.to(scores)[:, None]

    def __reduce__(self) -> str:
        """Copy and pickle by name, as for functions."""
        name: str = self._scores.__qualname__
        return name

    def __repr__(self) -> str:
        return f"halation.similarity.{self._scores.__name__}"


def _indexed(
    gallery: ToPoints,
    queries: ToPoints | None = None,
    query_offset: ToPoints | None = None,
    squared_per_score: float = 1.0,
) -> Callable[[Callable[[Items, Items], Tensor]], IndexedSimilarity]:
    """A decorator that gives a similarity its points. Without `queries`, query points are made as the gallery's are."""
    return lambda scores: IndexedSimilarity(scores, gallery, queries or gallery, query_offset, squared_per_score)


def _direction(g: Gaussian) -> Tensor:
    return normalize(widen(g.mean), dim=1)


@_indexed(_direction, query_offset=lambda g: 0.5 + 0.5 * _direction(g).square().sum(dim=1), squared_per_score=2.0)
def cosine(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Cosine of the means, μ₁·μ₂ / (‖μ₁‖ ‖μ₂‖): (n_a, n_b). Variances have no effect; a zero vector scores 0.

    >>> cosine([[3.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]])
    tensor([[1., 0.]])
    """
    a, b = pair(a, b)
    return product(normalize(a.mean, dim=1), normalize(b.mean, dim=1))


@_indexed(lambda g: widen(g.mean))
def l2(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus the squared distance of the means, −‖μ₁ − μ₂‖²: (n_a, n_b).

    >>> l2([[1.0, 1.0]], [[1.0, 1.0], [4.0, 5.0]])
    tensor([[  0., -25.]])
    """
    a, b = pair(a, b)
    return minus_squared_distances(a.mean, b.mean)


def _csd_points(g: Gaussian) -> Tensor:
    g = g.to(widen(g.mean).dtype)
    return torch.cat([g.mean, g.var.sum(dim=1, keepdim=True).sqrt()], dim=1)


def _csd_query_points(g: Gaussian) -> Tensor:
    # the query's variance adds the same to every item of the gallery, so it changes no rank
    return pad(widen(g.mean), (0, 1))


def _minus_spread(g: Gaussian) -> Tensor:
    return widen(g.mean.new_zeros(len(g))) if g.log_var is None else -widen(g.log_var).exp().sum(dim=1)


@_indexed(_csd_points, _csd_query_points, query_offset=_minus_spread)
def csd(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus the closed-form sampled distance, −(‖μ₁ − μ₂‖² + Σσ₁² + Σσ₂²): (n_a, n_b).

    The expected squared distance of two independent samples. Chun, ICLR 2024 (PCME++).

    >>> csd(Gaussian(torch.zeros(1, 2), torch.zeros(1, 2)), torch.tensor([[3.0, 4.0]]))
    tensor([[-27.]])
    """
    a, b = pair(a, b)
    spread_a = None if a.is_point else a.var.sum(dim=1)
    spread_b = None if b.is_point else b.var.sum(dim=1)
    return minus_squared_distances(a.mean, b.mean, spread_a, spread_b)


def _mean_and_std(g: Gaussian) -> Tensor:
    g = g.to(widen(g.mean).dtype)
    return torch.cat([g.mean, g.std], dim=1)


@_indexed(_mean_and_std)
def wasserstein2(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus the squared 2-Wasserstein distance, −(‖μ₁ − μ₂‖² + ‖σ₁ − σ₂‖²): (n_a, n_b).

    >>> wasserstein2(Gaussian(torch.zeros(1, 2), torch.zeros(1, 2)), torch.tensor([[3.0, 4.0]]))
    tensor([[-27.]])
    """
    a, b = pair(a, b)
    if a.is_point and b.is_point:
        return minus_squared_distances(a.mean, b.mean)
    return minus_squared_distances(_mean_and_std(a), _mean_and_std(b))
