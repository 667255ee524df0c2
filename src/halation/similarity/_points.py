"""The similarities an ordinary vector index serves: cosine, L2, CSD, Wasserstein-2."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from halation._arrays import Array
from halation._torch import product, widen
from halation.similarity._gaussian import Gaussian
from halation.similarity._geometry import minus_squared_distances, pair
from halation.similarity._indexed import indexed

__all__ = ["cosine", "csd", "l2", "wasserstein2"]


def _direction(g: Gaussian) -> Tensor:
    return normalize(widen(g.mean), dim=1)


@indexed(_direction, own=lambda g: 0.5 + 0.5 * _direction(g).square().sum(dim=1), unit=2.0)
def cosine(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Cosine of the means, μ₁·μ₂ / (‖μ₁‖ ‖μ₂‖): (n_a, n_b). Variances play no part; a zero vector scores 0.

    >>> cosine([[3.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]])
    tensor([[1., 0.]])
    """
    a, b = pair(a, b)
    return product(normalize(a.mean, dim=1), normalize(b.mean, dim=1))


@indexed(lambda g: widen(g.mean))
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
    # the query's own variance is the same for every item of the gallery: it moves no rank
    return pad(widen(g.mean), (0, 1))


def _minus_spread(g: Gaussian) -> Tensor:
    return widen(g.mean.new_zeros(len(g))) if g.log_var is None else -widen(g.log_var).exp().sum(dim=1)


@indexed(_csd_points, _csd_query_points, own=_minus_spread)
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


@indexed(_mean_and_std)
def wasserstein2(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus the squared 2-Wasserstein distance, −(‖μ₁ − μ₂‖² + ‖σ₁ − σ₂‖²): (n_a, n_b).

    >>> wasserstein2(Gaussian(torch.zeros(1, 2), torch.zeros(1, 2)), torch.tensor([[3.0, 4.0]]))
    tensor([[-27.]])
    """
    a, b = pair(a, b)
    if a.is_point and b.is_point:
        return minus_squared_distances(a.mean, b.mean)
    return minus_squared_distances(_mean_and_std(a), _mean_and_std(b))
