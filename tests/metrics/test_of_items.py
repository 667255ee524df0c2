"""A ranking of fewer items without sorting again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from halation.metrics.ranked import asp, asp_ceiling, rank

scores = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=st.integers(0, 4).map(float))


@given(scores, st.data())
def test_leaving_columns_out_equals_ranking_the_others(matrix: np.ndarray, data: st.DataObject) -> None:
    n = matrix.shape[1]
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any)))
    expected, got = rank(matrix[:, kept]), rank(matrix).of_items(kept)
    np.testing.assert_array_equal(got.order, expected.order)
    np.testing.assert_array_equal(got.tied, expected.tied)


@given(scores)
def test_the_ceiling_is_the_asp_of_an_order_with_itself(matrix: np.ndarray) -> None:
    ranking = rank(matrix)
    for ties in ("expected", "average", "first"):
        np.testing.assert_allclose(asp_ceiling(ranking, ties), asp(ranking, ranking, ties), rtol=1e-12)


def test_long_runs_of_equal_items_have_the_same_ceiling_either_way() -> None:
    matrix = np.random.default_rng(0).integers(0, 3, (3, 20_000)).astype(np.float32)
    ranking = rank(matrix)
    np.testing.assert_allclose(asp_ceiling(ranking), asp(ranking, ranking), rtol=1e-12)
