"""What all similarities stand on: a common floating type, squared distances by one matrix product, bounded tiles."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from halation._arrays import Array
from halation._errors import InputError
from halation.gaussian import Gaussian

__all__ = ["by_tiles", "gram_factors", "in_place", "minus_squared_distances", "pair", "product", "widen"]

TILE = 1 << 22  # elements of the largest temporary: 16 MB in float32, small enough for allocators to use again


def widen(x: Tensor) -> Tensor:
    """Half precision as float32: a distance is a small difference of large sums."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def pair(a: Gaussian | Array, b: Gaussian | Array) -> tuple[Gaussian, Gaussian]:
    """Both sides as Gaussians of one dimension and one floating type of at least 32 bits."""
    a, b = Gaussian.of(a), Gaussian.of(b)
    if a.dim != b.dim:
        raise InputError(f"the two sides have different dimensions: {a.dim} and {b.dim}")
    dtype = torch.promote_types(torch.promote_types(a.mean.dtype, b.mean.dtype), torch.float32)
    return a.to(dtype), b.to(dtype)


def product(x: Tensor, y: Tensor) -> Tensor:
    """x yᵀ (n, m), in the type of x and y even where autocast would take half precision."""
    with torch.autocast(x.device.type, enabled=False):
        return x @ y.T


def minus_squared_distances(x: Tensor, y: Tensor, plus_x: Tensor | None = None, plus_y: Tensor | None = None) -> Tensor:
    """−(‖x_i − y_j‖² + plus_x[i] + plus_y[j]), never positive, by one matrix product: (n, d), (m, d) → (n, m)."""
    total = product(*gram_factors(x, y, plus_x, plus_y))
    return total.clamp(max=0) if total.requires_grad else total.clamp_(max=0)


def gram_factors(
    x: Tensor, y: Tensor, plus_x: Tensor | None = None, plus_y: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(n, d + 2) and (m, d + 2) whose product is −(‖x_i − y_j‖² + plus_x[i] + plus_y[j]).

    2 x·y − ‖x‖² − ‖y‖² = [2x, −‖x‖², −1] · [y, 1, ‖y‖²]: the norms ride along in the product, so the (n, m) result
    is written once.
    """
    with torch.autocast(x.device.type, enabled=False):
        centre = y.detach().mean(dim=0)  # distances do not change, but a common offset would eat their digits
        x, y = x - centre, y - centre
        from_x = torch.linalg.vecdot(x, x) if plus_x is None else torch.linalg.vecdot(x, x) + plus_x  # (n,)
        from_y = torch.linalg.vecdot(y, y) if plus_y is None else torch.linalg.vecdot(y, y) + plus_y  # (m,)
        left = torch.cat([2 * x, -from_x[:, None], -torch.ones_like(from_x)[:, None]], dim=1)
        right = torch.cat([y, torch.ones_like(from_y)[:, None], from_y[:, None]], dim=1)
    return left, right


def in_place(x: Tensor, *others: float | Tensor) -> Tensor | None:
    """The `out=` of an operation on x and others that may overwrite x: x itself, or None where autograd keeps it."""
    kept = torch.is_grad_enabled() and any(isinstance(y, Tensor) and y.requires_grad for y in (x, *others))
    return None if kept else x


def by_tiles(n: int, m: int, per_pair: int, part: Callable[[slice, slice], Tensor]) -> Tensor:
    """The (n, m) matrix of `part(rows, columns)` over tiles whose temporaries stay within `TILE` elements.

    `per_pair` is the size of a temporary for one entry. Where a gradient is wanted, each of several tiles is computed
    again in the backward pass instead of being kept.
    """
    entries = max(1, TILE // max(1, per_pair))
    if n * m <= entries:
        return part(slice(0, n), slice(0, m))
    side = max(1, math.isqrt(entries))
    high, wide = min(n, max(side, entries // m)), min(m, max(side, entries // n))
    run = part
    if torch.is_grad_enabled():
        run = functools.partial(checkpoint, part, use_reentrant=False, preserve_rng_state=False)
    return torch.cat([torch.cat([run(i, j) for j in _slices(m, wide)], dim=1) for i in _slices(n, high)])


def _slices(total: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, total)) for start in range(0, total, step)]
