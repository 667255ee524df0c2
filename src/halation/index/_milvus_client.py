"""A Milvus connection that survives a restart of the server, and one collection of points."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from halation._errors import InputError, MissingExtra
from halation.index._backend import BackendUnavailable, Keys, Points
from halation.index._exact import by_distance

__all__ = ["SCHEMA", "Collection", "Connection", "without_password"]

T = TypeVar("T")
_CALL = 20.0  # seconds a single call may take
# in errors of a server that starts, stops or hands a collection over: the same request succeeds a little later
_TEMPORARY = (
    "unavailable", "not ready", "not loaded", "not fully loaded", "no available", "not available", "offline",
    "deadline", "timeout", "timed out", "connect", "retry", "abnormal", "not found for shard", "closed",
    "service is stopping", "rate limit", "node not match", "not serving", "unhealthy", "distribution",
)  # fmt: skip
SCHEMA = 1
_ID, _POINT = "id", f"point_{SCHEMA}"  # the version is part of the schema: every Milvus keeps the names of fields
_BYTES, _MOST = 4 << 20, 16_384  # per message; the most hits that Milvus returns
_RECENT = 10.0  # for this many seconds after a write, a search waits for it; "Bounded" is at most 5 s behind
_AGAIN = "put the items in again: Index.load(folder, backend=Milvus(uri))"


class Connection:
    """Calls to one Milvus, repeated for up to `patience` seconds while it does not answer."""

    def __init__(self, uri: str, token: str, patience: float) -> None:
        try:
            import pymilvus
        except ImportError:
            raise MissingExtra("the milvus backend", "milvus") from None
        self.pymilvus, self.uri, self._token, self.patience = pymilvus, uri, token, patience
        self.prepare: Callable[[Any], object] | None = None  # called first with every new client
        self._client: Any = None

    def __call__(self, what: str, work: Callable[[Any], T]) -> T:
        """`work(client)`, repeated until it succeeds; doing the work twice must do no harm."""
        until, wait = time.monotonic() + self.patience, 0.1
        while True:
            try:
                with _quiet():
                    return work(self._connected())
            except InputError:
                raise
            except Exception as error:  # pymilvus lets through what grpc, protobuf and its own checks raise
                reason = " ".join(str(error).split())[:300]
                if not _is_temporary(error):
                    raise InputError(f"Milvus at {self.label} would not {what}: {reason}") from None
                self.close()
                if time.monotonic() > until:
                    raise BackendUnavailable(
                        f"Milvus at {self.label} did not {what} within {self.patience:g} s ({reason}); "
                        "nothing is lost: do the same again when it is back"
                    ) from None
            time.sleep(wait)
            wait = min(2 * wait, 2.0)

    def do(self, what: str, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the client, with a time limit."""
        return self(what, lambda client: getattr(client, method)(*arguments, timeout=self.seconds, **options))

    def _connected(self) -> Any:
        if self._client is None:
            client = self.pymilvus.MilvusClient(uri=self.uri, token=self._token, timeout=self.seconds)
            if self.prepare is not None:
                self.prepare(client)
            self._client = client
        return self._client

    @property
    def label(self) -> str:
        """The address for messages: without a password; of a local file only its name."""
        return without_password(self.uri) if "://" in self.uri else Path(self.uri).name

    @property
    def seconds(self) -> float:
        """The time limit of a single call."""
        return max(1.0, min(_CALL, self.patience))

    def close(self) -> None:
        """Close the connection; the next call connects again."""
        client, self._client = self._client, None
        if client is not None:
            try:
                with _quiet():
                    client.close()
            except Exception:  # it is gone already
                return


class Collection:
    """A collection with the fields `id` and `point_1`. Every call may be repeated after a dropped connection."""

    def __init__(self, call: Connection, name: str) -> None:
        self.call, self.name = call, name
        self._where = f"the collection {name} of Milvus at {call.label}"
        self._written = -math.inf  # when, by this process

    def create(self, width: int, *, replace: bool) -> None:
        """Make the collection, empty; a search compares all points until `index` is called."""
        types, begun = self.call.pymilvus.DataType, False

        def work(client: Any) -> None:
            nonlocal begun
            if client.has_collection(self.name, timeout=self.call.seconds):
                if not replace and not begun:
                    raise InputError(f"{self._where} exists already; name another, or pass replace=True to empty it")
                client.drop_collection(self.name, timeout=self.call.seconds)
            begun = True  # a collection that exists from now on was made by an earlier attempt
            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field(_ID, types.INT64, is_primary=True)
            schema.add_field(_POINT, types.FLOAT_VECTOR, dim=width)
            client.create_collection(self.name, schema=schema, consistency_level="Strong", timeout=self.call.seconds)

        self.call("make a collection", work)
        self.index("FLAT", {})

    def index(self, kind: str, parameters: dict[str, int]) -> None:
        """Index all points and load the collection again: a loaded collection is searched by its old index."""

        def work(client: Any) -> None:
            client.release_collection(self.name)
            for name in client.list_indexes(self.name):
                client.drop_index(self.name, name)
            wanted = client.prepare_index_params()
            wanted.add_index(field_name=_POINT, index_type=kind, metric_type="L2", params=parameters)
            client.create_index(self.name, wanted)
            client.load_collection(self.name)

        self.call.prepare = None  # without an index nothing can be loaded
        self.call("index the points", work)
        self.call.prepare = self._load  # a server that was away may have forgotten that it is to be searched

    def _load(self, client: Any) -> None:
        client.load_collection(self.name, timeout=self.call.seconds)

    def check(self, width: int, points: int) -> None:
        """An InputError unless the collection exists, has our schema and holds this many points."""

        def work(client: Any) -> dict[str, int]:
            if not client.has_collection(self.name, timeout=self.call.seconds):
                raise InputError(f"{self._where} does not exist any more", remedy=_AGAIN)
            fields = client.describe_collection(self.name, timeout=self.call.seconds)["fields"]
            return {field["name"]: int(field["params"].get("dim", 0)) for field in fields}

        fields = self.call("describe the collection", work)
        if fields != {_ID: 0, _POINT: width}:
            raise InputError(
                f"{self._where} has the fields {fields}, not those of schema {SCHEMA} with {width} numbers per point; "
                "another version of halation or another program made it"
            )
        self.call("load the collection", self._load)
        self.call.prepare = self._load
        count = self.count()
        if count != points:
            raise InputError(
                f"{self._where} holds {count:,} points, and the index was saved with {points:,}", remedy=_AGAIN
            )

    def upsert(self, keys: Keys, points: Points) -> None:
        """Store points in batches."""
        step = max(1, min(_MOST, _BYTES // (4 * points.shape[1])))
        for start in range(0, len(keys), step):
            some = slice(start, start + step)
            rows = [{_ID: int(key), _POINT: point} for key, point in zip(keys[some], points[some], strict=True)]
            self.call.do("store points", "upsert", self.name, rows)
            self._written = time.monotonic()

    def delete(self, keys: Keys) -> None:
        """Delete points in batches."""
        for start in range(0, len(keys), _MOST // 4):
            self.call.do("delete points", "delete", self.name, ids=keys[start : start + _MOST // 4].tolist())
            self._written = time.monotonic()

    def search(self, points: Points, k: int, probes: int) -> tuple[Keys, Points]:
        """The k nearest, among them everything this process wrote. probes: lists to search; 0: there are no lists."""
        if k > _MOST:
            raise InputError(
                f"Milvus gives at most {_MOST:,} items at once, not {k:,}", remedy="ask for fewer, or use faiss"
            )
        keys, squared = np.full((len(points), k), -1, np.int64), np.full((len(points), k), np.inf, np.float32)
        options = {
            "limit": k, "anns_field": _POINT, "consistency_level": self._level(),
            "search_params": {"metric_type": "L2", "params": {"nprobe": probes} if probes else {}},
        }  # fmt: skip
        step = max(1, min(1000, _BYTES // (4 * points.shape[1])))
        for start in range(0, len(points), step):
            some = list(np.ascontiguousarray(points[start : start + step]))
            results = self.call.do("search", "search", self.name, data=some, **options)
            for row, hits in enumerate(results, start=start):
                keys[row, : len(hits)] = [hit["id"] for hit in hits]
                squared[row, : len(hits)] = [hit["distance"] for hit in hits]
        return by_distance(keys, np.maximum(squared, 0))

    def _level(self) -> str:
        """The consistency level at which a search sees what this process wrote.

        "Strong" waits for the server's next tick, 0.2 s or more per search.
        """
        return "Strong" if time.monotonic() - self._written < _RECENT else "Bounded"

    def count(self) -> int:
        """The number of points, including everything written so far."""
        options = {"filter": "", "output_fields": ["count(*)"], "consistency_level": "Strong"}
        rows = self.call.do("count points", "query", self.name, **options)
        return int(rows[0]["count(*)"])

    def flush(self) -> None:
        """Have everything written to the server's disk."""
        self.call("write points to disk", lambda client: client.flush(self.name))

    def drop(self) -> None:
        """Delete the collection."""
        self.call.prepare = None
        self.call.do("drop the collection", "drop_collection", self.name)


def _is_temporary(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    code = getattr(error, "code", None)
    code = code() if callable(code) else code
    if getattr(code, "name", "") in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL"):
        return True
    text = str(error).lower()
    return any(word in text for word in _TEMPORARY)


def without_password(uri: str) -> str:
    """A URI without the name and password that may be in it.

    >>> without_password("https://me:secret@milvus.example:19530")
    'https://milvus.example:19530'
    """
    parts = urlsplit(uri)
    return uri if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


_thread = threading.local()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence pymilvus, which logs a stack trace for every error it raises, while we handle its errors."""
    for name in ("pymilvus.decorators", "pymilvus.client.grpc_handler", "pymilvus.client.connection_manager"):
        logger = logging.getLogger(name)
        if _not_ours not in logger.filters:
            logger.addFilter(_not_ours)
    server = logging.getLogger("grpc._server")  # of a local file: it lacks a method that newer clients try first
    if _not_unknown_method not in server.filters:
        server.addFilter(_not_unknown_method)
    _thread.ours = True
    try:
        yield
    finally:
        _thread.ours = False


def _not_ours(record: logging.LogRecord) -> bool:
    return not getattr(_thread, "ours", False)


def _not_unknown_method(record: logging.LogRecord) -> bool:
    return "Method not implemented" not in record.getMessage()
