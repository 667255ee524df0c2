"""Threads that work off the event loop, with queues of limited length."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from halation.serve._refusals import Refusal

__all__ = ["ClientGone", "UploadSlots", "WorkerPool"]

T = TypeVar("T")
Gone = Callable[[], Awaitable[None]]
"""A coroutine function that returns when the client has disconnected."""


class ClientGone(Exception):
    """The client closed the connection before its answer was ready."""


class WorkerPool:
    """A pool of threads. At most `queue` pieces of work wait for one; the next is refused at once with 503.

    Work that has not begun leaves the queue when its client disconnects or its time is over.
    """

    def __init__(self, threads: int, queue: int, timeout: float, name: str) -> None:
        self.limit, self.timeout, self.name = threads + queue, timeout, name
        self.held = 0  # waiting or under way
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"halation-{name}")

    async def run(self, work: Callable[..., T], *arguments: Any, gone: Gone | None = None) -> T:
        """The result of `work(*arguments)`, unless the client disconnects (`gone` returns) or the time is over."""
        if self.held >= self.limit:
            raise _busy(self.held)
        return await _in_time(asyncio.wrap_future(self._submit(work, *arguments)), self.timeout, gone)

    def _submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        with self._lock:
            self.held += 1
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(self._release)  # when the thread is free again, even if nobody waits any more
        return future

    def _release(self, _: Future[Any]) -> None:
        with self._lock:
            self.held -= 1

    def close(self) -> None:
        """Begin no more work, and wait for the work under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)


class UploadSlots:
    """Limits the uploads in memory: `slots` at once. At most `queue` requests wait; the next is refused with 503."""

    def __init__(self, slots: int, queue: int, timeout: float) -> None:
        self.limit, self.timeout = slots + queue, timeout
        self.held = 0  # waiting or in memory
        self._free = asyncio.Semaphore(slots)

    @asynccontextmanager
    async def slot(self, gone: Gone | None = None) -> AsyncIterator[None]:
        """Hold a slot for as long as the block lasts."""
        if self.held >= self.limit:
            raise _busy(self.held)
        self.held += 1
        acquired = asyncio.ensure_future(self._free.acquire())
        try:
            await _in_time(acquired, self.timeout, gone)
            yield
        finally:
            self.held -= 1
            if acquired.done() and not acquired.cancelled():
                self._free.release()


async def _in_time(future: asyncio.Future[T], seconds: float, gone: Gone | None) -> T:
    """The result of a future; it is cancelled if the client disconnects first, or when its time is over."""
    left = None if gone is None else asyncio.ensure_future(gone())
    try:
        waited: set[asyncio.Future[Any]] = {future} if left is None else {future, left}
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if left is not None and left.done():
            raise ClientGone
        raise Refusal(
            504, f"no answer within {seconds:g} seconds; the server is overloaded, try again later", "timeout"
        )
    finally:
        future.cancel()
        if left is not None:
            left.cancel()


def _busy(held: int) -> Refusal:
    return Refusal(
        503,
        f"the server is busy: {held} requests of this kind are already waiting; try again in a moment",
        "queue_full",
        {"retry-after": "1"},
    )
