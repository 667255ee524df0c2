"""Batches loaded by threads before they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from halation._ahead import load_ahead


@pytest.mark.parametrize("ahead", [0, 1, 3, 10])
@pytest.mark.parametrize("workers", [1, 4])
def test_every_batch_comes_once_and_in_order(workers: int, ahead: int) -> None:
    batches = [(name, range(name)) for name in range(6)]
    loaded = load_ahead(batches, lambda item: item + 1, workers=workers, ahead=ahead)
    assert [(name, [future.result() for future in futures]) for name, futures in loaded] == [
        (name, list(range(1, name + 1))) for name in range(6)
    ]


def test_no_more_batches_are_begun_than_asked_for() -> None:
    begun: list[int] = []

    def batches() -> Iterator[tuple[int, list[int]]]:
        for name in range(10):
            begun.append(name)
            yield name, [name]

    loaded = load_ahead(batches(), lambda item: item, workers=2, ahead=2)
    assert next(loaded)[0] == 0 and begun == [0, 1, 2]
    assert next(loaded)[0] == 1 and begun == [0, 1, 2, 3]


def test_an_error_is_that_items_alone() -> None:
    ((_, (bad, good)),) = load_ahead([("a", [0, 2])], lambda item: 1 / item, workers=2)
    assert good.result() == 0.5
    with pytest.raises(ZeroDivisionError):
        bad.result()


def test_who_stops_early_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    loaded = load_ahead(((k, range(3)) for k in range(100)), lambda item: item, workers=3, ahead=5)
    next(loaded)
    assert threading.active_count() > before
    loaded.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
