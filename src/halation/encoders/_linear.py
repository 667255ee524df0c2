"""x Wᵀ + b by the quicker of the two libraries that torch carries for it."""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

__all__ = ["linear"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b over the last dimension; x (…, d), weight (s, d), bias (s,) → (…, s).

    torch takes MKL for products in float32, which on an AMD processor had less than half the speed of oneDNN; where the
    processor is not Intel's, oneDNN is asked instead. Anywhere else, and for every other type, this is
    `torch.nn.functional.linear`.

    >>> linear(torch.ones(2, 3), torch.ones(1, 3), torch.tensor([-4.0]))
    tensor([[-1.],
            [-1.]])
    """
    if not _suits(x, weight, bias):
        return functional.linear(x, weight, bias)
    rows = x.reshape(-1, x.shape[-1])
    if torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in (x, weight, bias)):
        out = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    else:
        out = _onednn(rows, weight, bias)
    return out.view(*x.shape[:-1], len(weight))  # type: ignore[no-any-return]


def _suits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return (
        x.dtype == weight.dtype == torch.float32
        and (bias is None or (bias.dtype == torch.float32 and bias.shape == weight.shape[:1]))
        and x.device.type == "cpu"
        and x.numel() * len(weight) > 0
        and _is_quicker()
        and torch._C._get_mkldnn_enabled()  # what torch.backends.mkldnn.flags sets
        and not torch.is_autocast_enabled("cpu")
    )


@functools.cache
def _is_quicker() -> bool:
    """Whether torch multiplies by MKL here, on a processor that MKL was not made for, and oneDNN is there as well."""
    there: bool = torch._C.has_mkl and torch._C._has_mkldnn
    return there and hasattr(torch.ops.mkldnn, "_linear_pointwise") and not _is_intel()


def _is_intel() -> bool:
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        return "GenuineIntel" in listed.read_text(encoding="utf-8", errors="replace")[:4096]
    return "AuthenticAMD" not in platform.processor()  # elsewhere only what says that it is not


def _onednn(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    said = None if bias is None else bias.contiguous()
    out: Tensor = torch.ops.mkldnn._linear_pointwise(_dense(rows), _dense(weight), said, "none", [], "")
    return out


def _dense(matrix: Tensor) -> Tensor:
    """By rows or by columns without gaps: of anything else oneDNN makes its slowest product."""
    return matrix if matrix.is_contiguous() or matrix.T.is_contiguous() else matrix.contiguous()


class _Linear(torch.autograd.Function):
    """oneDNN's product has no gradient of its own."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return _onednn(rows, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        wants_rows, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            _onednn(grad, weight.T) if wants_rows else None,
            _onednn(grad.T, rows.T) if wants_weight else None,
            grad.sum(dim=0) if wants_bias else None,
        )
