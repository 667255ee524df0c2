"""The ratio of two ranks, which ASP averages; with ties, its expected value in constant time.

If one rank r is uniform on a..b and the other, s, is independent of it and uniform on c..d, then

    E[min(r, s) / max(r, s)] = Σ_{r=a..b} Σ_{s=c..d} min(r, s)/max(r, s) / ((b − a + 1)(d − c + 1))

and the sum falls into three parts. Let p..q be where the two ranges overlap (p = max(a, c), q = min(b, d)).

- Ranks below p belong to one range only, and every rank of the other range is bigger: a product of a sum of integers
  (triangular numbers) and a sum of reciprocals (a difference of harmonic numbers).
- Ranks above q likewise, against p..q.
- Both in p..q, L = q − p + 1 ranks: min/max = 1 − |r − s|/max, and for each s = p + k the smaller r's fall short by
  1 + … + k, so the square holds L² − Σ_{k<L} k(k + 1)/(p + k) = L(L − 1)/2 + L p − p(p − 1)(H_q − H_{p−1}).

Precision. At rank 30,000 a harmonic number is 11 and the reciprocal of a rank 3e-5, so differences of float64 harmonic
numbers would be good to eleven digits only: the table keeps each as an unevaluated sum of two floats. The closed form
of the square cancels by a factor p/L, so short squares are summed term by term.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._arrays import Array, to_numpy
from halation._errors import InputError
from halation._parallel import kernel

__all__ = ["expected_ratio", "harmonic_numbers", "own_square", "rank_ratio"]

Floats = npt.NDArray[np.float64]

_SHORT = 32


def rank_ratio(ranks: Array, other: Array) -> Floats:
    """The smaller of two ranks over the bigger, item by item: the terms whose mean is ASP.

    ranks and other: (m,) whole numbers from 1; or (m, 2), the first and the last rank that an item can have among its
    ties. Then the value is the mean over independent, uniformly random orders. Returns (m,) in 0…1.

    >>> rank_ratio([1, 2], [1, 4])
    array([1. , 0.5])
    >>> rank_ratio([[3, 3]], [[2, 3]]).round(4)
    array([0.8333])
    """
    one, two = _ranges(ranks, "ranks"), _ranges(other, "other")
    if len(one) != len(two):
        raise InputError(f"there are {len(one)} ranks to compare with {len(two)}; give one of each per item")
    harmonic = harmonic_numbers(int(max(one.max(initial=0), two.max(initial=0))))
    return np.array([expected_ratio(a, b, c, d, harmonic) for (a, b), (c, d) in zip(one, two, strict=True)])


def _ranges(ranks: Array, name: str) -> npt.NDArray[np.int64]:
    values = to_numpy(ranks)
    values = np.stack([values, values], axis=1) if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != 2 or values.dtype.kind not in "iu":
        raise InputError(f"{name} must be whole numbers (m,) or (m, 2), not {values.dtype} of shape {values.shape}")
    if len(values) and (values.min() < 1 or (values[:, 0] > values[:, 1]).any()):
        raise InputError(f"{name} must count from 1, the first rank before the last")
    return values.astype(np.int64)


@kernel
def harmonic_numbers(n: int) -> Floats:
    """H_0 … H_n, (n + 1, 2): H_k = table[k, 0] + table[k, 1], correct to about 30 digits."""
    table = np.zeros((n + 1, 2))
    high, low = 0.0, 0.0
    for k in range(1, n + 1):
        term = 1.0 / k
        # the remainder of the division, 1 − term·k: exact, because term is split so that both products are
        upper = np.float64(np.float32(term))
        rest = (1.0 - upper * k - (term - upper) * k) / k
        total = high + term  # high ≥ term from k = 2 on, so the rounding error is exactly:
        low += (term - (total - high)) + rest
        high = total
        table[k, 0], table[k, 1] = high, low
    return table


@kernel
def _reciprocals(first: int, last: int, harmonic: Floats) -> float:
    """Σ 1/s over first..last."""
    upper = harmonic[last, 0] - harmonic[first - 1, 0]
    return float(upper + (harmonic[last, 1] - harmonic[first - 1, 1]))


@kernel
def _integers(first: int, last: int) -> float:
    """Σ r over first..last; exact."""
    return (last - first + 1) * (first + last) * 0.5


@kernel
def own_square(first: int, last: int, harmonic: Floats) -> float:
    """Σ min(r, s)/max(r, s) over r and s in first..last: the sum of a run of equal items with itself."""
    length = last - first + 1
    if length <= _SHORT:
        short = 0.0
        for k in range(1, length):
            short += k * (k + 1) / (first + k)
        return length * length - short
    return length * (length - 1) / 2 + length * first - first * (first - 1) * _reciprocals(first, last, harmonic)


@kernel
def expected_ratio(a: int, b: int, c: int, d: int, harmonic: Floats) -> float:
    """E[min(r, s)/max(r, s)] for r uniform on a..b, s uniform on c..d (ranks from 1), independent of each other."""
    if a > c:  # the ratio is symmetric: let a..b be the range that starts first
        a, b, c, d = c, d, a, b
    pairs = float(b - a + 1) * (d - c + 1)
    if b < c:
        return _integers(a, b) * _reciprocals(c, d, harmonic) / pairs
    last = min(b, d)  # the overlap is c..last
    total = own_square(c, last, harmonic)
    if a < c:
        total += _integers(a, c - 1) * _reciprocals(c, d, harmonic)
    if b != d:
        total += _integers(c, last) * _reciprocals(last + 1, max(b, d), harmonic)
    return total / pairs
