"""Average Semantic Precision against its equation, the published numbers and what must be true of it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from halation import InputError
from halation.metrics import adjusted_asp, asp, asp_ceiling, chance_asp, ranked

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
TIES = ["expected", "average", "first"]


@st.composite
def tied_pairs(draw: st.DrawFn, max_n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Scores and relevance of the same shape, with few values and so with many ties."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, max_n)))
    few = st.integers(-3, 3)
    return draw(arrays(np.float64, shape, elements=few)), draw(arrays(np.float32, shape, elements=few))


def rank_range(row: np.ndarray, item: int) -> range:
    above, equal = int((row > row[item]).sum()), int((row == row[item]).sum())
    return range(above + 1, above + equal + 1)


def slow_asp(scores: np.ndarray, relevance: np.ndarray, ties: str) -> list[float]:
    """The equation, item by item."""
    values = []
    for s_row, c_row in zip(scores, relevance, strict=True):
        total = 0.0
        for item in range(len(s_row)):
            ranks = [list(rank_range(row, item)) for row in (s_row, c_row)]
            if ties == "average":
                ranks = [[(possible[0] + possible[-1]) / 2] for possible in ranks]
            if ties == "first":
                before = [int((row[:item] == row[item]).sum()) for row in (s_row, c_row)]
                ranks = [[possible[earlier]] for possible, earlier in zip(ranks, before, strict=True)]
            pairs = list(itertools.product(*ranks))
            total += sum(min(pair) / max(pair) for pair in pairs) / len(pairs)
        values.append(total / len(s_row))
    return values


@pytest.mark.parametrize("ties", TIES)
@settings(deadline=None)
@given(pair=tied_pairs())
def test_the_value_is_the_equation_summed_item_by_item(ties: str, pair: tuple[np.ndarray, np.ndarray]) -> None:
    np.testing.assert_allclose(asp(*pair, ties=ties), slow_asp(*pair, ties), rtol=0, atol=1e-12)


def all_orders(row: np.ndarray) -> list[np.ndarray]:
    """The ranks of the items in every order that the values allow."""
    orders = itertools.permutations(range(len(row)))
    return [np.argsort(order) + 1 for order in orders if (np.diff(row[list(order)]) <= 0).all()]


@settings(deadline=None, max_examples=40)
@given(pair=tied_pairs(max_n=4))
def test_the_expected_value_is_the_mean_over_all_ways_to_break_ties(pair: tuple[np.ndarray, np.ndarray]) -> None:
    for value, s_row, c_row in zip(asp(*pair), *pair, strict=True):
        ways = itertools.product(all_orders(s_row), all_orders(c_row))
        mean = np.mean([np.mean(np.minimum(s, c) / np.maximum(s, c)) for s, c in ways])
        assert value == pytest.approx(mean, abs=1e-12)


def test_the_expected_value_is_the_mean_of_many_random_tie_breaks(rng: np.random.Generator) -> None:
    scores, relevance = rng.integers(0, 9, (1, 60)), rng.integers(0, 5, (1, 60))
    draws = 4000
    # a score between 0 and 1 added to whole numbers breaks their ties and nothing else
    broken = [np.repeat(values, draws, axis=0) + rng.random((draws, 60)) for values in (scores, relevance)]
    samples = asp(*broken)
    assert abs(samples.mean() - asp(scores, relevance)[0]) < 5 * samples.std() / np.sqrt(draws)


@pytest.fixture(scope="module")
def golden() -> tuple[Any, dict[str, Any]]:
    return np.load(GOLDEN / "asp.npz"), json.loads((GOLDEN / "asp.json").read_text(encoding="utf-8"))


def test_the_published_code_gives_the_same_values_without_ties(golden: tuple[Any, dict[str, Any]]) -> None:
    arrays_, values = golden
    scores, relevance = arrays_["r20x100/sims"], arrays_["r20x100/sems"]
    for ties in TIES:
        rows, columns = asp(scores, relevance, ties).mean() * 100, asp(scores.T, relevance.T, ties).mean() * 100
        assert rows == pytest.approx(values["r20x100"]["float64_oracle_rows"], abs=1e-10)
        assert rows == pytest.approx(values["r20x100"]["asp_rows"], abs=2e-5)
        assert columns == pytest.approx(values["r20x100"]["asp_cols"], abs=2e-5)


def test_ties_give_the_golden_values_of_every_way_to_treat_them(golden: tuple[Any, dict[str, Any]]) -> None:
    arrays_, values = golden
    scores, relevance = arrays_["tied_sem_zeros80pct/sims"], arrays_["tied_sem_zeros80pct/sems"]
    tied = values["tied_sem_zeros80pct"]
    assert asp(scores, relevance).mean() * 100 == pytest.approx(50.6482342291, abs=1e-9)
    assert asp(scores.T, relevance.T).mean() * 100 == pytest.approx(51.8128680530, abs=1e-9)
    assert asp(scores, relevance, "first").mean() * 100 == pytest.approx(tied["asp_stable_descending"], abs=1e-10)
    assert asp(scores, relevance, "average").mean() * 100 == pytest.approx(tied["asp_midrank"], abs=1e-10)


def test_the_copied_golden_arrays_are_the_shared_ones(shared_golden: Path) -> None:
    for name in ("asp.npz", "asp.json", "pmrp.npz", "pmrp.json"):
        assert (GOLDEN / name).read_bytes() == (shared_golden / name).read_bytes()


def test_the_papers_worked_example() -> None:
    meaning, by_score = np.array([1, 3, 2, 5, 4]), np.array([3, 1, 4, 5, 2])
    assert asp([-by_score], [-meaning])[0] == pytest.approx((1 / 3 + 1 / 3 + 2 / 4 + 1 + 2 / 4) / 5, abs=1e-15)


def test_long_rows_agree_with_a_double_argsort(rng: np.random.Generator) -> None:
    scores = rng.random((3, 30_000))
    relevance = rng.permuted(np.tile(np.arange(30_000, dtype=np.float32), (3, 1)), axis=1)
    ranks = [np.argsort(np.argsort(-values, axis=1), axis=1) + 1 for values in (scores, relevance)]
    ratio = np.minimum(*ranks) / np.maximum(*ranks)
    for ties in TIES:
        np.testing.assert_allclose(asp(scores, relevance, ties), ratio.mean(axis=1), rtol=0, atol=1e-13)


@settings(deadline=None)
@given(st.integers(1, 60), st.randoms(use_true_random=False))
def test_identical_orders_without_ties_score_one(n: int, random: Any) -> None:
    values = np.array([random.sample(range(10 * n), n)])
    for ties in TIES:
        assert asp(values, values**3, ties)[0] == 1.0


@pytest.mark.parametrize("ties", TIES)
@settings(deadline=None)
@given(pair=tied_pairs())
def test_only_the_order_of_scores_and_relevance_matters(ties: str, pair: tuple[np.ndarray, np.ndarray]) -> None:
    scores, relevance = pair
    value = asp(scores, relevance, ties)
    ranks = np.unique(scores, return_inverse=True)[1].reshape(scores.shape)
    for same in (scores + 1024, scores * 2.0**100, scores * 2.0**-100, scores**3, ranks):
        np.testing.assert_array_equal(asp(same, relevance, ties), value)
    np.testing.assert_array_equal(asp(scores, relevance * 8 - 64, ties), value)


@pytest.mark.parametrize("ties", ["expected", "average"])
@settings(deadline=None)
@given(pair=tied_pairs(), random=st.randoms(use_true_random=False))
def test_the_order_of_the_columns_does_not_matter(ties: str, pair: tuple[np.ndarray, np.ndarray], random: Any) -> None:
    scores, relevance = pair
    columns = random.sample(range(scores.shape[1]), scores.shape[1])
    moved = asp(scores[:, columns], relevance[:, columns], ties)
    np.testing.assert_allclose(moved, asp(scores, relevance, ties), rtol=0, atol=1e-13)


@settings(deadline=None)
@given(pair=tied_pairs(), random=st.randoms(use_true_random=False))
def test_queries_are_measured_one_by_one(pair: tuple[np.ndarray, np.ndarray], random: Any) -> None:
    scores, relevance = pair
    rows = random.sample(range(len(scores)), len(scores))
    np.testing.assert_array_equal(asp(scores[rows], relevance[rows]), asp(scores, relevance)[rows])


@settings(deadline=None)
@given(pair=tied_pairs())
def test_scores_and_relevance_can_change_places(pair: tuple[np.ndarray, np.ndarray]) -> None:
    np.testing.assert_allclose(asp(*pair), asp(pair[1], pair[0]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("ties", TIES)
def test_rankings_made_beforehand_give_the_same_values(ties: str, rng: np.random.Generator) -> None:
    scores, relevance = rng.integers(0, 40, (70, 90)).astype(np.float32), rng.integers(0, 9, (70, 90)) / 8
    np.testing.assert_array_equal(
        ranked.asp(ranked.rank(scores), ranked.rank(relevance), ties), asp(scores, relevance, ties)
    )


def test_a_constant_scorer_scores_chance(rng: np.random.Generator) -> None:
    relevance = rng.random((4, 37))
    np.testing.assert_allclose(asp(np.zeros((4, 37)), relevance), chance_asp(37), atol=1e-14)
    np.testing.assert_allclose(asp(relevance, np.ones((4, 37))), chance_asp(37), atol=1e-14)


def test_random_scores_score_chance(rng: np.random.Generator) -> None:
    samples = asp(rng.random((3000, 25)), rng.random((3000, 25)))
    assert abs(samples.mean() - chance_asp(25)) < 5 * samples.std() / np.sqrt(3000)


@pytest.mark.parametrize("ties", TIES)
@settings(deadline=None)
@given(pair=tied_pairs())
def test_the_ceiling_is_the_value_of_the_relevances_own_order(ties: str, pair: tuple[np.ndarray, np.ndarray]) -> None:
    ceiling = asp_ceiling(pair[1], ties)
    np.testing.assert_allclose(ceiling, slow_asp(pair[1], pair[1], ties), rtol=0, atol=1e-12)
    if ties != "expected":
        np.testing.assert_array_equal(ceiling, 1.0)


def test_the_ceiling_of_a_transposed_matrix_is_that_of_its_columns(rng: np.random.Generator) -> None:
    relevance = rng.integers(0, 7, (50, 31))
    np.testing.assert_array_equal(asp_ceiling(relevance.T), asp_ceiling(np.ascontiguousarray(relevance.T)))


def test_adjusted_chance_is_zero_and_the_ceiling_is_one() -> None:
    ceiling = asp_ceiling([[3, 2, 2, 0, 0, 0]])
    assert adjusted_asp(chance_asp(6), 6, ceiling)[0] == 0
    assert adjusted_asp(ceiling, 6, ceiling)[0] == 1
    assert adjusted_asp((chance_asp(6) + ceiling) / 2, 6, ceiling)[0] == pytest.approx(0.5)


def test_adjusted_is_zero_where_the_relevance_is_constant() -> None:
    constant = np.ones((1, 9))
    value, ceiling = asp(np.arange(9.0)[None], constant), asp_ceiling(constant)
    assert adjusted_asp(value, 9, ceiling)[0] == 0


def test_an_unknown_way_to_treat_ties_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'average'"):
        asp([[1.0]], [[1.0]], ties="averge")
    with pytest.raises(InputError, match="unknown ties"):
        asp_ceiling([[1.0]], ties="random")


def test_a_gallery_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one item"):
        chance_asp(0)
