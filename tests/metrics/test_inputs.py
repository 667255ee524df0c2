"""Metrics accept every float type, tensors and views, and refuse values without an order."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halation import InputError
from halation.metrics import asp, asp_ceiling, average_precision, ndcg_at, pmrp

SCORES = np.array([[0.5, -2.0, 4.0, 0.25], [8.0, 1.0, -1.0, 0.0]])
GRADED = np.array([[0.0, 0.5, 2.0, 0.0], [1.0, 0.0, 0.25, 0.0]])

METRICS: dict[str, Callable[[Any], np.ndarray]] = {
    "asp": lambda scores: asp(scores, GRADED),
    "average_precision": lambda scores: average_precision(scores, GRADED > 0),
    "ndcg_at": lambda scores: ndcg_at(scores, GRADED, 3),
    "pmrp": lambda scores: pmrp(scores, np.eye(2), np.ones((4, 2)), 1),
}
every_metric = pytest.mark.parametrize("name", METRICS)


@every_metric
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f4", ">f8"])
def test_every_float_type_gives_the_same_value(name: str, dtype: Any) -> None:
    np.testing.assert_array_equal(METRICS[name](SCORES.astype(dtype)), METRICS[name](SCORES))


@every_metric
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tensors_give_the_same_value(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    scores = torch.tensor(SCORES, dtype=getattr(torch, dtype), requires_grad=True)
    np.testing.assert_array_equal(METRICS[name](scores), METRICS[name](SCORES))


@every_metric
def test_lists_integers_views_and_read_only_arrays_are_taken(name: str) -> None:
    whole = SCORES * 4
    value = METRICS[name](SCORES)
    padded = np.zeros((4, 8))
    padded[::2, ::2] = SCORES
    frozen = SCORES.copy()
    frozen.flags.writeable = False
    for same in (SCORES.tolist(), whole.astype(np.int8), whole.astype(np.int64), padded[::2, ::2], frozen):
        np.testing.assert_array_equal(METRICS[name](same), value)
    np.testing.assert_array_equal(METRICS[name](np.asfortranarray(SCORES)), value)


@every_metric
def test_the_callers_arrays_are_left_alone(name: str) -> None:
    scores, graded = SCORES.copy(), GRADED.copy()
    METRICS[name](scores)
    np.testing.assert_array_equal(scores, SCORES)
    np.testing.assert_array_equal(graded, GRADED)


@every_metric
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("turned", [False, True])
def test_scores_without_an_order_are_refused_by_their_place(name: str, bad: float, turned: bool) -> None:
    scores = np.asfortranarray(SCORES) if turned else SCORES.copy()
    scores[1, 2] = bad
    with pytest.raises(InputError, match=r"scores\[1, 2\] is"):
        METRICS[name](scores)


@every_metric
def test_huge_scores_do_not_overflow(name: str) -> None:
    np.testing.assert_array_equal(METRICS[name](SCORES * 2.0**1020), METRICS[name](SCORES))
    np.testing.assert_array_equal(METRICS[name]((SCORES * 2.0**124).astype(np.float32)), METRICS[name](SCORES))


@every_metric
def test_anything_but_a_matrix_of_numbers_is_refused(name: str) -> None:
    for bad, message in (
        ([1.0, 2.0], "must be a matrix"),
        (np.zeros((2, 4, 1)), "must be a matrix"),
        (np.zeros((0, 4)), "is empty"),
        ([["a", "b", "c", "d"]] * 2, "must hold numbers"),
        ([[1.0, 2.0], [3.0]], "rows of different lengths"),
        (SCORES * 1j, "must hold numbers"),
        (np.full((2, 4), 2**53 + 1), r"integers beyond 2\*\*53"),
    ):
        with pytest.raises(InputError, match=message):
            METRICS[name](bad)


@pytest.mark.parametrize("name", ["asp", "average_precision", "ndcg_at"])
def test_shapes_that_do_not_fit_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"has shape \(2, 4\) but the scores have \(2, 3\)"):
        METRICS[name](SCORES[:, :3])
    with pytest.raises(InputError, match="it fits transposed"):
        METRICS[name](SCORES.T)


def test_relevance_must_be_finite_and_yes_or_no_where_it_says_so() -> None:
    graded = GRADED.copy()
    graded[0, 3] = np.nan
    with pytest.raises(InputError, match=r"relevance\[0, 3\] is nan"):
        asp(SCORES, graded)
    with pytest.raises(InputError, match=r"relevance\[0, 3\] is nan"):
        asp_ceiling(graded)
    with pytest.raises(InputError, match=r"gains\[0, 3\] is nan"):
        ndcg_at(SCORES, graded, 1)
    with pytest.raises(InputError, match="relevant must be true or false"):
        average_precision(SCORES, GRADED)
    with pytest.raises(InputError, match="relevant must be true or false, not <U1"):
        average_precision(SCORES, GRADED.astype("<U1"))
    with pytest.raises(InputError, match="relevant must be true or false"):
        average_precision(SCORES, np.where(GRADED > 0, np.nan, 0))
    np.testing.assert_array_equal(
        average_precision(SCORES, (GRADED > 0).astype(np.float32)), average_precision(SCORES, GRADED > 0)
    )


def test_the_number_of_threads_changes_nothing(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, relevance = rng.integers(0, 9, (2, 700, 30))  # several tasks
    values = []
    for count in ("1", "5"):
        monkeypatch.setenv("HALATION_THREADS", count)
        values.append((asp(scores, relevance), average_precision(scores, relevance > 3), ndcg_at(scores, relevance, 5)))
    for one, five in zip(*values, strict=True):
        np.testing.assert_array_equal(one, five)


@pytest.mark.parametrize("turned", [False, True])
def test_a_big_matrix_is_read_in_blocks_and_never_copied_whole(
    turned: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")  # every thread has a block of its own
    scores, relevance = rng.random((2, 3000, 4000), dtype=np.float32)  # 48 MB each
    if turned:
        scores, relevance = scores.T, relevance.T
    asp(scores[:20], relevance[:20])  # compiled before it is watched
    tracemalloc.start()
    try:
        asp(scores, relevance)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < scores.nbytes / 4
