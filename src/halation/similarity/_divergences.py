"""Similarities between densities. They are undefined at zero variance, so points are refused."""

from __future__ import annotations

import torch
from torch import Tensor

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import by_tiles, product
from halation.similarity._gaussian import Gaussian
from halation.similarity._geometry import pair

__all__ = ["bhattacharyya", "expected_likelihood", "jeffreys", "kl", "reverse_kl"]


def expected_likelihood(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Logarithm of ∫ p₁ p₂ without its constant, −½ Σ ((μ₁−μ₂)²/(v₁+v₂) + ln(v₁+v₂)), v = σ²: (n_a, n_b).

    >>> unit = Gaussian(torch.zeros(1, 2), torch.zeros(1, 2))
    >>> expected_likelihood(unit, unit)
    tensor([[-0.6931]])
    """
    a, b = _clouds(a, b, "expected_likelihood")
    var_a, var_b = a.var, b.var

    def part(rows: slice, columns: slice) -> Tensor:
        total = var_a[rows, None] + var_b[columns]  # (rows, columns, d)
        difference = a.mean[rows, None] - b.mean[columns]
        return -0.5 * (difference.square() / total + total.log()).sum(dim=2)

    return by_tiles(len(a), len(b), a.dim, part)


def kl(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus KL(a ‖ b) = ½ Σ (v₁/v₂ + (μ₁−μ₂)²/v₂ − 1 + ln v₂ − ln v₁), v = σ²: (n_a, n_b).

    >>> unit = Gaussian(torch.zeros(1, 2), torch.zeros(1, 2))
    >>> kl(unit, Gaussian(torch.ones(1, 2), torch.zeros(1, 2)))
    tensor([[-1.]])
    """
    a, b = _clouds(a, b, "kl")
    return -_kl(a, b)


def reverse_kl(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus KL(b ‖ a), the divergence with the two sides exchanged: (n_a, n_b).

    >>> unit = Gaussian(torch.zeros(1, 2), torch.zeros(1, 2))
    >>> wide = Gaussian(torch.zeros(1, 2), torch.ones(1, 2))
    >>> torch.equal(reverse_kl(unit, wide), kl(wide, unit).T)
    True
    """
    a, b = _clouds(a, b, "reverse_kl")
    return -_kl(b, a).T


def jeffreys(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus Jeffreys' divergence, −(KL(a ‖ b) + KL(b ‖ a)): (n_a, n_b). (PCME's code calls it "js".)

    >>> unit = Gaussian(torch.zeros(1, 2), torch.zeros(1, 2))
    >>> jeffreys(unit, Gaussian(torch.ones(1, 2), torch.zeros(1, 2)))
    tensor([[-2.]])
    """
    a, b = _clouds(a, b, "jeffreys")
    return -(_kl(a, b) + _kl(b, a).T)


def bhattacharyya(a: Gaussian | Array, b: Gaussian | Array) -> Tensor:
    """Minus the Bhattacharyya distance, ⅛ Σ (μ₁−μ₂)²/v̄ + ½ Σ ln(v̄/√(v₁v₂)), v̄ = (v₁+v₂)/2: (n_a, n_b).

    >>> unit = Gaussian(torch.zeros(1, 2), torch.zeros(1, 2))
    >>> bhattacharyya(unit, Gaussian(torch.ones(1, 2), torch.zeros(1, 2)))
    tensor([[-0.2500]])
    """
    a, b = _clouds(a, b, "bhattacharyya")
    assert a.log_var is not None
    assert b.log_var is not None
    var_a, var_b = a.var, b.var
    from_a, from_b = 0.25 * a.log_var.sum(dim=1), 0.25 * b.log_var.sum(dim=1)  # (n_a,), (n_b,)

    def part(rows: slice, columns: slice) -> Tensor:
        middle = 0.5 * (var_a[rows, None] + var_b[columns])  # (rows, columns, d)
        difference = a.mean[rows, None] - b.mean[columns]
        shared = (0.125 * difference.square() / middle + 0.5 * middle.log()).sum(dim=2)
        return from_a[rows, None] + from_b[columns] - shared

    return by_tiles(len(a), len(b), a.dim, part)


def _kl(a: Gaussian, b: Gaussian) -> Tensor:
    """KL(a ‖ b) of every pair by one product of width 2d: (n_a, n_b)."""
    assert a.log_var is not None
    assert b.log_var is not None
    centre = b.mean.detach().mean(dim=0)  # a common offset cancels, but would cost digits
    mean_a, mean_b = a.mean - centre, b.mean - centre
    precision = (-b.log_var).exp()  # (n_b, d)
    left = torch.cat([a.var + mean_a.square(), mean_a], dim=1)  # (n_a, 2d)
    right = torch.cat([precision, -2 * mean_b * precision], dim=1)  # (n_b, 2d)
    from_b = (mean_b.square() * precision + b.log_var).sum(dim=1)
    return 0.5 * (product(left, right) + from_b - a.log_var.sum(dim=1)[:, None] - a.dim)


def _clouds(a: Gaussian | Array, b: Gaussian | Array, name: str) -> tuple[Gaussian, Gaussian]:
    a, b = pair(a, b)
    if a.is_point or b.is_point:
        which = "both sides are" if a.is_point and b.is_point else f"the {'first' if a.is_point else 'second'} side is"
        raise InputError(
            f"{name} is undefined at zero variance and {which} made of points; "
            "use cosine, l2, csd or wasserstein2, or give the points a log_var"
        )
    return a, b
