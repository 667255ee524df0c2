"""`_sigmoid_sums` for tensors in the host's memory: sort, sums and the way back to the old order in one compiled loop.

The same polynomials, without blocks: moving one place down a sorted row multiplies C_k by f^k, f = e^{−gap/τ} ≤ 1,
after adding the weight of the place that was left. Sixteen rows go side by side, so that the processor's vector units
work on all of them. Sums are carried in double precision whatever the scores' type: rounding would add up over a row of
nearly equal scores.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halation._parallel import kernel, over_rows
from halation.losses._sigmoid_sums import coefficients
from halation.metrics._radix import sort_row, workspace

__all__ = ["rank_and_slope_sums", "slope_sums"]

LANES = 16  # rows side by side
_NOTHING = 1e-30  # a smaller factor leaves nothing; kept out, lest products crawl through denormal numbers


def rank_and_slope_sums(
    scores: Tensor, weights: Tensor | None, temperature: float, *, slopes: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Σ_{j≠i} a_j σ((s_j − s_i)/τ), with `slopes` also the sums of σ', and the sorted order; (q, n) each."""
    values = scores.detach().contiguous().numpy()
    order = np.empty(values.shape, np.int32)
    tail, bell = coefficients(scores.dtype)
    sums = _run(values, weights, temperature, [tail, bell] if slopes else [tail], order, first=True)
    return torch.from_numpy(sums[0]), torch.from_numpy(sums[1]) if slopes else None, torch.from_numpy(order)


def slope_sums(scores: Tensor, weights: Tensor, temperature: float, order: Tensor) -> Tensor:
    """Σ_{j≠i} a_j σ'((s_j − s_i)/τ) of scores (q, n) whose order is known."""
    values = scores.detach().contiguous().numpy()
    _, bell = coefficients(scores.dtype)
    return torch.from_numpy(_run(values, weights, temperature, [bell], order.numpy(), first=False)[0])


def _run(
    values: npt.NDArray[Any],
    weights: Tensor | None,
    temperature: float,
    polynomials: list[tuple[float, ...]],
    order: npt.NDArray[np.int32],
    *,
    first: bool,
) -> npt.NDArray[Any]:
    given = np.ones((1, values.shape[1])) if weights is None else weights.detach().contiguous().numpy()
    given = np.broadcast_to(given, values.shape)
    below = np.array(polynomials)  # (p, K)
    above = below.copy()
    if first:
        above[0] *= -1  # of those above, σ(t) = 1 − σ(−t): their count, less what would be theirs below
    out = np.empty((len(polynomials), *values.shape), values.dtype)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _sums(values[rows], given[rows], 1 / temperature, above, below, first, order[rows], out[:, rows])

    over_rows(len(values), work, per_task=4 * LANES)
    return out


@kernel
def _sums(
    values: Any, weights: Any, sharpness: float, above: Any, below: Any, first: bool, order: Any, out: Any
) -> None:
    rows, n = values.shape
    factor, weight = np.empty((n, LANES)), np.empty((n, LANES))
    total = np.empty((len(above), n, LANES))
    space, tied = workspace(n), np.empty(n, np.bool_)
    for top in range(0, rows, LANES):
        lanes = min(LANES, rows - top)
        for lane in range(LANES):
            row = top + min(lane, lanes - 1)  # lanes that are left over repeat the last row
            if first and lane < lanes:
                sort_row(values[row], order[row], tied, space)
            before = np.float64(values[row, order[row, 0]])
            for i in range(n):
                item = order[row, i]
                value = np.float64(values[row, item])
                across = math.exp((value - before) * sharpness)
                factor[i, lane] = 0.0 if across < _NOTHING else across
                weight[i, lane] = weights[row, item]
                before = value
        _from_above(factor, weight, above, first, total)
        _from_below(factor, weight, below, total)
        for p in range(len(above)):
            for lane in range(lanes):
                for i in range(n):
                    out[p, top + lane, order[top + lane, i]] = total[p, i, lane]


@kernel
def _from_above(factor: Any, weight: Any, polynomials: Any, counted: bool, total: Any) -> None:
    carried, power, count = np.zeros((polynomials.shape[1], LANES)), np.empty(LANES), np.zeros(LANES)
    total[:] = 0.0
    for i in range(1, len(factor)):
        if counted:
            count += weight[i - 1]
            total[0, i] = count
        _move(carried, power, factor[i], weight[i - 1], polynomials, total[:, i])


@kernel
def _from_below(factor: Any, weight: Any, polynomials: Any, total: Any) -> None:
    carried, power = np.zeros((polynomials.shape[1], LANES)), np.empty(LANES)
    for i in range(len(factor) - 2, -1, -1):
        _move(carried, power, factor[i + 1], weight[i + 1], polynomials, total[:, i])


@kernel
def _move(carried: Any, power: Any, factor: Any, weight: Any, polynomials: Any, total: Any) -> None:
    """One place on: C_k ← (C_k + a) f^k, and Σ_k c_k C_k is added to the totals of this place."""
    for lane in range(LANES):
        power[lane] = factor[lane]
    for k in range(polynomials.shape[1]):
        own = carried[k]
        for lane in range(LANES):
            own[lane] = (own[lane] + weight[lane]) * power[lane]
        for lane in range(LANES):
            power[lane] *= factor[lane]
        for p in range(polynomials.shape[0]):
            sums, coefficient = total[p], polynomials[p, k]
            for lane in range(LANES):
                sums[lane] += coefficient * own[lane]
