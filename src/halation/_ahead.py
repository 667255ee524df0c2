"""Batches loaded by threads before they are needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["load_ahead"]

Batch = TypeVar("Batch")
Item = TypeVar("Item")
Loaded = TypeVar("Loaded")


def load_ahead(
    batches: Iterable[tuple[Batch, Iterable[Item]]], load: Callable[[Item], Loaded], *, workers: int, ahead: int = 1
) -> Iterator[tuple[Batch, list[Future[Loaded]]]]:
    """Yield each batch, in order, with a future of `load(item)` for each of its items.

    Meanwhile, `workers` threads load the items of up to `ahead` later batches; no more are held. A batch's items are
    listed when its loading begins. An error in `load` is raised by its future's `result()`. If you stop early (a
    `break`, an error), no thread is left behind.

    >>> [(name, [future.result() for future in futures])
    ...  for name, futures in load_ahead([("a", [1, 2]), ("b", [3])], lambda x: 10 * x, workers=2)]
    [('a', [10, 20]), ('b', [30])]
    """
    pool = ThreadPoolExecutor(max(1, workers))
    waiting: deque[tuple[Batch, list[Future[Loaded]]]] = deque()
    stopped = True
    try:
        for batch, items in batches:
            waiting.append((batch, [pool.submit(load, item) for item in items]))
            if len(waiting) > ahead:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
        stopped = False
    finally:
        pool.shutdown(wait=True, cancel_futures=stopped)
