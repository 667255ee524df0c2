"""From whatever the caller has to a tensor of real numbers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from halation._arrays import Array
from halation._errors import InputError

__all__ = ["as_tensor"]


def as_tensor(values: Array, name: str) -> Tensor:
    """A tensor as it is, an array or nested list as a tensor of its type; complex numbers are refused.

    >>> as_tensor([[1, 2]], "x")
    tensor([[1, 2]])
    """
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()  # torch would warn: a tensor cannot promise not to write
    try:
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be an array of numbers ({error})") from None
    if tensor.is_complex():
        raise InputError(f"{name} must hold real numbers, not {tensor.dtype}")
    return tensor
