"""Both rankings of a query: the ranks ASP compares, and what each item adds to it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from halation.metrics import asp
from halation.report._rankings import Row, query_rankings, ranked_items


def tied_row(rng: np.random.Generator, n: int = 7) -> Row:
    right = rng.random(n) < 0.4
    written = right & (rng.random(n) < 0.5)
    return Row(rng.integers(0, 4, n) / 4, rng.integers(0, 3, n) / 3, right, written)


def orders(values: np.ndarray) -> list[list[int]]:
    """Every ranking that equal values leave open: the rank of each item, 1 = the biggest."""
    orders = []
    for order in itertools.permutations(range(len(values))):
        if all(values[a] >= values[b] for a, b in itertools.pairwise(order)):
            ranks = [0] * len(values)
            for rank, item in enumerate(order, start=1):
                ranks[item] = rank
            orders.append(ranks)
    return orders


@pytest.mark.parametrize("seed", range(4))
def test_ranks_and_ratios_are_those_of_all_orders_of_equal_items(seed: int) -> None:
    row = tied_row(np.random.default_rng(seed), 6)
    by_score, by_meaning = orders(row.scores), orders(row.relevance)
    for one in ranked_items(row, np.arange(6)):
        scores, meanings = ([ranks[one.item] for ranks in way] for way in (by_score, by_meaning))
        assert one.score_ranks == (min(scores), max(scores))
        assert one.relevance_ranks == (min(meanings), max(meanings))
        ratios = [min(a, b) / max(a, b) for a in scores for b in meanings]
        assert one.ratio == pytest.approx(np.mean(ratios), abs=1e-12)


def test_the_mean_ratio_over_all_items_is_the_querys_asp(rng: np.random.Generator) -> None:
    for n in (1, 2, 40):
        row = tied_row(rng, n)
        ratios = [one.ratio for one in ranked_items(row, np.arange(n))]
        assert np.mean(ratios) == pytest.approx(asp([row.scores], [row.relevance])[0], abs=1e-12)


def test_each_ranking_is_headed_by_its_best_and_right_answers_come_last_among_equals() -> None:
    row = Row(
        np.array([0.5, 0.9, 0.5, 0.1, 0.5]),
        np.array([0.0, 0.1, 0.2, 0.9, 0.3]),
        np.array([True, False, False, True, False]),
        np.array([False, False, False, True, False]),
    )
    other = np.array([0.0, 0.0, 0.0, 1.0, 0.5])
    query = query_rankings("t2i", 7, row, {"R@1": 0.0}, sigma=0.25, other_scores=other, depth=3)
    assert [one.item for one in query.by_score] == [1, 2, 4]  # item 0 is right, so the equals go first
    assert [one.item for one in query.by_relevance] == [3, 4, 2]
    assert [one.item for one in query.by_other_score] == [3, 4, 1]
    assert [one.score_ranks for one in query.by_other_score] == [(1, 1), (2, 2), (3, 5)]  # the other run's ranks
    assert [one.score for one in query.by_relevance] == pytest.approx([0.1, 0.5, 0.5])
    assert [one.mark for one in query.by_relevance] == ["written", "", ""]
    assert (query.right_count, query.item, query.sigma) == (2, 7, 0.25)
    assert ranked_items(row, np.array([0]))[0].mark == "right"
