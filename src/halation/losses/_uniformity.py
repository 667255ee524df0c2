"""Uniformity: embeddings should spread over the whole space."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from halation._arrays import Array
from halation._errors import InputError
from halation.losses._checks import as_points, check_finite
from halation.similarity import l2

__all__ = ["Uniformity", "uniformity"]


def uniformity(x: Array, scale: float = 2.0, *, check: bool = False) -> Tensor:
    """ln mean_{i<j} exp(−scale·‖x_i − x_j‖²).

    Wang and Isola, ICML 2020. x (n, d), or samples (n, J, d) that count one by one; PCME puts all image and caption
    samples together (weight 10 for CUB, 0 for COCO).

    >>> uniformity(torch.tensor([[0.0], [1.0]]))
    tensor(-2.)
    """
    x = as_points("x", x)
    x = x.reshape(-1, x.shape[-1])
    if len(x) < 2:
        raise InputError("uniformity needs at least two points")
    if check:
        check_finite("x", x)
    same = torch.eye(len(x), dtype=torch.bool, device=x.device)
    exponents = (scale * l2(x, x)).masked_fill(same, -torch.inf)  # (n, n): every pair twice
    return exponents.flatten().logsumexp(dim=0) - math.log(len(x) * (len(x) - 1))


class Uniformity(nn.Module):
    """`uniformity` with its scale."""

    def __init__(self, scale: float = 2.0, *, check: bool = False) -> None:
        super().__init__()
        self.scale, self.check = scale, check

    def extra_repr(self) -> str:
        return f"scale={self.scale:g}"

    def forward(self, x: Array) -> Tensor:
        """x (n, d) or (n, J, d); a scalar."""
        return uniformity(x, self.scale, check=self.check)
