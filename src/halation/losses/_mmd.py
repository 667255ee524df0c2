"""Maximum mean discrepancy: two clouds of embeddings should lie in the same place."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation._arrays import Array
from halation._errors import InputError
from halation.losses._checks import as_points, check_finite

__all__ = ["MMD", "mmd"]


def mmd(x: Array, y: Array, gamma: float = 0.5, *, check: bool = False) -> Tensor:
    """mean k(x, x') − 2 mean k(x, y) + mean k(y, y') with k = exp(−γ‖x − y‖), the distance not squared.

    Gretton et al., JMLR 2012, with the kernel of PVSE (Song and Soleymani, CVPR 2019). x (n, d), y (m, d), or (n, K, d)
    and (m, K, d), whose K embeddings count one by one. All pairs are averaged, an item with itself included.

    >>> mmd(torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0], [2.0]]))
    tensor(0.)
    """
    x, y = as_points("x", x), as_points("y", y)
    if x.shape[-1] != y.shape[-1]:
        raise InputError(f"x and y have different dimensions: {x.shape[-1]} and {y.shape[-1]}")
    if check:
        check_finite("x", x)
        check_finite("y", y)
    dtype = torch.promote_types(x.dtype, y.dtype)
    x, y = x.reshape(-1, x.shape[-1]).to(dtype), y.reshape(-1, y.shape[-1]).to(dtype)
    return _kernel(x, x, gamma) - 2 * _kernel(x, y, gamma) + _kernel(y, y, gamma)


class MMD(nn.Module):
    """`mmd` with its kernel width."""

    def __init__(self, gamma: float = 0.5, *, check: bool = False) -> None:
        super().__init__()
        self.gamma, self.check = gamma, check

    def extra_repr(self) -> str:
        return f"gamma={self.gamma:g}"

    def forward(self, x: Array, y: Array) -> Tensor:
        """x (n, d), y (m, d); a scalar."""
        return mmd(x, y, self.gamma, check=self.check)


def _kernel(x: Tensor, y: Tensor, gamma: float) -> Tensor:
    # subtract before squaring: equal points are then at distance 0 exactly, with gradient 0
    return (-gamma * torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")).exp().mean()
