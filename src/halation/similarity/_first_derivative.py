"""For autograd Functions whose backward pass autograd cannot look into: a second derivative is refused, not zero."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from halation._errors import InputError

__all__ = ["first_derivative_only"]

T = TypeVar("T")


def first_derivative_only(backward: Callable[..., T]) -> Callable[..., T]:
    """Refuse `create_graph=True`; torch's own guard lets it pass where the incoming gradient is a constant."""

    @functools.wraps(backward)
    def once(ctx: Any, *grads: Any) -> T:
        if torch.is_grad_enabled():
            raise InputError(
                "this operation has a first derivative only, and its gradient was asked for with create_graph=True; "
                "leave that loss out of the gradient penalty or Hessian, or drop create_graph"
            )
        return backward(ctx, *grads)

    return once
