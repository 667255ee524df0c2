"""A connection to Milvus that outlives the server going away for a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from halation._errors import InputError, MissingExtra
from halation.index._backend import BackendUnavailable

__all__ = ["Connection", "shown"]

T = TypeVar("T")
_CALL = 20.0  # seconds a single call may take
# what a server says while it starts, stops or hands a collection over: the same request succeeds a little later
_PASSING = (
    "unavailable", "not ready", "not loaded", "not fully loaded", "no available", "not available", "offline",
    "deadline", "timeout", "timed out", "connect", "retry", "abnormal", "not found for shard", "closed",
    "service is stopping", "rate limit", "node not match", "not serving", "unhealthy", "distribution",
)  # fmt: skip


class Connection:
    """Calls to one Milvus, made again while it is away, for `patience` seconds."""

    def __init__(self, uri: str, token: str, patience: float) -> None:
        try:
            import pymilvus
        except ImportError:
            raise MissingExtra("the milvus backend", "milvus") from None
        self.pymilvus, self.uri, self._token, self.patience = pymilvus, uri, token, patience
        self.prepare: Callable[[Any], object] | None = None  # done with every new client before anything else
        self._client: Any = None

    def __call__(self, what: str, work: Callable[[Any], T]) -> T:
        """work(client), again and again until it succeeds; the work must do no harm when it is done twice."""
        until, wait = time.monotonic() + self.patience, 0.1
        while True:
            try:
                with _quiet():
                    return work(self._connected())
            except InputError:
                raise
            except Exception as error:  # pymilvus lets through what grpc, protobuf and its own checks raise
                reason = " ".join(str(error).split())[:300]
                if not _passes(error):
                    raise InputError(f"Milvus at {shown(self.uri)} would not {what}: {reason}") from None
                self.close()
                if time.monotonic() > until:
                    raise BackendUnavailable(
                        f"Milvus at {shown(self.uri)} did not {what} within {self.patience:g} s ({reason}); nothing "
                        "is lost: do the same again when it is back"
                    ) from None
            time.sleep(wait)
            wait = min(2 * wait, 2.0)

    def do(self, what: str, method: str, *arguments: Any, **options: Any) -> Any:
        """One method of the client, with a limit of time."""
        return self(what, lambda client: getattr(client, method)(*arguments, timeout=self.seconds, **options))

    def _connected(self) -> Any:
        if self._client is None:
            client = self.pymilvus.MilvusClient(uri=self.uri, token=self._token, timeout=self.seconds)
            if self.prepare is not None:
                self.prepare(client)
            self._client = client
        return self._client

    @property
    def seconds(self) -> float:
        """How long a single call may take."""
        return max(1.0, min(_CALL, self.patience))

    def close(self) -> None:
        """Let go; the next call connects again."""
        client, self._client = self._client, None
        if client is not None:
            try:
                with _quiet():
                    client.close()
            except Exception:  # it is gone already
                return


def _passes(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    code = getattr(error, "code", None)
    code = code() if callable(code) else code
    if getattr(code, "name", "") in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL"):
        return True
    text = str(error).lower()
    return any(word in text for word in _PASSING)


def shown(uri: str) -> str:
    """A URI without the name and password that may be in it.

    >>> shown("https://me:secret@milvus.example:19530")
    'https://milvus.example:19530'
    """
    parts = urlsplit(uri)
    return uri if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


_here = threading.local()


@contextmanager
def _quiet() -> Iterator[None]:
    """pymilvus logs a stack trace for every error it raises; ours are handled, so they are not for people to read."""
    for name in ("pymilvus.decorators", "pymilvus.client.grpc_handler", "pymilvus.client.connection_manager"):
        logger = logging.getLogger(name)
        if _unless_ours not in logger.filters:
            logger.addFilter(_unless_ours)
    server = logging.getLogger("grpc._server")  # of a local file: it has no method that newer clients ask for first
    if _unless_unknown not in server.filters:
        server.addFilter(_unless_unknown)
    _here.ours = True
    try:
        yield
    finally:
        _here.ours = False


def _unless_ours(record: logging.LogRecord) -> bool:
    return not getattr(_here, "ours", False)


def _unless_unknown(record: logging.LogRecord) -> bool:
    return "Method not implemented" not in record.getMessage()
