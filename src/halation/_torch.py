"""Helpers for torch code: checked inputs, products in full precision, temporaries of bounded size."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from halation._arrays import Array
from halation._errors import InputError, one_of

__all__ = [
    "Variant",
    "as_tensor",
    "as_variant",
    "by_tiles",
    "evaluation_mode",
    "first_derivative_only",
    "product",
    "widen",
]

T = TypeVar("T")
Variant = Literal["paper", "released"]
"""A method as in its paper, or as in its authors' released code."""

TILE = 1 << 22  # elements of the largest temporary: 16 MB in float32, small enough for allocators to reuse


def as_tensor(values: Array, name: str) -> Tensor:
    """A tensor unchanged; an array or nested list as a tensor of the same type. Complex numbers are an error.

    >>> as_tensor([[1, 2]], "x")
    tensor([[1, 2]])
    """
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()  # torch warns about read-only arrays
    try:
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be an array of numbers ({error})") from None
    if tensor.is_complex():
        raise InputError(f"{name} must hold real numbers, not {tensor.dtype}")
    return tensor


def as_variant(value: str) -> Variant:
    """The variant of that name, or an error that suggests the nearest."""
    return cast(Variant, one_of(value, ("paper", "released"), "variant"))


def widen(x: Tensor) -> Tensor:
    """Half precision widened to float32, because a distance is a small difference of large sums."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def product(x: Tensor, y: Tensor) -> Tensor:
    """x yᵀ (n, m), in the type of x and y even under autocast."""
    with torch.autocast(x.device.type, enabled=False):
        return x @ y.T


def by_tiles(n: int, m: int, per_pair: int, part: Callable[[slice, slice], Tensor]) -> Tensor:
    """The (n, m) matrix of `part(rows, columns)` over tiles whose temporaries stay within `TILE` elements.

    `per_pair` is the number of temporary elements per entry. With gradients and several tiles, each tile is computed
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


def first_derivative_only(backward: Callable[..., T]) -> Callable[..., T]:
    """Make a `backward` refuse `create_graph=True`; torch's guard misses it if the incoming gradient is constant."""

    @functools.wraps(backward)
    def once(ctx: Any, *grads: Any) -> T:
        if torch.is_grad_enabled():
            raise InputError(
                "this operation has only a first derivative, but create_graph=True needs a second; "
                "leave that loss out of the gradient penalty or Hessian, or drop create_graph"
            )
        return backward(ctx, *grads)

    return once


@contextmanager
def evaluation_mode(network: nn.Module) -> Iterator[None]:
    """Put the network in evaluation mode within the block, and restore its mode afterwards."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
