"""The sort under every metric: the order a stable sort gives, and which neighbours are equal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from halation.metrics._blocks import contiguous
from halation.metrics.ranked import rank, row_blocks

FLOATS = [np.float32, np.float64]
SHAPES = array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40)


def finite(dtype: type) -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False, width=32 if dtype is np.float32 else 64)


def assert_ranked(scores: np.ndarray) -> None:
    ranking = rank(scores)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.testing.assert_array_equal(ranking.order, order)
    placed = np.take_along_axis(scores, order, axis=1)
    np.testing.assert_array_equal(ranking.tied[:, 1:], placed[:, 1:] == placed[:, :-1])
    assert not ranking.tied[:, 0].any()


@pytest.mark.parametrize("dtype", FLOATS)
@settings(deadline=None)
@given(data=st.data())
def test_the_order_is_that_of_a_stable_descending_sort(dtype: type, data: st.DataObject) -> None:
    assert_ranked(data.draw(arrays(dtype, SHAPES, elements=finite(dtype))))


@pytest.mark.parametrize("dtype", FLOATS)
@settings(deadline=None)
@given(data=st.data())
def test_equal_scores_stay_in_column_order_and_are_marked(dtype: type, data: st.DataObject) -> None:
    assert_ranked(data.draw(arrays(dtype, SHAPES, elements=st.sampled_from([-1.5, -0.0, 0.0, 1e-30, 2.0]))))


@pytest.mark.parametrize("dtype", FLOATS)
def test_long_rows_of_every_magnitude_are_sorted(dtype: type, rng: np.random.Generator) -> None:
    magnitudes = np.exp(rng.uniform(-80, 80, (7, 30_000))) * rng.choice([-1, 1], (7, 30_000))
    assert_ranked(magnitudes.astype(dtype))
    assert_ranked(rng.integers(0, 50, (3, 30_000)).astype(dtype))
    assert_ranked(np.full((2, 4_000), 0.25, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbouring_floats_rank_apart(dtype: type) -> None:
    least = np.finfo(dtype).smallest_subnormal
    one = np.nextafter(dtype(1), dtype(2))
    assert_ranked(np.array([[-least, 1, one, least, 0, -1, -one, np.finfo(dtype).max, np.finfo(dtype).min]], dtype))


def test_negative_zero_equals_zero() -> None:
    for dtype in FLOATS:
        ranking = rank(np.array([[0.0, -0.0, 0.0, -0.0]], dtype))
        np.testing.assert_array_equal(ranking.order, [[0, 1, 2, 3]])
        np.testing.assert_array_equal(ranking.tied, [[False, True, True, True]])


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_transposed_matrix_is_ranked_by_its_columns(dtype: type, rng: np.random.Generator) -> None:
    scores = rng.integers(0, 90, (203, 77)).astype(dtype)
    assert_ranked(scores.T)
    assert_ranked(scores[::-1, 3:60].T)
    assert_ranked(scores[:, ::-2])


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float32, np.float64])
def test_a_block_read_across_memory_is_the_same_block(dtype: type, rng: np.random.Generator) -> None:
    matrix = rng.integers(0, 2, (131, 75)).astype(dtype)
    block = contiguous(matrix.T[5:40])
    assert block.flags.c_contiguous
    np.testing.assert_array_equal(block, matrix[:, 5:40].T)


@given(st.integers(1, 100_000), st.integers(1, 60_000))
def test_blocks_cover_every_row_once(rows: int, n: int) -> None:
    blocks = list(row_blocks(rows, n))
    assert blocks[0].start == 0
    assert blocks[-1].stop == rows
    assert all(left.stop == right.start for left, right in itertools.pairwise(blocks))
    assert all((block.stop - block.start) * n <= max(n, 1 << 22) for block in blocks)
