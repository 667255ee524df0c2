"""Metrics of yes-or-no relevance against naive loops, scikit-learn, eccv-caption and what must be true of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score

from halation import InputError
from halation.metrics import (
    average_precision,
    best_rank,
    hit_at,
    map_at_r,
    median_rank,
    precision_at,
    r_precision,
    recall_at,
)
from halation.metrics.ranked import RelevantRanks, rank, relevant_ranks

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
Metric = Callable[[Any, Any], np.ndarray]


def ranked(scores: np.ndarray, relevant: np.ndarray) -> list[bool]:
    """Relevance in ranked order, the relevant last among equals."""
    return [right for _, right in sorted(zip(-scores, relevant, strict=True), key=lambda pair: (pair[0], pair[1]))]


def naive_ap(hits: list[bool]) -> float:
    precisions = [sum(hits[: r + 1]) / (r + 1) for r in range(len(hits)) if hits[r]]
    return sum(precisions) / sum(hits)


def naive_map_at_r(hits: list[bool]) -> float:
    r = sum(hits)
    return sum(sum(hits[: i + 1]) / (i + 1) for i in range(r) if hits[i]) / r


METRICS: dict[str, tuple[Metric, Callable[[list[bool]], float]]] = {
    "best_rank": (best_rank, lambda hits: hits.index(True) + 1),
    "hit_at 1": (lambda s, r: hit_at(s, r, 1), lambda hits: float(hits[0])),
    "hit_at 5": (lambda s, r: hit_at(s, r, 5), lambda hits: float(any(hits[:5]))),
    "recall_at 3": (lambda s, r: recall_at(s, r, 3), lambda hits: sum(hits[:3]) / sum(hits)),
    "recall_at 99": (lambda s, r: recall_at(s, r, 99), lambda hits: 1.0),
    "precision_at 3": (lambda s, r: precision_at(s, r, 3), lambda hits: sum(hits[:3]) / len(hits[:3])),
    "precision_at 99": (lambda s, r: precision_at(s, r, 99), lambda hits: sum(hits) / len(hits)),
    "r_precision": (r_precision, lambda hits: sum(hits[: sum(hits)]) / sum(hits)),
    "average_precision": (average_precision, naive_ap),
    "map_at_r": (map_at_r, naive_map_at_r),
}
every_metric = pytest.mark.parametrize("name", METRICS)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Scores with many ties, and at least one relevant item in every row."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 12)))
    scores = draw(arrays(np.float32, shape, elements=st.integers(-4, 4)))
    relevant = draw(arrays(np.bool_, shape))
    relevant[:, draw(st.integers(0, shape[1] - 1))] = True
    return scores, relevant


@pytest.fixture
def case(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Scores without ties."""
    scores = rng.permuted(np.tile(np.arange(200.0), (60, 1)), axis=1)
    relevant = rng.random((60, 200)) < rng.uniform(0.01, 0.5, (60, 1))
    relevant[:, 17] = True
    return scores, relevant


@every_metric
@settings(deadline=None)
@given(pair=cases())
def test_the_value_is_what_a_naive_loop_finds(name: str, pair: tuple[np.ndarray, np.ndarray]) -> None:
    metric, naive = METRICS[name]
    expected = [naive(ranked(scores, relevant)) for scores, relevant in zip(*pair, strict=True)]
    np.testing.assert_allclose(metric(*pair), expected, rtol=0, atol=1e-14)


@every_metric
@settings(deadline=None)
@given(pair=cases(), random=st.randoms(use_true_random=False))
def test_moving_queries_or_items_moves_the_values_along(
    name: str, pair: tuple[np.ndarray, np.ndarray], random: Any
) -> None:
    metric, (scores, relevant) = METRICS[name][0], pair
    rows = random.sample(range(len(scores)), len(scores))
    columns = random.sample(range(scores.shape[1]), scores.shape[1])
    moved = metric(scores[rows][:, columns], relevant[rows][:, columns])
    np.testing.assert_array_equal(moved, metric(scores, relevant)[rows])


@every_metric
@settings(deadline=None)
@given(pair=cases())
def test_scores_shifted_or_stretched_rank_the_same(name: str, pair: tuple[np.ndarray, np.ndarray]) -> None:
    metric, (scores, relevant) = METRICS[name][0], pair
    value = metric(scores, relevant)
    ranks = np.unique(scores, return_inverse=True)[1].reshape(scores.shape)
    for same in (scores - 512, scores * 2.0**120, scores * 2.0**-120, scores**3, ranks, ranks.astype(np.uint8)):
        np.testing.assert_array_equal(metric(same, relevant), value)


@every_metric
def test_a_scorer_that_says_the_same_of_everything_puts_the_relevant_last(name: str) -> None:
    metric, naive = METRICS[name]
    relevant = np.array([[True, True, False, False, False, False, False]])
    assert metric(np.full((1, 7), 0.5), relevant)[0] == naive([False] * 5 + [True] * 2)


@every_metric
def test_blocks_of_rows_and_transposed_views_give_the_same_values(
    name: str, case: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, (scores, relevant) = METRICS[name][0], case
    value = metric(scores, relevant)
    monkeypatch.setattr("halation.metrics._blocks._CELLS", 1_000)  # five rows a block
    np.testing.assert_array_equal(metric(scores, relevant), value)
    np.testing.assert_array_equal(metric(np.asfortranarray(scores), np.asfortranarray(relevant)), value)


@every_metric
def test_a_query_without_relevant_items_is_refused_by_its_row(
    name: str, case: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halation.metrics._blocks._CELLS", 1_000)
    scores, relevant = case
    relevant[41] = False
    with pytest.raises(InputError, match="query 41 has no relevant item"):
        METRICS[name][0](scores, relevant)


def test_average_precision_is_scikit_learns_without_ties(case: tuple[np.ndarray, np.ndarray]) -> None:
    expected = [average_precision_score(relevant, scores) for scores, relevant in zip(*case, strict=True)]
    np.testing.assert_allclose(average_precision(*case), expected, rtol=0, atol=1e-12)


def test_eccv_captions_own_code_finds_the_same(case: tuple[np.ndarray, np.ndarray]) -> None:
    peer = pytest.importorskip("eccv_caption._metrics")
    scores, relevant = case
    ranked = {query: np.argsort(-row).tolist() for query, row in enumerate(scores)}
    truth = {query: np.flatnonzero(row).tolist() for query, row in enumerate(relevant)}
    for query in ranked:
        one, gold = {query: ranked[query]}, {query: truth[query]}
        values = peer.compute_eccv_metrics(one, gold)
        assert map_at_r(scores, relevant)[query] == pytest.approx(values["eccv_map_at_r"], abs=1e-12)
        assert r_precision(scores, relevant)[query] == pytest.approx(values["eccv_rprecision"], abs=1e-12)
        assert hit_at(scores, relevant, 1)[query] == values["eccv_r1"]
        assert hit_at(scores, relevant, 5)[query] == peer.compute_r_at_k(one, gold, K=5)


def test_the_published_code_finds_the_same_ranks() -> None:
    arrays_, values = np.load(GOLDEN / "asp.npz"), json.loads((GOLDEN / "asp.json").read_text(encoding="utf-8"))
    scores = arrays_["r20x100/sims"]
    annotated = np.arange(20)[:, None] == np.arange(100) // 5
    for s, relevant, ranks, key in (
        (scores, annotated, "i2t_ranks", "i2t_r1_r5_r10_medr_meanr_asp"),
        (scores.T, annotated.T, "t2i_ranks", "t2i"),
    ):
        np.testing.assert_array_equal(best_rank(s, relevant), arrays_[f"r20x100/{ranks}"] + 1)
        *hits, median, mean = values["r20x100"][key][:5]
        assert [hit_at(s, relevant, k).mean() * 100 for k in (1, 5, 10)] == pytest.approx(hits)
        assert median_rank(s, relevant) == median
        assert best_rank(s, relevant).mean() == pytest.approx(mean)


def test_the_median_rank_is_rounded_down() -> None:
    scores = [[3, 2, 1], [3, 2, 1]]
    assert median_rank(scores, [[1, 0, 0], [0, 1, 0]]) == 1.0
    assert median_rank(scores, [[0, 1, 0], [0, 0, 1]]) == 2.0


def test_recall_and_precision_meet_at_r(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, relevant = case
    for row in range(0, 60, 7):
        s, r = scores[row : row + 1], relevant[row : row + 1]
        assert r_precision(s, r) == recall_at(s, r, int(r.sum())) == precision_at(s, r, int(r.sum()))


def test_blocks_of_hits_joined_are_the_hits_of_the_whole(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, relevant = case
    whole = relevant_ranks(rank(scores), relevant)
    parts = [relevant_ranks(rank(scores[at]), relevant[at]) for at in (slice(0, 7), slice(7, 8), slice(8, 60))]
    joined = RelevantRanks.cat(parts)
    np.testing.assert_array_equal(joined.ranks, whole.ranks)
    np.testing.assert_array_equal(joined.starts, whole.starts)
    assert joined.n == whole.n == 200
    assert len(joined) == 60
    np.testing.assert_array_equal(whole.counts, relevant.sum(axis=1))


@pytest.mark.parametrize("metric", [hit_at, recall_at, precision_at])
def test_a_cutoff_below_one_or_not_whole_is_refused(metric: Callable[..., np.ndarray]) -> None:
    for k in (0, -3):
        with pytest.raises(InputError, match="k must be 1 or more"):
            metric([[1.0]], [[True]], k)
    for k in (2.5, "3", None):
        with pytest.raises(InputError, match="whole number"):
            metric([[1.0]], [[True]], k)


def test_relevant_items_outside_the_gallery_rank_after_everything() -> None:
    positives = relevant_ranks(rank(np.array([[0.9, 0.5], [0.1, 0.2]])), np.array([[True, False], [True, True]]))
    padded = positives.with_missing(np.array([2, 0]))
    assert padded.ranks.tolist() == [1, 3, 4, 1, 2]
    assert padded.counts.tolist() == [3, 2]
    assert positives.with_missing(np.zeros(2, np.int64)) is positives
