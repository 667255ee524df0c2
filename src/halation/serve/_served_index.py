"""The index being served, and how a new one replaces it while requests go on."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from PIL.Image import Image

from halation._errors import HalationError
from halation.search import Answer, Item
from halation.serve._refusals import Refusal, message_for_client
from halation.serve._server_metrics import ServerMetrics

__all__ = ["Searcher", "ServedIndex", "opener"]

T = TypeVar("T")
_log = logging.getLogger("halation.serve")


class Searcher(Protocol):
    """The methods of a search that the server calls, from several threads; `halation.search.Search` has them."""

    def text(self, query: str, k: int = 10, want: str = "auto") -> Answer: ...

    def image(self, picture: Image, k: int = 10, want: str = "auto", name: str = "image") -> Answer: ...

    def like(self, id: str, k: int = 10, want: str = "auto") -> Answer: ...  # noqa: A002

    def item(self, id: str) -> Item: ...  # noqa: A002

    def picture_bytes(self, id: str, limit: int = 1 << 26) -> bytes | None: ...  # noqa: A002

    def __len__(self) -> int: ...

    @property
    def items(self) -> Sequence[str]: ...

    @property
    def about(self) -> dict[str, Any]: ...


class ServedIndex:
    """The search in use. Work keeps the search it began with; an old search closes after its last work."""

    def __init__(
        self,
        search: Searcher,
        reopen: Callable[[], Searcher] | None,
        metrics: ServerMetrics,
        opened: Sequence[Path] = (),
    ) -> None:
        self.current, self.generation = search, 1
        self._reopen, self._metrics, self._reloading = reopen, metrics, False
        self._opened = tuple(opened)
        self._users: Counter[int] = Counter()  # work under way, by generation
        self._lock = threading.Lock()

    def folders(self) -> list[Path]:
        """The folders that errors may name, and that clients must not see."""
        run = self.current.about.get("run")
        return [*self._opened, *getattr(self.current, "roots", ()), *([Path(run)] if run else ())]

    def call(self, work: Callable[[Searcher], T]) -> T:
        """The result of `work(search)`, in the calling thread; work may outlast the request it is for."""
        with self._lock:
            search, generation = self.current, self.generation
            self._users[generation] += 1
        try:
            return work(search)
        finally:
            with self._lock:
                self._users[generation] -= 1
                is_last = generation != self.generation and not self._users[generation]
            if is_last:
                _close(search)

    async def reload(self) -> int:
        """Open the index again and use it; returns its number. If it cannot be opened, the old one stays in use."""
        if self._reopen is None:
            raise Refusal(409, "this server was given an open search, not a folder, so it cannot reload", "reload")
        if self._reloading:
            raise Refusal(409, "a reload is already under way; wait for it", "reload")
        self._reloading = True
        try:
            # in its own thread: opening takes seconds, and searches must not wait for it
            fresh = await asyncio.to_thread(self._reopen)
        except (HalationError, OSError) as error:
            self._metrics.reloads.labels("failed").inc()
            _log.error("the index was not reloaded, the old one stays: %s", error)
            message = (
                f"the index was not reloaded, the old one stays in use: {message_for_client(error, self.folders())}"
            )
            raise Refusal(409, message, "reload") from error
        finally:
            self._reloading = False
        with self._lock:
            old, is_idle = self.current, not self._users[self.generation]
            self.current, self.generation = fresh, self.generation + 1
        if is_idle:
            await asyncio.to_thread(_close, old)
        self._metrics.reloads.labels("done").inc()
        _log.info("index %d: %s items", self.generation, f"{len(fresh):,}")
        return self.generation


def _close(search: Searcher) -> None:
    """Close an old search: its files and its connection to a database."""
    close = getattr(search, "close", None)  # optional: a search may have nothing to close
    if close is not None:
        try:
            close()
        except Exception:  # the last request to use it is not to blame
            _log.exception("an old index was not closed")


def opener(folder: Path, run: Path | None) -> Callable[[], Searcher]:
    """A function that opens an index's folder and loads the model, so that the first query does not wait."""

    def reopen() -> Searcher:
        from halation.search import open_search

        search = open_search(folder, run)
        search.warm()
        return search

    return reopen
