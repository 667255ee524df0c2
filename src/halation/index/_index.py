"""`Index`: items as Gaussians, and which of them are closest to a query."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from halation._arrays import Array, FloatArray, as_indices
from halation._errors import InputError
from halation.index._backend import Backend, Keys
from halation.index._choose import choose
from halation.index._disk import Saved, read_index, write_index
from halation.index._gallery import Gallery
from halation.index._hubness import Hubness, HubnessKind
from halation.index._items import as_names
from halation.index._named import name_of
from halation.index._ranking import Ranking
from halation.index._store import Store, checked
from halation.similarity import Gaussian, Similarity, csd

__all__ = ["Index", "Probability"]

Probability = Callable[..., FloatArray]
"""Scores (q, k) → probabilities that the two match, (q, k); a row holds one query's best, −inf where there is no item.

One that takes `gallery` (`Calibrator.probability`, a `Calibration`) is told how many items were searched.
"""

_QUERIES, _BANK = 1024, 10_000  # queries searched at a time; queries kept


class Index:
    """Named Gaussians that can be searched, changed, saved and loaded.

    items, gaussians   names, each once, and a Gaussian for each (an array: points), (n, d)
    similarity         any of `halation.similarity` (with parameters: `functools.partial`). One that has points
                       (cosine, l2, csd, wasserstein2) is searched directly; others fetch `rerank` times as many items
                       as are asked for by their means and score those
    backend            "exact", "faiss", "milvus", an object with the five methods of `Backend`, or "auto": faiss
    probability        scores → probabilities, for `Ranking.probabilities`
    hubness            "csls" or "dual_softmax": take off each item's scores what it gains by being near to everything
                       (see `Hubness`), measured on `queries`, or without them on the items themselves
    queries            queries like those to come: recall is tuned on them
    recall             share of the ten best that an approximate backend must find
    meta               anything JSON can hold, saved with the index; `meta["tuning"]` says what was chosen and measured

    Scores are the similarity's own, to rounding. One thread may change an index while nobody searches it; any number
    may search.

    >>> index = Index(["a", "b"], [[0.0, 0.0], [3.0, 4.0]])
    >>> index.search([[3.0, 3.0]], k=1)
    Ranking(1 query, 1 item each; first: b −1)
    """

    def __init__(
        self,
        items: Sequence[str],
        gaussians: Gaussian | Array,
        similarity: Similarity = csd,
        backend: str | Backend = "auto",
        *,
        rerank: int = 4,
        probability: Probability | None = None,
        hubness: HubnessKind | Hubness | None = None,
        queries: Gaussian | Array | None = None,
        recall: float = 0.99,
        meta: dict[str, Any] | None = None,
    ) -> None:
        first = Gaussian.of(gaussians)
        kept = None if queries is None else _bank(Gaussian.of(queries), first.dim)
        if isinstance(hubness, str):
            hubness = Hubness(hubness, _bank(first, first.dim) if kept is None else kept)
        store = Store(first.dim, points=first.is_point, penalty=hubness is not None)
        self.similarity, self.probability, self.rerank = similarity, probability, _at_least_one(rerank, "rerank")
        self.meta: dict[str, Any] = dict(meta or {})
        self._gallery = Gallery(similarity, store, choose(backend, recall), hubness, kept)
        self.add(items, first)

    def __len__(self) -> int:
        return len(self._gallery)

    def __contains__(self, item: object) -> bool:
        return isinstance(item, str) and self._gallery.store.keys_of([item]) != [None]

    def __repr__(self) -> str:
        return f"Index({len(self):,} items of {self.dim} dimensions, {self.similarity_name}, {self.backend.name})"

    @property
    def backend(self) -> Backend:
        """What finds the nearest points."""
        return self._gallery.backend

    @property
    def dim(self) -> int:
        """Dimensions of the Gaussians."""
        return self._gallery.store.dim

    @property
    def similarity_name(self) -> str:
        """What the similarity is called in `halation.similarity`."""
        return name_of(self.similarity)

    @property
    def hubness(self) -> HubnessKind | None:
        """What takes off the scores of hubs what they gain by being near to everything."""
        return None if self._gallery.hubness is None else self._gallery.hubness.kind

    @property
    def items(self) -> list[str]:
        """All names, in the order of their rows."""
        return self._gallery.store.names_at(np.arange(len(self)))

    def names(self, rows: Array) -> list[str]:
        """The names of some rows; `items` makes those of all."""
        return self._gallery.store.names_at(as_indices(rows, len(self), "rows"))

    def rows(self, items: Sequence[str]) -> Keys:
        """The places of some items in `items`."""
        return self._gallery.store.table.positions(self._gallery.keys(as_names(items)))

    def gaussians(self, rows: Array | None = None) -> Gaussian:
        """The Gaussians of some rows, or of all."""
        wanted = np.arange(len(self)) if rows is None else as_indices(rows, len(self), "rows")
        return self._gallery.store.gaussians(wanted)

    def add(self, items: Sequence[str], gaussians: Gaussian | Array) -> None:
        """Add items; one whose name is there already takes the new Gaussian."""
        self._gallery.add(as_names(items), Gaussian.of(gaussians))
        self._settle()

    def remove(self, items: Sequence[str]) -> None:
        """Forget items; a name that is not there is an error, and nothing is forgotten."""
        self._gallery.remove(as_names(items))

    def rebuild(self) -> None:
        """Put every item into the backend again."""
        self._gallery.rebuild()
        self._settle()

    def _settle(self) -> None:
        chosen = self._gallery.settle()
        if chosen is not None or "tuning" not in self.meta:
            self.meta["tuning"] = chosen or {"structure": "flat", "recall": 1.0}

    def search(self, queries: Gaussian | Array, k: int = 10, *, rerank: int | None = None) -> Ranking:
        """The k items closest to each query (all of them, if there are fewer), best first.

        rerank   for a similarity without points: how many times k items are fetched and scored
        """
        asked = Gaussian.of(queries)
        if asked.dim != self.dim:
            raise InputError(f"the queries have {asked.dim} dimensions, the index {self.dim}; are they of one model?")
        asked = checked(asked, "query")
        k = min(_at_least_one(k, "k"), len(self))
        factor = self.rerank if rerank is None else _at_least_one(rerank, "rerank")
        if k and len(asked) <= _QUERIES:
            rows, scores = self._search(asked, k, factor)
        else:
            rows, scores = np.full((len(asked), k), -1, np.int64), np.full((len(asked), k), -np.inf, np.float32)
            for start in range(0, len(asked) if k else 0, _QUERIES):
                part = slice(start, start + _QUERIES)
                rows[part], scores[part] = self._search(asked[part], k, factor)
        ids = [self._gallery.store.names_at(row[row >= 0]) for row in rows]
        found = Ranking(ids, scores, rows, taken_off=self._taken_off(rows))
        return found if self.probability is None else replace(found, probabilities=self._probabilities(found))

    def _search(self, queries: Gaussian, k: int, factor: int) -> tuple[Keys, FloatArray]:
        gallery = self._gallery
        fetch = (k if gallery.form.direct else min(len(self), k * factor)) + len(gallery.strays)
        asked, own = gallery.form.ask(queries)
        keys, squared = gallery.backend.search(asked, fetch)
        rows = gallery.store.table.positions(keys)
        if gallery.form.direct:
            scores = gallery.form.scores(own, squared)
            if not gallery.strays:
                return rows, scores
        else:
            scores = np.stack([self._scored(queries[i : i + 1], rows[i]) for i in range(len(queries))])
        scores = np.where(rows < 0, -np.inf, scores)
        order = np.lexsort((rows, -scores), axis=1)[:, :k]
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def _scored(self, query: Gaussian, rows: Keys) -> FloatArray:
        """The similarity's own scores of one query (a call of its own: what is drawn depends on no other query)."""
        there, gallery = np.sort(rows[rows >= 0]), self._gallery
        scores = np.full(len(rows), -np.inf, np.float32)
        if len(there):
            own = gallery.score(query, gallery.store.gaussians(there)).numpy()[0] - gallery.store.penalties(there)
            scores[rows >= 0] = own[np.searchsorted(there, rows[rows >= 0])]
        return scores

    def _taken_off(self, rows: Keys) -> FloatArray | None:
        if self.hubness is None:
            return None
        return np.where(rows < 0, 0, self._gallery.store.penalties(rows.ravel()).reshape(rows.shape))

    def _probabilities(self, found: Ranking) -> FloatArray:
        """Of the similarity's own scores, which is what a calibration is fitted on."""
        there = found.rows >= 0
        if not there.any():
            return np.zeros(there.shape, np.float32)
        assert self.probability is not None
        size = {"gallery": len(self)} if _takes_gallery(self.probability) else {}
        # −inf where there is no item; all of a query at once: what a score is worth can depend on its best
        return np.where(there, self.probability(found.own.astype(np.float64), **size), 0.0).astype(np.float32)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index to a folder, in place of one that is there: whole or not at all.

        Who has the old one open keeps it. Stopped at any moment, the folder holds the old index or the new one.
        """
        self._gallery.tidy()
        write_index(Saved(self.similarity, self._gallery, self.rerank, self.meta), folder)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        backend: str | Backend | None = None,
        probability: Probability | None = None,
        recall: float = 0.99,
        verify: bool = True,
    ) -> Index:
        """A saved index, mapped into memory.

        backend   None: what it was saved with. Otherwise the items are put into this one: from faiss to Milvus and back
        recall    of such a new backend
        verify    compare every file with its checksum, which reads all of them; False: only their sizes
        """
        other = None if backend is None else choose(backend, recall)
        saved = read_index(folder, other, verify=verify)
        index = cls.__new__(cls)
        index.similarity, index.rerank, index.meta = saved.similarity, saved.rerank, saved.meta
        index._gallery, index.probability = saved.gallery, probability
        if other is not None:
            index.meta.pop("tuning", None)
            index.rebuild()
        return index

    def close(self) -> None:
        """Let go of connections and files."""
        if hasattr(self.backend, "close"):
            self.backend.close()


def _takes_gallery(probability: Probability) -> bool:
    try:
        return "gallery" in signature(probability).parameters
    except ValueError:  # functions written in C may have none to show
        return False


def _bank(queries: Gaussian, dim: int) -> Gaussian:
    if queries.dim != dim:
        raise InputError(f"the queries have {queries.dim} dimensions, the items {dim}; are they of one model?")
    return checked(queries[:: max(1, -(-len(queries) // _BANK))], "query")


def _at_least_one(value: int, what: str) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise InputError(f"{what} is {value}; it must be a whole number, 1 or more")
    return int(value)
