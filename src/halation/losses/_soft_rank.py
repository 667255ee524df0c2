"""The differentiable rank in O(n log n) time and O(n) memory per row; every ranking loss uses it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from halation._arrays import Array
from halation._torch import first_derivative_only, widen
from halation.losses._checks import as_mask, as_relevance, as_temperature, check_finite, check_matrix
from halation.losses._compiled_sums import rank_and_slope_sums, slope_sums
from halation.losses._sigmoid_sums import BLOCK, Row, rank_and_slope_sum

__all__ = ["blocked_sums", "mid_rank", "on_host", "outside_graphs", "sigmoid_sums", "soft_rank"]

F = TypeVar("F", bound=Callable[..., Any])

CHUNK = 1 << 18  # scores per step on the host: a megabyte per temporary, so that they stay in the cache
CHUNK_ELSEWHERE = 1 << 24  # on other devices, where each operation has to be sent and should be large


def outside_graphs(function: F) -> F:
    """Keep a function out of the graphs of torch.compile, which cannot trace compiled loops.

    `torch.compiler.disable` alone would load the compiler at import, which takes seconds; here only compiling does.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return torch.compiler.disable(function)(*args, **kwargs)  # type: ignore[no-untyped-call]
        return function(*args, **kwargs)

    return cast(F, call)


def soft_rank(scores: Tensor, temperature: float, *, mask: Array | None = None, check: bool = False) -> Tensor:
    """Differentiable rank of every candidate within its row, 1 = best.

        R(q, i) = 1 + Σ_{j≠i} σ((S[q, j] − S[q, i]) / τ)

    Smooth-AP (Brown et al., ECCV 2020), DAA (Li et al., NeurIPS 2022). The sum is not formed pair by pair:
    `_sigmoid_sums` explains how n sums take O(n) once the row is sorted, exact up to rounding for any τ.

    scores (q, n) of any floating type (half precision is ranked in float32); mask (q, n) or (n,) bool, True = counts. A
    candidate that does not count changes no rank, has rank 0 and gets no gradient. Returns (q, n).

    >>> soft_rank(torch.tensor([[0.9, 0.1, 0.5]]), temperature=0.01)
    tensor([[1., 3., 2.]])
    >>> soft_rank(torch.tensor([[0.9, 0.1, 0.5]]), temperature=0.01, mask=torch.tensor([False, True, True]))
    tensor([[0., 2., 1.]])
    """
    check_matrix("scores", scores)
    mask = None if mask is None else as_mask(mask, scores)
    if check:
        check_finite("scores", scores, mask)
    if mask is None:
        return sigmoid_sums(scores, None, temperature) + 1
    # a candidate that does not count still takes a position in the sorted row: give it a value that cannot make NaN
    lowest = scores.detach().masked_fill(~mask, math.inf).amin(dim=1, keepdim=True)
    kept = torch.where(mask, scores, lowest.nan_to_num(posinf=0.0))
    return (sigmoid_sums(kept, mask, temperature) + 1) * mask


@outside_graphs
def mid_rank(values: Array, *, mask: Array | None = None) -> Tensor:
    """Exact rank within the row, the limit of `soft_rank` as τ → 0. Equal values share the mean of their ranks.

    values (q, n) of any real type, mask as in `soft_rank`. Returns (q, n) without gradient; a row with NaN is NaN.

    >>> mid_rank(torch.tensor([[0.5, 0.9, 0.5]]))
    tensor([[2.5000, 1.0000, 2.5000]])
    """
    x = widen(as_relevance(values, name="values"))
    counts = torch.ones_like(x, dtype=torch.bool) if mask is None else as_mask(mask, x)
    x = x.masked_fill(~counts, -math.inf)
    rising = x.sort(dim=1).values
    below = torch.searchsorted(rising, x)  # (q, n): how many are smaller
    not_above = torch.searchsorted(rising, x, right=True)
    below = torch.maximum(below, (~counts).sum(dim=1, keepdim=True))  # masked values are below even −∞
    rank = x.shape[1] + 0.5 - 0.5 * (below + not_above).to(x.dtype)
    return rank.masked_fill(x.isnan().any(dim=1, keepdim=True), math.nan).masked_fill(~counts, 0)


@outside_graphs
def sigmoid_sums(scores: Tensor, weights: Tensor | None, temperature: float) -> Tensor:
    """Σ_{j≠i} a_j σ((s_j − s_i)/τ) within each row: (q, n). Weights a (q, n) are constants, 1 unless given."""
    result: Tensor = _SigmoidSums.apply(scores, weights, as_temperature(temperature))  # type: ignore[no-untyped-call]
    return result


class _SigmoidSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, weights: Tensor | None, temperature: float) -> Tensor:
        values, wanted = widen(scores), ctx.needs_input_grad[0]
        weights = None if weights is None else weights.to(values.dtype)
        if on_host(values):
            sums, slopes, order = rank_and_slope_sums(values, weights, temperature, slopes=wanted)
        else:
            falling, order = values.sort(dim=1, descending=True)
            sorted_weights = None if weights is None else weights.gather(1, order)
            sums, slopes = (_unsort(total, order) for total in blocked_sums(falling, sorted_weights, temperature))
        ctx.save_for_backward(values, order, weights, slopes)
        ctx.temperature, ctx.dtype = temperature, scores.dtype
        return sums

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """With w = σ'((s_i − s_m)/τ) and g the incoming gradient: ∂/∂s_m = (a_m Σ_i w g_i − g_m Σ_i w a_i)/τ."""
        values, order, weights, slopes = ctx.saved_tensors
        grad = grad.to(values.dtype)
        if on_host(values):
            result = slope_sums(values, grad, ctx.temperature, order)
        else:
            falling, sorted_grad = values.gather(1, order), grad.gather(1, order)
            result = _unsort(blocked_sums(falling, sorted_grad, ctx.temperature)[1], order)
        if weights is not None:
            result.mul_(weights)
        result.addcmul_(grad, slopes, value=-1).div_(ctx.temperature)
        return _saturated(result, ctx.dtype), None, None


def on_host(values: Tensor) -> bool:
    """Whether the compiled loop can read the tensor; elsewhere the sums are made of tensor operations."""
    return values.is_cpu


def _unsort(values: Tensor, order: Tensor) -> Tensor:
    """Sorted values in the original order of the scores."""
    return torch.empty_like(values).scatter_(1, order, values)


def blocked_sums(falling: Tensor, weights: Tensor | None, temperature: float) -> tuple[Tensor, Tensor]:
    """The rank and slope sums of sorted rows, by tensor operations alone: for any device."""
    ranks, slopes = torch.empty_like(falling), torch.empty_like(falling)
    for rows in _chunks(falling):
        part = falling[rows]
        row, a = _cut(part, temperature, torch.ones_like(part) if weights is None else weights[rows])
        ranks[rows], slopes[rows] = (_uncut(total, falling) for total in rank_and_slope_sum(row, a))
    return ranks, slopes


def _saturated(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """The gradient in the type of the scores; half precision saturates instead of overflowing."""
    if grad.dtype == dtype:
        return grad
    limits = torch.finfo(dtype)
    return grad.clamp_(limits.min, limits.max).to(dtype)


def _chunks(matrix: Tensor) -> list[slice]:
    rows, n = matrix.shape
    size = CHUNK if matrix.is_cpu else CHUNK_ELSEWHERE
    step = max(size // n, 128 if n > 1024 else 1)  # long rows take many steps: work on more rows at once
    return [slice(start, start + step) for start in range(0, rows, step)]


def _cut(falling: Tensor, temperature: float, weights: Tensor) -> tuple[Row, Tensor]:
    """Sorted rows (r, n) and their weights as blocks (blocks, b, r); padding has weight 0."""
    n = falling.shape[1]
    extra = -n % BLOCK if n > BLOCK else 0
    columns = falling.T.contiguous()  # (n, r): positions first, so that one step works on all rows at once
    if extra:
        columns = torch.cat([columns, columns[-1:].expand(extra, -1)])
    row = Row.cut(columns, temperature)
    return row, pad(weights.T, (0, 0, 0, extra)).contiguous().view(row.values.shape)


def _uncut(blocks: Tensor, rows: Tensor) -> Tensor:
    """(blocks, b, r) → (r, n)."""
    return blocks.flatten(0, 1)[: rows.shape[1]].T
