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
from halation.index._milvus_collection import SCHEMA, Collection
from halation.index._milvus_connection import Connection, shown
from halation.index._tuning import AT, as_recall, n_lists, tune

__all__ = ["Milvus", "drop_saved"]

_ABOUT, _FILE = "milvus.json", "points.db"
_TOKEN = "HALATION_MILVUS_TOKEN"  # noqa: S105  # the name of a variable


class Milvus:
    """A Milvus collection (extra `milvus`).

    uri          "http://host:19530" of a server; a path that ends in .db: a local file (milvus-lite), one process at a
                 time; None: a file of the index's own, kept in its folder when it is saved
    collection   its name; None: a new one
    token        for a server that asks for one; by default the variable HALATION_MILVUS_TOKEN. It is never saved
    recall, flat_below   as `Faiss` has them
    patience     seconds to wait for a server that does not answer, before giving up
    replace      begin anew if the collection is there already

    A server's collection is not copied when an index is saved: the folder keeps its address. Points are upserted in
    batches under their keys, so a batch whose answer was lost is sent again without harm.
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
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self.uri = ""
        self._open(uri, collection or f"halation_{uuid.uuid4().hex[:12]}")
        self._width = 0  # of a point; 0: there is no collection yet
        self._n = self._tuned_on = self._lists = self._probes = 0

    def _open(self, uri: str | None, collection: str) -> None:
        if uri is None:
            self._own = tempfile.TemporaryDirectory(prefix="halation-milvus-", ignore_cleanup_errors=True)
            uri = str(Path(self._own.name) / _FILE)
        self.uri = uri if "://" in uri else str(Path(uri).absolute())
        self._points = Collection(Connection(self.uri, self._token, self._patience), collection)

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self._points.name

    def add(self, keys: Keys, points: Points) -> None:
        """Upsert points in batches; see `Backend`."""
        if not self._width:
            self._points.create(points.shape[1], replace=self._replace)
            self._width = points.shape[1]
        self._points.upsert(keys, points)
        self._n += len(keys)  # at most: a replaced point counts twice, until `unsettled` asks how many there are

    def remove(self, keys: Keys) -> None:
        """Delete keys."""
        if self._width:
            self._points.delete(keys)

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """The k nearest, everything this process wrote seen."""
        if not self._width:
            return np.full((len(points), k), -1, np.int64), np.full((len(points), k), np.inf, np.float32)
        return self._points.search(points, k, self._probes)

    @property
    def unsettled(self) -> bool:
        """Whether it grew past what its index was chosen and tuned for."""
        enough = max(self.flat_below, 2 * self._tuned_on)
        if self._width and self._n >= enough:
            self._n = self._points.count()
        return bool(self._width) and self._n >= enough

    def settle(self, queries: Points) -> dict[str, Any]:
        """Index the points by lists, and find how many to look into for the recall."""
        self._lists = n_lists(self._n)
        self._points.flush()
        self._points.index("IVF_FLAT", {"nlist": self._lists})

        def search(points: Points, probes: int) -> Keys:
            return self._points.search(points, AT, probes)[0]

        found = tune(search, lambda points: search(points, self._lists), queries, self._lists, self.recall)
        self._tuned_on, self._probes = self._n, found["probes"]
        return {"structure": "ivf-flat", "points": self._n, "lists": self._lists, "target": self.recall, **found}

    def save(self, folder: Path) -> None:
        """Where the points are; a file of the index's own is copied."""
        about = {
            "schema": SCHEMA, "uri": None if self._own else shown(self.uri), "collection": self.collection,
            "width": self._width, "points": self._points.count() if self._width else 0, "lists": self._lists,
            "probes": self._probes, "tuned_on": self._tuned_on, "recall": self.recall, "flat_below": self.flat_below,
        }  # fmt: skip
        (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
        if not self._width:
            return
        self._points.flush()
        if self._own:
            self._stop()
            _copy(Path(self.uri), folder / _FILE)

    def load(self, folder: Path) -> None:
        """Find the points where they were left; fewer or more than were saved is an error."""
        about = read_json(folder / _ABOUT)
        if about["schema"] != SCHEMA:
            raise InputError(
                f"speaks of schema {about['schema']}, and this halation reads schema {SCHEMA}; put "
                "the items in again: Index.load(folder, backend=Milvus(uri))",
                path=folder / _ABOUT,
            )
        self.close()
        self._open(about["uri"], about["collection"])
        self._width, self._n = about["width"], about["points"]
        self._lists, self._probes, self._tuned_on = about["lists"], about["probes"], about["tuned_on"]
        self.recall, self.flat_below = about["recall"], about["flat_below"]
        if self._width:
            if self._own:
                _copy(folder / _FILE, Path(self.uri))
            self._points.check(self._width, self._n)

    def drop(self) -> None:
        """Delete the collection and all points in it."""
        if self._width:
            self._points.drop()
            self._width = self._n = self._tuned_on = self._lists = self._probes = 0

    def close(self) -> None:
        """Let go of the connection, and of a file of the index's own."""
        self._points.call.close()
        if self._own is not None:
            self._stop()
            self._own.cleanup()
            self._own = None

    def _stop(self) -> None:
        """Stop serving the local file, so that it can be copied; the next call serves it again."""
        from milvus_lite.server_manager import server_manager_instance

        self._points.call.close()
        server_manager_instance.release_server(self.uri)


def drop_saved(folder: Path) -> None:
    """Delete the collections that saved indexes below a folder speak of; files of their own go with the folder."""
    for path in folder.rglob(_ABOUT):
        about = read_json(path)
        if about["uri"] is not None and about["width"]:
            backend = Milvus(about["uri"], about["collection"], patience=5.0)
            try:
                backend._width = about["width"]
                backend.drop()
            finally:
                backend.close()


def _copy(source: Path, target: Path) -> None:
    """A milvus-lite database: a file in its older versions, a folder in newer ones."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("LOCK"))
    else:
        shutil.copyfile(source, target)
