"""Longest common subsequences, bit-parallel: many captions side by side, or one caption of any length.

A caption is a bit mask per word, a bit per position. The words of the other sentence pass one by one:
U = V & mask; V = (V + U) | (V − U), from V all ones; in the end the LCS is the number of zeros of V
(Crochemore et al., 2001; Hyyrö, 2004). A word that is not in the caption has mask 0 and changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic

from halation._parallel import kernel

__all__ = ["Positions", "Tile", "add_positions", "clear_positions", "lcs", "lcs_of_tile"]

_DENSE = 16  # a word that one caption in 16 holds gets a whole row of masks, a rarer one a list


class Tile(NamedTuple):
    """Captions side by side, a lane of 16, 32 or 64 bits each, with the positions of their words as masks.

    Common words have a mask for every lane, `row[dense[w]]`; the others only for the lanes that hold them,
    `mask[start[w] : stop[w]]` for `lane[start[w] : stop[w]]`.
    """

    dense: npt.NDArray[np.int32]  # (vocabulary,) −1: not common
    row: npt.NDArray[Any]  # (common words, lanes)
    start: npt.NDArray[np.int64]  # (vocabulary,)
    stop: npt.NDArray[np.int64]  # (vocabulary,)
    lane: npt.NDArray[np.uint32]  # (entries,)
    mask: npt.NDArray[Any]  # (entries,)

    @classmethod
    def of(cls, begin: npt.NDArray[np.int64], word: npt.NDArray[np.int32], vocabulary: int, bits: int) -> Tile:
        """Sentence i, `word[begin[i] : begin[i + 1]]`, of at most `bits` words, takes lane i."""
        lane, mask = np.empty(len(word), dtype=np.uint32), np.zeros(len(word), dtype=f"uint{bits}")
        start, stop = _positions(begin, word, vocabulary, lane, mask)
        common = np.flatnonzero((stop - start) * _DENSE > len(begin) - 1)
        dense = np.full(vocabulary, -1, dtype=np.int32)
        dense[common] = np.arange(len(common))
        row = np.zeros((len(common), len(begin) - 1), dtype=mask.dtype)
        for position, w in enumerate(common):
            row[position, lane[start[w] : stop[w]]] = mask[start[w] : stop[w]]
        return cls(dense, row, start, stop, lane, mask)


class Positions(NamedTuple):
    """Room for one sentence of any length: word w has the masks `masks[row[w]]`, 64 positions in each part.

    Row 0 stays empty, for the words that the sentence does not hold.
    """

    row: npt.NDArray[np.int32]  # (vocabulary,)
    masks: npt.NDArray[np.uint64]  # (different words + 1, parts)
    v: npt.NDArray[np.uint64]  # (parts,) scratch of `lcs`


def _count_ones(context: Any, number: Any) -> Any:
    """Number of one bits, at the width of the integer (so that it vectorises)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return number(number), generate


_ones: Any = intrinsic(_count_ones)


@kernel
def _positions(begin: Any, word: Any, vocabulary: int, lane: Any, mask: Any) -> Any:
    """Lanes by word, each once with the mask of its positions: those of w are start[w] : stop[w]."""
    start = np.zeros(vocabulary, dtype=np.int64)
    for w in word:
        start[w] += 1
    before = 0
    for w in range(vocabulary):
        count = start[w]
        start[w] = before
        before += count
    stop = start.copy()
    one = mask.dtype.type(1)
    for sentence in range(len(begin) - 1):
        for position in range(begin[sentence], begin[sentence + 1]):
            w = word[position]
            if stop[w] == start[w] or lane[stop[w] - 1] != sentence:
                lane[stop[w]] = sentence
                stop[w] += 1
            mask[stop[w] - 1] |= one << mask.dtype.type(position - begin[sentence])
    return start, stop


@kernel
def lcs_of_tile(words: Any, tile: Any, v: Any, length: Any) -> None:
    """Write the LCS of `words` with every lane to `length`; `v` is scratch of the tile's width."""
    v[:] = ~v.dtype.type(0)
    for w in words:
        if tile.dense[w] >= 0:
            mask = tile.row[tile.dense[w]]
            for i in range(len(v)):
                u = v[i] & mask[i]
                v[i] = (v[i] + u) | (v[i] - u)
        else:
            for p in range(tile.start[w], tile.stop[w]):
                i = tile.lane[p]
                u = v[i] & tile.mask[p]
                v[i] = (v[i] + u) | (v[i] - u)
    for i in range(len(v)):
        length[i] = _ones(v.dtype.type(~v[i]))


@kernel
def add_positions(words: Any, positions: Any) -> int:
    """Enter a sentence of any length; returns how many parts it takes."""
    row, used = positions.row, 0
    for position in range(len(words)):
        if row[words[position]] == 0:
            used += 1
            row[words[position]] = used
        positions.masks[row[words[position]], position >> 6] |= np.uint64(1) << np.uint64(position & 63)
    return (len(words) + 63) >> 6


@kernel
def clear_positions(words: Any, positions: Any) -> None:
    """Take the sentence out again."""
    for w in words:
        positions.masks[positions.row[w]] = 0
        positions.row[w] = 0


@kernel
def lcs(words: Any, positions: Any, parts: int) -> int:
    """LCS of `words` with the sentence in `positions`, which takes `parts`; the addition carries from part to part."""
    row, masks, v = positions
    v[:parts] = ~np.uint64(0)
    for w in words:
        carry = np.uint64(0)
        for part in range(parts if row[w] else 0):
            u = v[part] & masks[row[w], part]
            added = v[part] + u
            total = added + carry
            carry = np.uint64(added < u or total < added)
            v[part] = total | (v[part] - u)
    zeros = 0
    for part in range(parts):
        zeros += np.int64(_ones(~v[part]))
    return zeros
