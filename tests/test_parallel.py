"""Work over row ranges, on threads."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest

from halation import InputError
from halation._parallel import over_rows, threads


def covered(rows: int, per_task: int | None = None) -> list[int]:
    seen = np.zeros(rows, int)

    def work(start: int, stop: int) -> None:
        seen[start:stop] += 1

    over_rows(rows, work, per_task)
    return seen.tolist()


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("per_task", [None, 1, 3, 1000])
@pytest.mark.parametrize("workers", ["1", "2", "5"])
def test_every_row_is_worked_once(
    rows: int, per_task: int | None, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALATION_THREADS", workers)
    assert covered(rows, per_task) == [1] * rows


def test_an_error_is_raised_after_all_threads_have_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    finished = []

    def work(start: int, stop: int) -> None:
        if start == 0:
            raise RuntimeError("row 0")
        finished.append(start)

    with pytest.raises(RuntimeError, match="row 0"):
        over_rows(20, work, per_task=1)
    assert sorted(finished) == list(range(1, 20))


def test_work_within_work_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    total = []
    over_rows(8, lambda start, stop: total.append(sum(covered(50, 1))), per_task=1)
    assert total == [50] * 8


def test_callers_on_several_threads_share_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    results: list[list[int]] = []
    callers = [threading.Thread(target=lambda: results.append(covered(100, 5))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
    assert results == [[1] * 100] * 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_works_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    covered(10, 1)
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply_async(covered, (10, 1)).get(timeout=60) == [1] * 10


def test_the_number_of_threads_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "3")
    assert threads() == 3
    for wrong in ("0", "-1", "two", ""):
        monkeypatch.setenv("HALATION_THREADS", wrong)
        with pytest.raises(InputError, match="HALATION_THREADS"):
            threads()
    monkeypatch.delenv("HALATION_THREADS")
    assert threads() >= 1


def test_a_caller_may_ask_for_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "4")
    names: set[str] = set()
    over_rows(50, lambda start, stop: names.add(threading.current_thread().name), per_task=1, at_most=1)
    assert names == {threading.current_thread().name}
