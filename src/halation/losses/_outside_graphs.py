"""Compiled loops and their autograd Functions stay out of the graphs of torch.compile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch._compile import _disable_dynamo

__all__ = ["outside_graphs"]

F = TypeVar("F", bound=Callable[..., Any])


def outside_graphs(function: F) -> F:
    """As `torch.compiler.disable`, which would load the compiler (seconds) for those who never compile anything."""
    apart = _disable_dynamo(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return apart(*args, **kwargs) if torch.compiler.is_dynamo_compiling() else function(*args, **kwargs)

    return cast(F, call)
