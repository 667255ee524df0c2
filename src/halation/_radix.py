"""Stable descending sort of one row of floats by its bits: least significant digit first, eleven bits at a time.

A comparison sort of 25,000 scores takes about 15 comparisons per item, half of them mispredicted branches. Once the
sign is handled, the bits of floats sort like integers. So three counting passes sort float32 (six sort float64), and a
pass in which all digits are equal is skipped. Each item is one uint64, half of the key above and its column below, so
that a move is one store.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from halation._arrays import BoolArray, FloatArray
from halation._parallel import kernel

__all__ = ["sort_row", "workspace"]

Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint32]

_BINS = 1 << 11
_DIGIT = np.uint64(_BINS - 1)
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)
_ONE = np.uint32(1)
_MAGNITUDE32 = np.int32(0x7FFFFFFF)
_MAGNITUDE64 = np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def workspace(n: int) -> tuple[Words, Words, Words, Counts]:
    """Buffers for `sort_row` of rows of n: whole keys, two of (half key, column) pairs, the digits' counts."""
    return np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty((3, _BINS), np.uint32)


@kernel
def sort_row(scores: FloatArray, order: npt.NDArray[np.int32], tied: BoolArray, space: Any) -> None:
    """Write the columns of `scores` (n,) into `order`, from the biggest score to the smallest, ties from left to right.

    tied[r] is True where the item at position r scores the same as the one before it; −0.0 equals 0.0. Scores are
    finite.
    """
    keys, pairs, spare, counts = space
    if scores.itemsize == 4:
        _keys_of_float32(scores.view(np.int32), pairs)
        pairs = _sort_pairs(pairs, spare, counts)
        previous = ~pairs[0]
        for position in range(order.shape[0]):
            pair = pairs[position]
            order[position] = np.int32(pair & _LOWER)
            tied[position] = (pair ^ previous) <= _LOWER
            previous = pair
    else:
        _keys_of_float64(scores.view(np.int64), keys)
        for i in range(keys.shape[0]):
            pairs[i] = keys[i] << _HALF | np.uint64(i)
        other = _sort_pairs(pairs, spare, counts)
        for i in range(keys.shape[0]):  # sorted by the lower half; stable, so the upper half can follow
            column = other[i] & _LOWER
            pairs[i] = (keys[column] & ~_LOWER) | column
        pairs = _sort_pairs(pairs, spare, counts)
        before = ~keys[pairs[0] & _LOWER]
        for position in range(order.shape[0]):
            column = pairs[position] & _LOWER
            order[position] = np.int32(column)
            tied[position] = keys[column] == before
            before = keys[column]


@kernel
def _keys_of_float32(bits: npt.NDArray[np.int32], pairs: Words) -> None:
    """(key, column) pairs whose keys ascend as the floats descend."""
    for i in range(bits.shape[0]):
        bit = bits[i]
        if bit == ~_MAGNITUDE32:  # −0.0
            bit = np.int32(0)
        key = np.uint32(bit ^ (~(bit >> np.int32(31)) & _MAGNITUDE32))  # negative: as it is; else from big to small
        pairs[i] = np.uint64(key) << _HALF | np.uint64(i)


@kernel
def _keys_of_float64(bits: npt.NDArray[np.int64], keys: Words) -> None:
    """Keys that ascend as the floats descend."""
    for i in range(bits.shape[0]):
        bit = bits[i]
        if bit == ~_MAGNITUDE64:
            bit = np.int64(0)
        keys[i] = np.uint64(bit ^ (~(bit >> np.int64(63)) & _MAGNITUDE64))


@kernel
def _sort_pairs(pairs: Words, spare: Words, counts: Counts) -> Words:
    """Sort by the upper 32 bits, stably; returns the one of the two buffers that holds the result."""
    low, middle, high = counts[0], counts[1], counts[2]
    low[:] = 0
    middle[:] = 0
    high[:] = 0
    for i in range(pairs.shape[0]):
        pair = pairs[i]
        low[pair >> np.uint64(32) & _DIGIT] += _ONE
        middle[pair >> np.uint64(43) & _DIGIT] += _ONE
        high[pair >> np.uint64(54)] += _ONE
    for digit in range(3):
        shift = np.uint64(32 + 11 * digit)
        if counts[digit, pairs[0] >> shift & _DIGIT] != pairs.shape[0]:
            _move(pairs, spare, counts[digit], shift)
            pairs, spare = spare, pairs
    return pairs


@kernel
def _move(pairs: Words, target: Words, counts: Counts, shift: np.uint64) -> None:
    """One counting pass: pairs into the order of the digit at `shift`; `counts` is the number of each digit."""
    start = np.uint32(0)
    for value in range(_BINS):
        size = counts[value]
        counts[value] = start
        start += size
    for i in range(pairs.shape[0]):
        pair = pairs[i]
        value = pair >> shift & _DIGIT
        position = counts[value]
        target[position] = pair
        counts[value] = position + _ONE
