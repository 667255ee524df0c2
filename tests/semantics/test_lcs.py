"""The bit-parallel longest common subsequence is the longest common subsequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halation.semantics._lcs import Positions, Tile, add_positions, clear_positions, lcs, lcs_of_tile
from halation.semantics._tokens import starts

VOCABULARY = 6


def slow(a: list[int], b: list[int]) -> int:
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1, j + 1] = table[i, j] + 1 if x == y else max(table[i, j + 1], table[i + 1, j])
    return int(table[-1, -1])


def sentence(longest: int) -> st.SearchStrategy[list[int]]:
    size = st.integers(1, longest) | st.just(longest)
    return size.flatmap(lambda n: st.lists(st.integers(0, VOCABULARY - 1), min_size=n, max_size=n))


@pytest.mark.parametrize("bits", [16, 32, 64])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_side_by_side(bits: int, data: st.DataObject) -> None:
    captions = data.draw(st.lists(sentence(bits), min_size=1, max_size=40))
    other = np.array(data.draw(sentence(80)), dtype=np.int32)
    word = np.array([w for caption in captions for w in caption], dtype=np.int32)
    tile = Tile.of(starts(np.array([len(caption) for caption in captions])), word, VOCABULARY, bits)
    v, lengths = np.empty((2, len(captions)), dtype=tile.mask.dtype)
    lcs_of_tile(other, tile, v, lengths)
    assert lengths.tolist() == [slow(caption, other.tolist()) for caption in captions]


@settings(max_examples=40, deadline=None)
@given(captions=st.lists(sentence(200), min_size=1, max_size=3), other=sentence(90))
def test_one_by_one_whatever_the_length(captions: list[list[int]], other: list[int]) -> None:
    row, masks = np.zeros(VOCABULARY, dtype=np.int32), np.zeros((VOCABULARY + 1, 4), dtype=np.uint64)
    positions = Positions(row, masks, np.empty(4, dtype=np.uint64))
    for caption in captions:
        words = np.array(caption, dtype=np.int32)
        parts = add_positions(words, positions)
        assert lcs(np.array(other, dtype=np.int32), positions, parts) == slow(caption, other)
        clear_positions(words, positions)
        assert not masks.any()
        assert not row.any()
