"""nDCG against its equation, scikit-learn and what must be true of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import ndcg_score

from halation import InputError
from halation.metrics import ndcg_at


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 12)))
    scores = draw(arrays(np.float64, shape, elements=st.integers(-3, 3)))
    gains = draw(arrays(np.float32, shape, elements=st.sampled_from([0, 0, 0.25, 1, 3])))
    gains[:, draw(st.integers(0, shape[1] - 1))] = 2
    return scores, gains, draw(st.integers(1, 15))


def slow_ndcg(scores: np.ndarray, gains: np.ndarray, k: int, gain: str) -> float:
    worth = [float(g) if gain == "linear" else 2.0 ** float(g) - 1 for g in gains]
    ranked = [g for _, g in sorted(zip(-scores, worth, strict=True))]  # the lowest gain first among equals
    best = sorted(worth, reverse=True)
    reached, possible = (sum(g / math.log2(r + 2) for r, g in enumerate(order[:k])) for order in (ranked, best))
    return reached / possible


@pytest.mark.parametrize("gain", ["linear", "exponential"])
@settings(deadline=None)
@given(case=cases())
def test_the_value_is_the_equation_summed_place_by_place(gain: str, case: tuple[np.ndarray, np.ndarray, int]) -> None:
    scores, gains, k = case
    expected = [slow_ndcg(s, g, k, gain) for s, g in zip(scores, gains, strict=True)]
    np.testing.assert_allclose(ndcg_at(scores, gains, k, gain), expected, rtol=0, atol=1e-13)


def test_scikit_learn_finds_the_same_without_ties(rng: np.random.Generator) -> None:
    scores = rng.permuted(np.tile(np.arange(90.0), (40, 1)), axis=1)
    gains = rng.integers(0, 5, (40, 90))
    for k in (1, 10, 90):
        expected = [ndcg_score(g[None], s[None], k=k) for s, g in zip(scores, gains, strict=True)]
        np.testing.assert_allclose(ndcg_at(scores, gains, k), expected, rtol=0, atol=1e-12)
        raised = [ndcg_score(2.0 ** g[None] - 1, s[None], k=k) for s, g in zip(scores, gains, strict=True)]
        np.testing.assert_allclose(ndcg_at(scores, gains, k, "exponential"), raised, rtol=0, atol=1e-12)


def test_the_gains_own_order_scores_one(rng: np.random.Generator) -> None:
    gains = rng.integers(0, 6, (30, 50)) + np.eye(30, 50)
    for gain in ("linear", "exponential"):
        np.testing.assert_array_equal(ndcg_at(gains, gains, 10, gain), 1.0)


def test_equal_scores_count_against_the_model_across_the_cutoff() -> None:
    assert ndcg_at([[1, 1, 1, 1]], [[3, 2, 0, 0]], k=2)[0] == 0
    assert ndcg_at([[9, 1, 1, 1]], [[1, 4, 0, 0]], k=2)[0] == pytest.approx(1 / (4 + 1 / math.log2(3)))


@settings(deadline=None)
@given(case=cases(), random=st.randoms(use_true_random=False))
def test_only_the_order_of_the_scores_matters(case: tuple[np.ndarray, np.ndarray, int], random: Any) -> None:
    scores, gains, k = case
    value = ndcg_at(scores, gains, k)
    for same in (scores + 256, scores * 2.0**200, scores**5):
        np.testing.assert_array_equal(ndcg_at(same, gains, k), value)
    columns = random.sample(range(scores.shape[1]), scores.shape[1])
    np.testing.assert_array_equal(ndcg_at(scores[:, columns], gains[:, columns], k), value)
    np.testing.assert_allclose(ndcg_at(scores, gains * 4, k), value, rtol=0, atol=1e-15)


def test_blocks_of_rows_give_the_same_values(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, gains = rng.random((50, 40)), rng.random((50, 40), dtype=np.float32)
    value = ndcg_at(scores, gains, 7)
    monkeypatch.setattr("halation.metrics._blocks._CELLS", 120)
    np.testing.assert_array_equal(ndcg_at(scores, gains, 7), value)
    gains[23] = 0
    with pytest.raises(InputError, match="query 23 has no gain above 0"):
        ndcg_at(scores, gains, 7)
    gains[23, 5] = -0.5
    with pytest.raises(InputError, match=r"query 23 go down to -0\.5"):
        ndcg_at(scores, gains, 7)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="k must be 1 or more"):
        ndcg_at([[1.0]], [[1.0]], 0)
    with pytest.raises(InputError, match="did you mean 'exponential'"):
        ndcg_at([[1.0]], [[1.0]], 1, gain="exponentiel")
    with pytest.raises(InputError, match="overflows"):
        ndcg_at([[1.0, 2.0]], [[1.0, 5000.0]], 1, gain="exponential")
    with pytest.raises(InputError, match="gains has shape"):
        ndcg_at([[1.0, 2.0]], [[1.0]], 1)
