"""`_sigmoid_sums` for tensors in the host's memory: sort, sum and unsort in one compiled loop.

It uses the same polynomials, without blocks: moving one position down a sorted row multiplies C_k by f^k, where
f = e^{−gap/τ} ≤ 1, after adding the weight of the position before. Sixteen rows are worked on side by side, to fill the
processor's vector units. Sums are always carried in double precision: rounding would add up over a row of nearly equal
scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halation._parallel import kernel, over_rows
from halation._radix import sort_row, workspace
from halation.losses._sigmoid_sums import coefficients

__all__ = ["rank_and_slope_sums", "slope_sums"]

LANES = 16  # rows side by side
PIECE = 11  # terms of a polynomial at a time
_NOTHING = -69.0  # e^−69 ≈ 1e-30: smaller factors count as 0, because products of denormals are slow
_WHOLE = 6755399441055744.0  # 1.5·2⁵²: adding it to a number rounds the number into its lowest bits
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.693147180369123816490, 1.90821492927058770002e-10
_EXPONENT, _BIAS = np.int64(52), np.int64(1023)  # of a double: the position and the bias of its exponent
_TAYLOR = tuple(1.0 / np.prod(np.arange(1.0, k + 1)) for k in range(12, -1, -1))  # of e^x, |x| < 0.35, to 2e-16


class _Polynomials(NamedTuple):
    """Polynomials of one degree, cut into pieces (p, pieces, PIECE): for positions above, and for those below."""

    above: npt.NDArray[np.float64]
    below: npt.NDArray[np.float64]

    @classmethod
    def of(cls, polynomials: list[tuple[float, ...]], *, first: bool = True) -> _Polynomials:
        """`first`: for positions above, σ(t) = 1 − σ(−t), so the first polynomial is subtracted from their count."""
        padding = (0.0,) * (-len(polynomials[0]) % PIECE)
        below = np.array([polynomial + padding for polynomial in polynomials]).reshape(len(polynomials), -1, PIECE)
        above = below.copy()
        if first:
            above[0] *= -1
        return cls(above, below)


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
    """Σ_{j≠i} a_j σ'((s_j − s_i)/τ) of scores (q, n) with a known sorted order."""
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
    given = np.empty((0, values.shape[1]), values.dtype) if weights is None else weights.detach().contiguous().numpy()
    cut = _Polynomials.of(polynomials, first=first)
    out = np.empty((len(polynomials), *values.shape), values.dtype)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _rows(values[rows], given[rows], 1 / temperature, cut, first, order[rows], out[:, rows])

    over_rows(len(values), work, per_task=4 * LANES, at_most=torch.get_num_threads())
    return out


@kernel
def _rows(values: Any, weights: Any, sharpness: float, polynomials: Any, first: bool, order: Any, out: Any) -> None:
    rows, n = values.shape
    factor, weight, total = np.empty((n, LANES)), np.ones((n, LANES)), np.empty((len(out), n, LANES))
    along = np.zeros((LANES, n + 8))  # + 8: rows a power of two apart share cache lines
    space, tied = workspace(n), np.empty(n, np.bool_)
    for top in range(0, rows, LANES):
        lanes = min(LANES, rows - top)
        for lane in range(lanes):
            row = top + lane
            if first:
                sort_row(values[row], order[row], tied, space)
            _gaps(values[row], order[row], sharpness, along[lane])
            _exp(along[lane, :n])
        _to_columns(along, factor)
        if len(weights):
            for lane in range(lanes):
                _gather(weights[top + lane], order[top + lane], along[lane])
            _to_columns(along, weight)
        _add_sums(factor, weight, polynomials, first, total)
        for p in range(len(total)):
            _to_rows(total[p], along)
            for lane in range(lanes):
                _scatter(along[lane], order[top + lane], out[p, top + lane])


@kernel
def _gaps(values: Any, order: Any, sharpness: float, out: Any) -> None:
    before = np.float64(values[order[0]])
    for i in range(len(order)):
        value = np.float64(values[order[i]])
        out[i] = (value - before) * sharpness
        before = value


@kernel
def _gather(values: Any, order: Any, out: Any) -> None:
    for i in range(len(order)):
        out[i] = values[order[i]]


@kernel
def _scatter(values: Any, order: Any, out: Any) -> None:
    for i in range(len(order)):
        out[order[i]] = values[i]


@kernel
def _to_columns(along: Any, across: Any) -> None:
    """Rows (LANES, n) as columns (n, LANES)."""
    for i in range(across.shape[0]):
        for lane in range(LANES):
            across[i, lane] = along[lane, i]


@kernel
def _to_rows(across: Any, along: Any) -> None:
    """Columns (n, LANES) as rows (LANES, n)."""
    for i in range(across.shape[0]):
        for lane in range(LANES):
            along[lane, i] = across[i, lane]


@kernel
def _exp(x: Any) -> None:
    """x ← e^x for x ≤ 0, 0 below `_NOTHING`: e^x = 2^k e^r, in vector operations (libm computes one at a time)."""
    shifted = np.empty(len(x))
    for i in range(len(x)):
        shifted[i] = (_NOTHING if x[i] < _NOTHING else x[i]) * _LOG2_E + _WHOLE
    bits = shifted.view(np.int64)
    power = bits.view(np.float64)
    for i in range(len(x)):
        k = shifted[i] - _WHOLE
        rest = (x[i] - k * _LN2_HIGH) - k * _LN2_LOW
        series = _TAYLOR[0]
        for coefficient in _TAYLOR[1:]:
            series = series * rest + coefficient
        bits[i] = (bits[i] + _BIAS) << _EXPONENT  # 2^k
        x[i] = 0.0 if x[i] < _NOTHING else series * power[i]


@kernel
def _add_sums(factor: Any, weight: Any, polynomials: Any, first: bool, total: Any) -> None:
    """Σ_j a_j p(x_ij) for every polynomial; with `first`, the first also gets the weight above each position."""
    for p in range(len(total)):
        for i in range(len(weight)):
            for lane in range(LANES):
                total[p, i, lane] = 0.0
    if first:
        _add_above(weight, total[0])
    _walk(factor, weight, polynomials.above, True, total)
    _walk(factor, weight, polynomials.below, False, total)


@kernel
def _add_above(weight: Any, total: Any) -> None:
    """Write the total weight above each position."""
    above = np.zeros(LANES)
    for i in range(len(weight)):
        for lane in range(LANES):
            total[i, lane] = above[lane]
            above[lane] += weight[i, lane]


@kernel
def _walk(factor: Any, weight: Any, polynomials: Any, down: bool, total: Any) -> None:
    """Down or up the sorted positions: C_k ← (C_k + a) f^k, and Σ_k c_k C_k is added to the total of each position."""
    carried, power = np.zeros((polynomials.shape[1], PIECE, LANES)), np.empty(LANES)
    n = len(factor)
    for steps in range(1, n):
        position, left, gap = (steps, steps - 1, steps) if down else (n - 1 - steps, n - steps, n - steps)
        power[:] = 1.0
        for piece in range(len(carried)):
            _move(carried[piece], power, factor[gap], weight[left], polynomials[0, piece], total[0, position])
            for p in range(1, len(polynomials)):
                _add(carried[piece], polynomials[p, piece], total[p, position])


# The number of terms of the two innermost loops is known when they are compiled. So they are unrolled, and the loop
# around them, over the lanes, is vectorised: seven times faster than with a variable number.


@kernel
def _move(carried: Any, power: Any, factor: Any, weight: Any, polynomial: Any, total: Any) -> None:
    for lane in range(LANES):
        f, a, f_k, added = factor[lane], weight[lane], power[lane], 0.0
        for k in range(PIECE):
            f_k *= f
            moment = (carried[k, lane] + a) * f_k
            carried[k, lane] = moment
            added += polynomial[k] * moment
        total[lane] += added
        power[lane] = f_k


@kernel
def _add(carried: Any, polynomial: Any, total: Any) -> None:
    for lane in range(LANES):
        added = 0.0
        for k in range(PIECE):
            added += polynomial[k] * carried[k, lane]
        total[lane] += added
