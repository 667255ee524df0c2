"""Statistics of per-query values and their uncertainty."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from halation.evaluation._resample import (
    Queries,
    bootstrap_median,
    randomisation_test,
    randomisation_test_median,
    statistic,
)
from halation.evaluation._resample import bootstrap as bootstrap_columns


def queries(clusters: np.ndarray, folds: np.ndarray | None = None) -> Queries:
    clusters = np.asarray(clusters)
    return Queries(
        np.arange(len(clusters)), clusters, np.zeros(len(clusters), int) if folds is None else np.asarray(folds)
    )


def bootstrap(values: np.ndarray, queries: Queries, resamples: int, seed: int) -> np.ndarray:
    return bootstrap_columns(values[:, None], queries, resamples, seed)[:, 0]


def p_value(a: np.ndarray, b: np.ndarray, queries: Queries, resamples: int, seed: int) -> float:
    return float(randomisation_test(a[:, None], b[:, None], queries, resamples, seed)[0])


def test_folds_are_averaged_and_not_pooled() -> None:
    values = np.array([1.0, 1.0, 1.0, 0.0])
    assert statistic(values, queries(np.arange(4), np.array([0, 0, 0, 1]))) == 0.5


def test_queries_that_were_left_out_do_not_count() -> None:
    assert statistic(np.array([1.0, np.nan, 0.0]), queries(np.arange(3))) == 0.5


def test_the_median_rank_is_the_papers_floor() -> None:
    assert statistic(np.array([1.0, 2.0, 5.0, 9.0]), queries(np.arange(4)), median=True) == 3.0


def test_bootstrap_of_independent_queries_has_the_textbook_standard_error(rng: np.random.Generator) -> None:
    values = rng.random(400)
    drawn = bootstrap(values, queries(np.arange(400)), 4000, seed=1)
    assert drawn.std() == pytest.approx(values.std() / np.sqrt(400), rel=0.05)
    assert drawn.mean() == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(400 * 4000))


def test_captions_that_move_together_widen_the_interval(rng: np.random.Generator) -> None:
    per_image = rng.random(100)
    values = np.repeat(per_image, 5)  # five captions of an image always agree: only 100 values are independent
    clustered = bootstrap(values, queries(np.repeat(np.arange(100), 5)), 2000, seed=1).std()
    pretended = bootstrap(values, queries(np.arange(500)), 2000, seed=1).std()
    assert clustered == pytest.approx(per_image.std() / 10, rel=0.1)
    assert clustered == pytest.approx(np.sqrt(5) * pretended, rel=0.1)


def test_bootstrap_resamples_within_folds() -> None:
    values = np.array([0.0] * 10 + [1.0] * 10)
    drawn = bootstrap(values, queries(np.arange(20), np.repeat([0, 1], 10)), 50, seed=0)
    assert (drawn == 0.5).all()


def test_bootstrap_of_the_median_rank_equals_drawing_by_hand(rng: np.random.Generator) -> None:
    ranks = rng.integers(1, 50, 31).astype(float)
    drawn = bootstrap_median(ranks, queries(np.arange(31)), 200, seed=5)
    generator = np.random.default_rng(5)
    by_hand = [np.floor(np.median(ranks[row])) for row in generator.integers(31, size=(200, 31))]
    assert drawn.tolist() == by_hand


def test_bootstrap_means_equal_drawing_by_hand(rng: np.random.Generator) -> None:
    values = rng.random(12)
    clusters = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 6])
    drawn = bootstrap(values, queries(clusters), 100, seed=2)
    generator = np.random.default_rng(2)
    for value, images in zip(drawn, generator.integers(7, size=(100, 7)), strict=True):
        chosen = np.concatenate([values[clusters == image] for image in images])
        assert value == pytest.approx(chosen.mean(), rel=1e-12)


def test_two_equal_systems_never_differ() -> None:
    values = np.random.default_rng(0).random(50)
    assert p_value(values, values, queries(np.arange(50)), 500, seed=0) == 1.0


def test_the_randomisation_test_agrees_with_exact_enumeration() -> None:
    a = np.array([0.0, 0.2, 0.5, 0.1, 0.4, 0.3, 0.9, 0.2])
    b = np.array([0.3, 0.1, 0.9, 0.3, 0.5, 0.8, 0.8, 0.6])
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    exact = (np.abs(signs @ (a - b)) >= abs((a - b).sum()) - 1e-12).mean()
    ours = p_value(a, b, queries(np.arange(8)), 20_000, seed=0)
    assert ours == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_the_randomisation_test_is_honest_when_nothing_differs(rng: np.random.Generator) -> None:
    small = 0
    for trial in range(200):
        a, b = rng.random((2, 60))
        small += p_value(a, b, queries(np.repeat(np.arange(20), 3)), 99, seed=trial) <= 0.1
    assert stats.binomtest(small, 200, 0.1).pvalue > 1e-4


def test_medians_are_compared_by_swapping_systems_too() -> None:
    a = np.arange(1.0, 101.0)
    assert randomisation_test_median(a + 50, a, queries(np.arange(100)), 200, seed=0) < 0.05


def test_columns_are_drawn_together_and_left_out_values_apart(rng: np.random.Generator) -> None:
    values = rng.random((30, 2))
    values[::3, 1] = np.nan
    clusters, folds = np.arange(30) // 2, np.arange(30) // 10
    drawn = bootstrap_columns(values, queries(clusters, folds), 50, seed=1)
    for column in range(2):
        np.testing.assert_allclose(drawn[:, column], bootstrap(values[:, column], queries(clusters, folds), 50, seed=1))


def test_medians_that_tie_but_for_rounding_count_as_ties() -> None:
    """Against whole-number arithmetic with the same coins: five folds, averaged."""
    generator = np.random.default_rng(3)
    a, b = generator.integers(1, 6, (2, 30)).astype(float)
    folds = np.repeat(np.arange(5), 6)
    got = randomisation_test_median(a, b, queries(np.arange(30), folds), 400, seed=9)

    def total(x: np.ndarray, y: np.ndarray) -> int:
        return abs(sum(int(np.median(x[folds == f]) // 1) - int(np.median(y[folds == f]) // 1) for f in range(5)))

    extreme = sum(total(np.where(c, b, a), np.where(c, a, b)) >= total(a, b) for c in coins(30, seed=9))
    assert got == (1 + extreme) / 401


def coins(clusters: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.concatenate([generator.random((size, clusters)) < 0.5 for size in (250, 150)])


def test_an_exact_tie_has_p_one() -> None:
    a = np.array([0.1, 0.2, 0.3, 0.7] * 50)
    b = np.array([0.2, 0.1, 0.7, 0.3] * 50)
    assert p_value(a, b, queries(np.arange(200)), 300, seed=0) == 1.0
