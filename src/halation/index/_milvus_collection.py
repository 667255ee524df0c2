"""One Milvus collection of points under keys: its schema, its index, and what is asked of it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from halation._errors import InputError
from halation.index._backend import Keys, Points
from halation.index._milvus_connection import Connection, shown
from halation.index._nearest import by_distance

__all__ = ["SCHEMA", "Collection"]

SCHEMA = 1
_ID, _POINT = "id", f"point_{SCHEMA}"  # the version is part of the schema: every Milvus keeps the names of fields
_BYTES, _MOST = 4 << 20, 16_384  # of one message; the hits Milvus gives at most
_RECENT = 10.0  # seconds after a write in which a search waits for it; "Bounded" is 5 s behind at most
_AGAIN = "put the items in again: Index.load(folder, backend=Milvus(uri))"


class Collection:
    """A collection with fields `id` and `point_1`. Every call may be repeated, so a dropped connection does no harm."""

    def __init__(self, call: Connection, name: str) -> None:
        self.call, self.name = call, name
        self._where = f"the collection {name} of Milvus at {shown(call.uri)}"
        self._written = -math.inf  # when, by this process

    def create(self, width: int, *, replace: bool) -> None:
        """Make it, empty, searched by comparing all points."""
        types, begun = self.call.pymilvus.DataType, False

        def work(client: Any) -> None:
            nonlocal begun
            if client.has_collection(self.name, timeout=self.call.seconds):
                if not replace and not begun:
                    raise InputError(
                        f"{self._where} is there already; name another, or pass replace=True to begin anew"
                    )
                client.drop_collection(self.name, timeout=self.call.seconds)
            begun = True  # what is there from now on is of a first attempt
            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field(_ID, types.INT64, is_primary=True)
            schema.add_field(_POINT, types.FLOAT_VECTOR, dim=width)
            client.create_collection(self.name, schema=schema, consistency_level="Strong", timeout=self.call.seconds)

        self.call("make a collection", work)
        self.index("FLAT", {})

    def index(self, kind: str, parameters: dict[str, int]) -> None:
        """Index all points and load the collection (again: what was loaded before would be searched as it was)."""

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
        """It is there, is ours, and holds as many points as were left in it."""

        def work(client: Any) -> dict[str, int]:
            if not client.has_collection(self.name, timeout=self.call.seconds):
                raise InputError(f"{self._where} is not there any more; {_AGAIN}")
            fields = client.describe_collection(self.name, timeout=self.call.seconds)["fields"]
            return {field["name"]: int(field["params"].get("dim", 0)) for field in fields}

        fields = self.call("describe the collection", work)
        if fields != {_ID: 0, _POINT: width}:
            raise InputError(
                f"{self._where} has the fields {fields}, not those of schema {SCHEMA} with {width} numbers a point; it "
                "is of another version of halation, or of another program"
            )
        self.call("load the collection", self._load)
        self.call.prepare = self._load
        there = self.count()
        if there != points:
            raise InputError(f"{self._where} holds {there:,} points, and the index was saved with {points:,}; {_AGAIN}")

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
        """The k nearest, everything this process wrote seen. probes: lists to look into, 0 where there are none."""
        if k > _MOST:
            raise InputError(f"Milvus gives at most {_MOST:,} items at once, not {k:,}; ask for fewer, or use faiss")
        keys, squared = np.full((len(points), k), -1, np.int64), np.full((len(points), k), np.inf, np.float32)
        options = {
            "limit": k, "anns_field": _POINT, "consistency_level": self._level(),
            "search_params": {"metric_type": "L2", "params": {"nprobe": probes} if probes else {}},
        }  # fmt: skip
        step = max(1, min(1000, _BYTES // (4 * points.shape[1])))
        for start in range(0, len(points), step):
            some = list(np.ascontiguousarray(points[start : start + step]))
            found = self.call.do("search", "search", self.name, data=some, **options)
            for row, hits in enumerate(found, start=start):
                keys[row, : len(hits)] = [hit["id"] for hit in hits]
                squared[row, : len(hits)] = [hit["distance"] for hit in hits]
        return by_distance(keys, np.maximum(squared, 0))

    def _level(self) -> str:
        """To see what this process wrote: "Strong" waits for the server's next tick, 0.2 s and more a search."""
        return "Strong" if time.monotonic() - self._written < _RECENT else "Bounded"

    def count(self) -> int:
        """How many points it holds, everything written so far counted."""
        options = {"filter": "", "output_fields": ["count(*)"], "consistency_level": "Strong"}
        rows = self.call.do("count points", "query", self.name, **options)
        return int(rows[0]["count(*)"])

    def flush(self) -> None:
        """Have everything written to the server's disk."""
        self.call("write points to disk", lambda client: client.flush(self.name))

    def drop(self) -> None:
        """Delete it."""
        self.call.prepare = None
        self.call.do("drop the collection", "drop_collection", self.name)
