"""Maximum mean discrepancy: two sets of embeddings should have the same distribution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from halation._arrays import Array
from halation._errors import InputError
from halation.losses._checks import as_points, check_finite

__all__ = ["MMD", "mmd"]

_NOTHING = 1e-13  # relative to the squared lengths: the rounding error of equal points in float64


def mmd(x: Array, y: Array, gamma: float = 0.5, *, check: bool = False) -> Tensor:
    """mean k(x, x') − 2 mean k(x, y) + mean k(y, y') with k = exp(−γ‖x − y‖), the distance not squared.

    Gretton et al., JMLR 2012, with the kernel of PVSE (Song and Soleymani, CVPR 2019). x (n, d), y (m, d); or (n, K, d)
    and (m, K, d), where each of the K embeddings counts. The mean is over all pairs, also of an item with itself.

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
    distance: Tensor = _Distance.apply(x, y)  # type: ignore[no-untyped-call]
    return (-gamma * distance).exp().mean()


class _Distance(torch.autograd.Function):
    """‖x_i − y_j‖, (n, d) and (m, d) → (n, m), and its gradient Σ_j g_ij (x_i − y_j) / ‖x_i − y_j‖, as matrix products.

    float32 inputs are computed in float64, so that the cancellation in ‖x‖² + ‖y‖² − 2 x·y stays below float32's
    rounding; nearer points have distance 0 and gradient 0. float64 inputs are subtracted before squaring: exact, but
    several times slower.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.dtype = x.dtype
        if x.dtype == torch.float64:
            distance = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
        else:
            x, y = x.double(), y.double()
            lengths = x.square().sum(1)[:, None] + y.square().sum(1)
            squares = torch.addmm(lengths, x, y.T, alpha=-2)
            distance = squares.where(squares > _NOTHING * lengths, 0.0).sqrt()
        ctx.save_for_backward(x, y, distance)
        return distance.to(ctx.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, y, distance = ctx.saved_tensors
        share = torch.where(distance > 0, grad / distance.where(distance > 0, 1.0), 0.0)  # (n, m)
        by_x = (share.sum(1, keepdim=True) * x - share @ y).to(ctx.dtype) if ctx.needs_input_grad[0] else None
        by_y = (share.sum(0)[:, None] * y - share.T @ x).to(ctx.dtype) if ctx.needs_input_grad[1] else None
        return by_x, by_y
