"""Σ_j a_j σ((s_j − s_i)/τ) for every i of a sorted row in O(n): what a soft rank is made of.

For two scores at t = (s_i − s_j)/τ ≥ 0 let x = e^{−t}, a number of [0, 1]. Then σ(−t) = x/(1+x) and σ'(t) = x/(1+x)²
are smooth in x (the nearest pole is −1), so a polynomial Σ_k c_k x^k of low degree gives them to rounding error. And
x^k factorises over the places between i and j: with the row cut into blocks, everything above a block is described by
the numbers C_k = Σ_j a_j e^{−k (s_j − β)/τ}, k = 1..K, β the block's edge, and these are carried from block to block by
one multiplication. Every factor is ≤ 1, so nothing overflows, whatever the scores and τ. Pairs inside a block are
evaluated directly.

The polynomial for 1/(1+x) is (1 − T(x)/T(−1)) / (1+x) with T the Chebyshev polynomial of degree K on [0, 1]: a division
without remainder, whose relative error is exactly |T(x)/T(−1)| ≤ 1/T_K(3), 8e-9 for K = 11 (float32) and 3e-17 for
K = 22 (float64). For 1/(1+x)² a factor 1 + α(1+x) makes the zero at −1 a double one (1.3e-7 and 1e-15).
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Row", "block_size", "rank_and_slope_sum", "rank_sum", "slope_sum"]

TERMS = {torch.float32: 11, torch.float64: 22}


def block_size(n: int) -> int:
    """Scores per block: all of a short row, whose pairs are soon done; otherwise few, for which the carrying pays."""
    return n if n <= 64 else 8 if n <= 2048 else 16


class Row(NamedTuple):
    """Sorted scores cut into blocks, and x^k, k = 1..K, of every score against its block's two edges."""

    sigmoids: Tensor  # (blocks, b, b, rows): σ((s_j − s_i)/τ) of the pairs (i, j) of each block, 0 for i = j
    down: Tensor  # (K, blocks, b, rows): from the block's upper edge to the score
    up: Tensor  # (K, blocks, b, rows): from the score to the next block's upper edge
    across: Tensor  # (K, blocks, rows): from edge to edge

    @classmethod
    def cut(cls, values: Tensor, block: int, temperature: float) -> Row:
        """From values (n, rows) that decrease along n, n a multiple of the block size."""
        values = values.view(-1, block, values.shape[1])
        sharpness, terms = 1 / temperature, TERMS[values.dtype]
        pairs = (values[:, None] - values[:, :, None]).mul_(sharpness)
        pairs.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        edge = values[:, 0]  # (blocks, rows)
        next_edge = torch.cat([edge[1:], values[-1:, -1]])
        return cls(
            pairs.sigmoid_(),
            _powers((values - edge[:, None]).mul_(sharpness).exp_(), terms),
            _powers((next_edge[:, None] - values).mul_(sharpness).exp_(), terms),
            _powers((next_edge - edge).mul_(sharpness).exp_(), terms),
        )


def rank_sum(row: Row, weights: Tensor) -> Tensor:
    """Σ_{j≠i} a_j σ((s_j − s_i)/τ) for weights a (blocks, b, rows)."""
    return _rank(row, weights, *_carry(row, weights))


def slope_sum(row: Row, weights: Tensor) -> Tensor:
    """Σ_{j≠i} a_j σ'((s_j − s_i)/τ) for weights a (blocks, b, rows)."""
    return _slope(row, weights, *_carry(row, weights))


def rank_and_slope_sum(row: Row, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Both sums, for little more than the price of one."""
    above, below = _carry(row, weights)
    return _rank(row, weights, above, below), _slope(row, weights, above, below)


def _rank(row: Row, weights: Tensor, above: Tensor, below: Tensor) -> Tensor:
    total = (row.sigmoids * weights[:, None]).sum(dim=2)
    if len(total) > 1:
        tail, _ = _coefficients(weights.dtype)
        counts = weights.sum(dim=1)  # (blocks, rows); of those above, σ(t) = 1 − σ(−t)
        total += (counts.cumsum(dim=0) - counts)[:, None]
        total[1:] -= _evaluate(tail, row.down[:, 1:], above)
        total[:-1] += _evaluate(tail, row.up[:, :-1], below)
    return total


def _slope(row: Row, weights: Tensor, above: Tensor, below: Tensor) -> Tensor:
    pairs = torch.addcmul(row.sigmoids, row.sigmoids, row.sigmoids, value=-1)  # σ' = σ − σ²
    total = pairs.mul_(weights[:, None]).sum(dim=2)
    if len(total) > 1:
        _, bell = _coefficients(weights.dtype)
        total[1:] += _evaluate(bell, row.down[:, 1:], above)
        total[:-1] += _evaluate(bell, row.up[:, :-1], below)
    return total


def _carry(row: Row, weights: Tensor) -> tuple[Tensor, Tensor]:
    """C_k of all that is above each block but the first, and of all that is below each block but the last."""
    blocks = len(weights)
    above = (row.up[:, :-1] * weights[:-1]).sum(dim=2)  # (K, blocks − 1, rows)
    below = (row.down[:, 1:] * weights[1:]).sum(dim=2)
    for block in range(1, blocks - 1):
        above[:, block].addcmul_(above[:, block - 1], row.across[:, block])
    for block in range(blocks - 3, -1, -1):
        below[:, block].addcmul_(below[:, block + 1], row.across[:, block + 1])
    return above, below


def _evaluate(polynomial: tuple[float, ...], powers: Tensor, carried: Tensor) -> Tensor:
    """Σ_k c_k x^k C_k: (blocks, b, rows)."""
    scaled = carried * carried.new_tensor(polynomial)[:, None, None]  # (K, blocks, rows)
    return (powers * scaled[:, :, None]).sum(dim=0)


def _powers(x: Tensor, terms: int) -> Tensor:
    """x^k for k = 1..K in a new first axis, by doubling."""
    powers = x.new_empty(terms, *x.shape)
    powers[0] = x
    done = 1
    while done < terms:
        more = min(done, terms - done)
        torch.mul(powers[:more], powers[done - 1], out=powers[done : done + more])
        done += more
    return powers


@functools.cache
def _coefficients(dtype: torch.dtype) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """c_1..c_K of x/(1+x) and of x/(1+x)² on [0, 1], from exact integer arithmetic."""
    degree = TERMS[dtype]
    previous, chebyshev = [1], [-1, 2]  # T_k(2x − 1) by its recurrence, lowest power first
    for _ in range(degree - 1):
        doubled = [-2 * a + 4 * b for a, b in zip([*chebyshev, 0], [0, *chebyshev], strict=True)]
        previous, chebyshev = chebyshev, [a - b for a, b in zip(doubled, [*previous, 0, 0], strict=True)]
    at_pole = Fraction(sum(c * (-1) ** k for k, c in enumerate(chebyshev)))
    slope_at_pole = Fraction(sum(-k * c * (-1) ** k for k, c in enumerate(chebyshev)))
    small = [c / at_pole for c in chebyshev]  # 1 at the pole, tiny on [0, 1]
    tail = _divide_by_one_plus_x([1 - small[0], *(-c for c in small[1:])])

    alpha = -slope_at_pole / at_pole
    flat = [Fraction(0)] * (degree + 2)  # small · (1 + α (1 + x)): 1 at the pole with derivative 0
    for k, c in enumerate(small):
        flat[k] += c * (1 + alpha)
        flat[k + 1] += c * alpha
    slope = _divide_by_one_plus_x(_divide_by_one_plus_x([1 - flat[0], *(-c for c in flat[1:])]))
    return tuple(map(float, tail)), tuple(map(float, slope))


def _divide_by_one_plus_x(polynomial: list[Fraction]) -> list[Fraction]:
    """The quotient of a polynomial that has a zero at −1."""
    quotient = [polynomial[-1]]
    for c in polynomial[-2:0:-1]:
        quotient.append(c - quotient[-1])
    assert polynomial[0] == quotient[-1]
    return quotient[::-1]
