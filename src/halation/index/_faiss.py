"""Backend `faiss`: few points are all compared, many are divided into lists (IVF)."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from halation._errors import InputError
from halation._files import read_json
from halation.index._backend import Keys, Points
from halation.index._exact import by_distance, nearest
from halation.index._tuning import RECALL_AT, as_recall, fewest_probes, n_lists

__all__ = ["Faiss"]

_FILE, _STATE = "points.faiss", "faiss.json"
_TRAIN_ON = 64  # points per list


class Faiss:
    """faiss over L2: Flat below `flat_below` points (exact), IVF-Flat from there on, tuned to a stated recall.

    recall       share of the ten nearest that a search must find, measured on held-out queries
    flat_below   with fewer points, all are compared: a few milliseconds per query
    lists        the number of lists; None: about 4 √n

    >>> backend = Faiss()
    >>> backend.add(np.array([3, 5]), np.array([[0.0, 0.0], [1.0, 0.0]], np.float32))
    >>> backend.search(np.array([[0.9, 0.0]], np.float32), k=1)[0]
    array([[5]])
    """

    name = "faiss"

    def __init__(self, *, recall: float = 0.99, flat_below: int = 20_000, lists: int | None = None) -> None:
        self.recall, self.flat_below, self.lists = as_recall(recall), flat_below, lists
        self._index: Any = None
        self._file: Any = None  # open while the index is mapped from it
        self._state = {"last_key": -1, "trained_on": 0, "tuned_on": 0, "probes": 0}

    def add(self, keys: Keys, points: Points) -> None:
        """Store points; see `Backend`."""
        if not len(keys):
            return
        if self._index is None:
            self._index = faiss.IndexIDMap(faiss.IndexFlatL2(points.shape[1]))
        self._read_into_memory()
        if keys.min() <= self._state["last_key"]:
            self._index.remove_ids(np.ascontiguousarray(keys))
        self._index.add_with_ids(np.ascontiguousarray(points, np.float32), np.ascontiguousarray(keys))
        self._state["last_key"] = max(self._state["last_key"], int(keys.max()))

    def remove(self, keys: Keys) -> None:
        """Forget keys."""
        if self._index is not None and len(keys):
            self._read_into_memory()
            self._index.remove_ids(np.ascontiguousarray(keys))

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """The k nearest; always k of them if the index has as many, however few the searched lists hold."""
        if self._index is None or not self._index.ntotal or not len(points):
            return np.full((len(points), k), -1, np.int64), np.full((len(points), k), np.inf, np.float32)
        points = np.ascontiguousarray(points, np.float32)
        keys, squared = self._probe(points, k, self._state["probes"])
        last = keys[:, min(k, self._index.ntotal) - 1]
        if last.min() < 0:
            short = np.flatnonzero(last < 0)
            keys[short], squared[short] = self._probe(points[short], k, self._index.nlist)
        np.maximum(squared, 0, out=squared)
        if k > self._index.ntotal:
            squared[keys < 0] = np.inf
        equals = k > 1 and bool((squared[:, 1:] == squared[:, :-1]).any())  # faiss orders those in its own way
        return by_distance(keys, squared) if equals else (keys, squared)

    def _probe(self, points: Points, k: int, probes: int) -> tuple[Keys, Points]:
        squared, keys = self._index.search(points, k, params=_with_probes(probes) if self._is_ivf else None)
        return keys, squared

    @property
    def needs_tuning(self) -> bool:
        """Whether it grew past what its structure was chosen and tuned for."""
        n = 0 if self._index is None else self._index.ntotal
        if not self._is_ivf:
            return n >= self.flat_below or bool(self.lists and n >= self.lists)
        return bool(n > 2 * self._state["tuned_on"])

    @property
    def _is_ivf(self) -> bool:
        return hasattr(self._index, "nlist")

    def tune(self, queries: Points) -> dict[str, Any]:
        """Divide the points into lists, and find how many of them to search for the recall."""
        n = self._index.ntotal
        if not self._is_ivf or n > 4 * self._state["trained_on"]:
            self._divide(self.lists or n_lists(n))
        queries = np.ascontiguousarray(queries, np.float32)

        def search(points: Points, probes: int) -> Keys:
            return self._probe(points, RECALL_AT, probes)[0]

        tuned = fewest_probes(
            search,
            lambda points: nearest(self._blocks(), points, RECALL_AT)[0],
            queries,
            self._index.nlist,
            self.recall,
        )
        self._state |= {"tuned_on": n, "probes": tuned["probes"]}
        return {"structure": "ivf-flat", "points": n, "lists": self._index.nlist, "target": self.recall, **tuned}

    def _divide(self, lists: int) -> None:
        self._read_into_memory()
        n, width = self._index.ntotal, self._index.d
        wanted = np.sort(np.random.default_rng(0).choice(n, min(n, _TRAIN_ON * lists), replace=False))
        sample, seen = [], 0
        for keys, points in self._blocks():
            sample.append(
                points[wanted[np.searchsorted(wanted, seen) : np.searchsorted(wanted, seen + len(keys))] - seen]
            )
            seen += len(keys)
        divided = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, lists)
        divided.cp.min_points_per_centroid, divided.cp.max_points_per_centroid, divided.cp.niter = 1, _TRAIN_ON, 10
        divided.train(np.concatenate(sample))
        for keys, points in self._blocks():
            divided.add_with_ids(np.ascontiguousarray(points), np.ascontiguousarray(keys))
        self._index = divided
        self._state["trained_on"] = n

    def _blocks(self) -> Iterator[tuple[Keys, Points]]:
        """All keys and points, without a copy."""
        index = self._index
        if not self._is_ivf:
            keys = faiss.vector_to_array(index.id_map)
            flat = faiss.downcast_index(index.index)
            points = faiss.rev_swig_ptr(flat.get_xb(), index.ntotal * index.d).reshape(-1, index.d)
            for start in range(0, len(keys), 65_536):
                yield keys[start : start + 65_536], points[start : start + 65_536]
            return
        for number in range(index.nlist):
            size = index.invlists.list_size(number)
            if size:
                keys = faiss.rev_swig_ptr(index.invlists.get_ids(number), size)
                codes = faiss.rev_swig_ptr(index.invlists.get_codes(number), size * index.code_size)
                yield keys, codes.view(np.float32).reshape(size, index.d)

    def save(self, folder: Path) -> None:
        """Write the faiss file, and the state of its tuning."""
        (folder / _STATE).write_text(json.dumps(self._state | self._options()), encoding="utf-8")
        if self._index is None:
            return
        try:
            faiss.write_index(self._index, str(folder / _FILE))
        except RuntimeError as error:
            raise InputError(
                f"could not be written ({error})", path=folder / _FILE, remedy="make room if the disk is full"
            ) from None

    def _options(self) -> dict[str, Any]:
        return {"recall": self.recall, "flat_below": self.flat_below, "lists": self.lists}

    def load(self, folder: Path) -> None:
        """Map the file: pages are read when a search touches them."""
        state = read_json(folder / _STATE)
        self.recall, self.flat_below, self.lists = (state.pop(name) for name in self._options())
        self._state, self._index = state, None
        self._close_file()
        path = folder / _FILE
        if not path.is_file():
            return
        try:
            self._index = faiss.read_index(str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", 0))
        except RuntimeError as error:
            raise InputError(
                f"is not an index faiss can read ({error})", path=path, remedy="make the index again"
            ) from None
        self._file = path.open("rb")

    def _read_into_memory(self) -> None:
        """Read a mapped index into memory, before it is changed: a mapped file must not be written to."""
        if self._file is not None:
            os.lseek(self._file.fileno(), 0, os.SEEK_SET)
            self._index = faiss.read_index(faiss.PyCallbackIOReader(self._file.read))
            self._close_file()

    def close(self) -> None:
        """Close the file that was loaded, and forget the points mapped from it."""
        if self._file is not None:
            self._index = None
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@functools.lru_cache(maxsize=64)
def _with_probes(probes: int) -> Any:
    return faiss.SearchParametersIVF(nprobe=probes)
