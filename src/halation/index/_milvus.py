"""Backend `milvus`: the points in a Milvus collection, in a local file or on a server."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from halation._errors import InputError
from halation._files import read_json
from halation.index._backend import Keys, Points
from halation.index._milvus_client import SCHEMA, Collection, Connection, without_password
from halation.index._tuning import RECALL_AT, as_recall, fewest_probes, n_lists

__all__ = ["Milvus"]

_STATE, _FILE = "milvus.json", "points.db"
_TOKEN = "HALATION_MILVUS_TOKEN"  # noqa: S105  # the name of a variable


class Milvus:
    """A Milvus collection (extra `milvus`).

    uri          "http://host:19530" of a server; a path that ends in .db: a local file (milvus-lite), one process at a
                 time; None: a private file, which is copied into the index's folder when you save it
    collection   its name; None: a new one
    token        for a server that asks for one; by default the variable HALATION_MILVUS_TOKEN. It is never saved
    recall, flat_below   as for `Faiss`
    patience     seconds to wait for a server that does not answer, before giving up
    replace      empty the collection if it exists already

    Saving an index does not copy a server's collection: the folder keeps its address. Points are upserted in batches
    under their keys, so a batch whose answer was lost can be sent again without harm.
    """

    name = "milvus"

    def __init__(
        self,
        uri: str | None = None,
        collection: str | None = None,
        *,
        token: str | None = None,
        recall: float = 0.99,
        flat_below: int = 20_000,
        patience: float = 60.0,
        replace: bool = False,
    ) -> None:
        self.recall, self.flat_below, self._replace = as_recall(recall), flat_below, replace
        self._token, self._patience = os.environ.get(_TOKEN, "") if token is None else token, patience
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.uri = ""
        self._open(uri, collection or f"halation_{uuid.uuid4().hex[:12]}")
        self._width = 0  # of a point; 0: there is no collection yet
        self._n = self._tuned_on = self._lists = self._probes = 0

    def _open(self, uri: str | None, collection: str) -> None:
        if uri is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="halation-milvus-", ignore_cleanup_errors=True)
            uri = str(Path(self._temporary.name) / _FILE)
        self.uri = uri if "://" in uri else str(Path(uri).absolute())
        self._collection = Collection(Connection(self.uri, self._token, self._patience), collection)

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self._collection.name

    def add(self, keys: Keys, points: Points) -> None:
        """Upsert points in batches; see `Backend`."""
        if not self._width:
            self._collection.create(points.shape[1], replace=self._replace)
            self._width = points.shape[1]
        self._collection.upsert(keys, points)
        self._n += len(keys)  # an upper bound: a replaced point counts twice, until `needs_tuning` counts them

    def remove(self, keys: Keys) -> None:
        """Delete keys."""
        if self._width:
            self._collection.delete(keys)

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """The k nearest, among them everything this process wrote."""
        if not self._width:
            return np.full((len(points), k), -1, np.int64), np.full((len(points), k), np.inf, np.float32)
        return self._collection.search(points, k, self._probes)

    @property
    def needs_tuning(self) -> bool:
        """Whether it grew past what its index was chosen and tuned for."""
        enough = max(self.flat_below, 2 * self._tuned_on)
        if self._width and self._n >= enough:
            self._n = self._collection.count()
        return bool(self._width) and self._n >= enough

    def tune(self, queries: Points) -> dict[str, Any]:
        """Index the points by lists, and find how many to search for the recall."""
        self._lists = n_lists(self._n)
        self._collection.flush()
        self._collection.index("IVF_FLAT", {"nlist": self._lists})

        def search(points: Points, probes: int) -> Keys:
            return self._collection.search(points, RECALL_AT, probes)[0]

        tuned = fewest_probes(search, lambda points: search(points, self._lists), queries, self._lists, self.recall)
        self._tuned_on, self._probes = self._n, tuned["probes"]
        return {"structure": "ivf-flat", "points": self._n, "lists": self._lists, "target": self.recall, **tuned}

    def save(self, folder: Path) -> None:
        """Write the address of the points; copy a private file."""
        state = {
            "schema": SCHEMA, "collection": self.collection,
            "uri": None if self._temporary else without_password(self.uri),
            "width": self._width, "points": self._collection.count() if self._width else 0, "lists": self._lists,
            "probes": self._probes, "tuned_on": self._tuned_on, "recall": self.recall, "flat_below": self.flat_below,
        }  # fmt: skip
        (folder / _STATE).write_text(json.dumps(state), encoding="utf-8")
        if not self._width:
            return
        self._collection.flush()
        if self._temporary:
            self._stop()
            _copy(Path(self.uri), folder / _FILE)

    def load(self, folder: Path) -> None:
        """Connect to the points that were saved; an InputError if their number has changed."""
        state = read_json(folder / _STATE)
        if state["schema"] != SCHEMA:
            raise InputError(
                f"has the schema {state['schema']}, and this halation reads schema {SCHEMA}",
                path=folder / _STATE,
                remedy="put the items in again: Index.load(folder, backend=Milvus(uri))",
            )
        self.close()
        self._open(state["uri"], state["collection"])
        self._width, self._n = state["width"], state["points"]
        self._lists, self._probes, self._tuned_on = state["lists"], state["probes"], state["tuned_on"]
        self.recall, self.flat_below = state["recall"], state["flat_below"]
        if self._width:
            if self._temporary:
                _copy(folder / _FILE, Path(self.uri))
            self._collection.check(self._width, self._n)

    def drop(self) -> None:
        """Delete the collection and all points in it."""
        if self._width:
            self._collection.drop()
            self._width = self._n = self._tuned_on = self._lists = self._probes = 0

    @classmethod
    def drop_saved(cls, folder: Path) -> None:
        """Delete the collections of all saved indexes below a folder, except private files: these are in the folder."""
        for path in folder.rglob(_STATE):
            state = read_json(path)
            if state["uri"] is not None and state["width"]:
                backend = cls(state["uri"], state["collection"], patience=5.0)
                try:
                    backend._width = state["width"]
                    backend.drop()
                finally:
                    backend.close()

    def close(self) -> None:
        """Close the connection, and remove a private file."""
        self._collection.call.close()
        if self._temporary is not None:
            self._stop()
            self._temporary.cleanup()
            self._temporary = None

    def _stop(self) -> None:
        """Stop serving the local file, so that it can be copied; the next call serves it again."""
        from milvus_lite.server_manager import server_manager_instance

        self._collection.call.close()
        server_manager_instance.release_server(self.uri)


def _copy(source: Path, target: Path) -> None:
    """Copy a milvus-lite database: a file in older versions, a folder in newer ones."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("LOCK"))
    else:
        shutil.copyfile(source, target)
