"""Helpers of the similarities: two sides in one type, squared distances by one matrix product."""

from __future__ import annotations

import torch
from torch import Tensor

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import product
from halation.similarity._gaussian import Gaussian

__all__ = ["gram_factors", "in_place", "minus_squared_distances", "pair"]


def pair(a: Gaussian | Array, b: Gaussian | Array) -> tuple[Gaussian, Gaussian]:
    """Both sides as Gaussians of one dimension and one floating type of at least 32 bits."""
    a, b = Gaussian.of(a), Gaussian.of(b)
    if a.dim != b.dim:
        raise InputError(f"the two sides have different dimensions: {a.dim} and {b.dim}")
    dtype = torch.promote_types(torch.promote_types(a.mean.dtype, b.mean.dtype), torch.float32)
    return a.to(dtype), b.to(dtype)


def minus_squared_distances(x: Tensor, y: Tensor, plus_x: Tensor | None = None, plus_y: Tensor | None = None) -> Tensor:
    """−(‖x_i − y_j‖² + plus_x[i] + plus_y[j]), never positive, by one matrix product: (n, d), (m, d) → (n, m)."""
    total = product(*gram_factors(x, y, plus_x, plus_y))
    return total.clamp(max=0) if total.requires_grad else total.clamp_(max=0)


def gram_factors(
    x: Tensor, y: Tensor, plus_x: Tensor | None = None, plus_y: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(n, d + 2) and (m, d + 2) whose product is −(‖x_i − y_j‖² + plus_x[i] + plus_y[j]).

    2 x·y − ‖x‖² − ‖y‖² = [2x, −‖x‖², −1] · [y, 1, ‖y‖²]: the norms are part of the product, so the (n, m) result is
    written once.
    """
    with torch.autocast(x.device.type, enabled=False):
        centre = y.detach().mean(dim=0)  # distances do not change, but a common offset would cost digits
        x, y = x - centre, y - centre
        from_x = torch.linalg.vecdot(x, x) if plus_x is None else torch.linalg.vecdot(x, x) + plus_x  # (n,)
        from_y = torch.linalg.vecdot(y, y) if plus_y is None else torch.linalg.vecdot(y, y) + plus_y  # (m,)
        left = torch.cat([2 * x, -from_x[:, None], -torch.ones_like(from_x)[:, None]], dim=1)
        right = torch.cat([y, torch.ones_like(from_y)[:, None], from_y[:, None]], dim=1)
    return left, right


def in_place(x: Tensor, *others: float | Tensor) -> Tensor | None:
    """The `out=` of an operation on x and others: x itself if it may be overwritten, None if autograd needs it."""
    kept = torch.is_grad_enabled() and any(isinstance(y, Tensor) and y.requires_grad for y in (x, *others))
    return None if kept else x
