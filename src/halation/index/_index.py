"""`Index`: items as Gaussians, searched for those closest to a query."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from halation._arrays import Array, FloatArray, as_indices
from halation._errors import InputError
from halation.index._backend import Backend, Keys, Tunable, choose_backend
from halation.index._hubness import Hubness, HubnessKind
from halation.index._items import Ids, Items, as_ids
from halation.index._ranking import Ranking
from halation.index._save import Contents, read_index, write_index
from halation.index._similarity import PointEncoder, checked, name_of, repeatable
from halation.similarity import Gaussian, Similarity, csd

__all__ = ["Index", "Probability"]

Probability = Callable[..., FloatArray]
"""A function from scores (q, k) to match probabilities (q, k). A row holds one query's best; −inf: there is no item.

If it has a parameter `gallery`, as `Calibrator.probability` has, it gets the number of items in the index.
"""

_QUERIES, _KEPT = 1024, 10_000  # queries searched at a time; queries kept to tune on
_BLOCK, _SAMPLE = 65_536, 600  # items put into the backend at a time; queries of one tuning


class Index:
    """Gaussians under ids that can be searched, changed, saved and loaded.

    ids, gaussians     different strings or integers, and a Gaussian for each (an array: points), (n, d)
    similarity         any of `halation.similarity` (with parameters: `functools.partial`). One that has points
                       (cosine, l2, csd, wasserstein2) is searched directly. For others, `rerank` times k items are
                       fetched by their means and then scored
    backend            "exact", "faiss", "milvus", an object with the five methods of `Backend`, or "auto": faiss
    probability        from scores to match probabilities, for `Ranking.probabilities`
    hubness            "csls" or "dual_softmax": lower the scores of items that are near to every query (see `Hubness`),
                       measured on `queries`, or on the items themselves if there are none
    queries            queries such as people will ask; recall is tuned on them
    recall             share of the ten best that an approximate backend must find
    meta               anything JSON can hold, saved with the index; `meta["tuning"]` is the structure and its recall

    Scores are those of the similarity, up to rounding. Any number of threads may search at once; while one changes the
    index, no other may use it.

    >>> index = Index(["a", "b"], [[0.0, 0.0], [3.0, 4.0]])
    >>> index.search([[3.0, 3.0]], k=1)
    Ranking(1 query, 1 item each; first: b −1)
    """

    def __init__(
        self,
        ids: Ids,
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
        sample = None if queries is None else _sampled(Gaussian.of(queries), first.dim)
        if isinstance(hubness, str):
            hubness = Hubness(hubness, _sampled(first, first.dim) if sample is None else sample)
        items = Items(first.dim, points=first.is_point, penalty=hubness is not None)
        encoder = PointEncoder(similarity, penalty=hubness is not None)
        chosen, rerank = choose_backend(backend, recall), _at_least_one(rerank, "rerank")
        contents = Contents(similarity, items, encoder, chosen, hubness, sample, rerank, dict(meta or {}))
        self._set_contents(contents, probability)
        self.add(ids, first)

    def _set_contents(self, contents: Contents, probability: Probability | None) -> None:
        self.similarity, self._score = contents.similarity, repeatable(contents.similarity)
        self._items, self._encoder, self.backend = contents.items, contents.encoder, contents.backend
        self._hubness, self._queries = contents.hubness, contents.queries
        self.rerank, self.meta, self.probability = contents.rerank, contents.meta, probability
        # A change goes to the backend first. Until it is done, its keys are unsure. If it fails (a server went away),
        # the items are as before, and the next change first brings the backend in line with them.
        self._unsure: set[int] = set()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        try:
            return self._items.find(as_ids([id], self._items.id_type)) != [None]  # type: ignore[arg-type]
        except InputError:
            return False

    def __repr__(self) -> str:
        return f"Index({len(self):,} items of {self.dim} dimensions, {self.similarity_name}, {self.backend.name})"

    @property
    def dim(self) -> int:
        """Dimensions of the Gaussians."""
        return self._items.dim

    @property
    def similarity_name(self) -> str:
        """The similarity's name in `halation.similarity`."""
        return name_of(self.similarity)

    @property
    def hubness(self) -> HubnessKind | None:
        """The kind of correction for hubs, if there is one."""
        return None if self._hubness is None else self._hubness.kind

    @property
    def ids(self) -> list[Any]:
        """All ids in the order of their rows, strings or integers as you gave them."""
        return self._items.ids(np.arange(len(self)))

    def ids_of(self, rows: Array) -> list[Any]:
        """The ids of some rows."""
        return self._items.ids(as_indices(rows, len(self), "rows"))

    def rows(self, ids: Ids) -> Keys:
        """The rows of some ids: their positions in `ids`."""
        return self._items.positions(self._keys(as_ids(ids, self._items.id_type)))

    def gaussians(self, rows: Array | None = None) -> Gaussian:
        """The Gaussians of some rows, or of all."""
        return self._items.gaussians(np.arange(len(self)) if rows is None else as_indices(rows, len(self), "rows"))

    def _keys(self, ids: list[Any]) -> Keys:
        keys = self._items.find(ids)
        if None in keys:
            raise InputError(f"there is no item {ids[keys.index(None)]!r} among the {len(self):,} of this index")
        return np.array(keys, np.int64)

    def add(self, ids: Ids, gaussians: Gaussian | Array) -> None:
        """Add items; an item whose id exists already gets the new Gaussian."""
        names, items = as_ids(ids, self._items.id_type), Gaussian.of(gaussians)
        self._check(names, items)
        if names:
            items = checked(items, "item", names)
            self._synchronise()
            if not len(self):  # the first items decide: points or Gaussians, strings or integers
                key, penalty = self._items.next_key, self._hubness is not None
                self._items = Items(items.dim, points=items.is_point, penalty=penalty, next_key=key)
            penalties, keys = self._penalties(items), self._items.keys_for(names)
            if self._encoder.origin is None or not (len(self) or self._encoder.fits(penalties)):
                self._encoder.fit(items, penalties)
            fits = self._encoder.fits(penalties)
            if fits:
                self._put(keys, names, items, penalties)
            self._items.set(keys, names, items, penalties)
            if not fits:
                self._put_all()
        self._tune()

    def _check(self, ids: list[Any], items: Gaussian) -> None:
        if len(ids) != len(items):
            raise InputError(f"there are {len(ids)} ids but {len(items)} Gaussians; give one for each, in order")
        if items.dim != self.dim:
            raise InputError(f"the items have {items.dim} dimensions, the index {self.dim}; are they of one model?")
        if len(self) and ids and items.is_point != self._items.points:
            old, new = ("points", "Gaussians with variances") if self._items.points else ("Gaussians", "points")
            raise InputError(f"the index holds {old}, and these are {new}; an index holds one kind")

    def _penalties(self, items: Gaussian) -> FloatArray:
        if self._hubness is None:
            return np.zeros(len(items), np.float32)
        if not len(self):
            self._hubness = self._hubness.fitted(self._score, items)
        return self._hubness.penalties(self._score, items)

    def _put(self, keys: Keys, ids: list[Any], items: Gaussian, penalties: FloatArray) -> None:
        for start in range(0, len(keys), _BLOCK):
            part = slice(start, start + _BLOCK)
            points = self._encoder.items(items[part], penalties[part], ids[part])
            self._unsure.update(keys[part].tolist())
            self.backend.add(keys[part], points)
        self._unsure.difference_update(keys.tolist())

    def _put_again(self, positions: Keys) -> None:
        for start in range(0, len(positions), _BLOCK):
            part = positions[start : start + _BLOCK]
            ids, items = self._items.ids(part), self._items.gaussians(part)
            self._put(self._items.keys[part], ids, items, self._items.penalties(part))

    def _put_all(self) -> None:
        keys, positions = self._items.keys, np.arange(len(self))
        if len(keys):
            self._unsure.update(keys.tolist())
            self.backend.remove(keys)
            self._encoder.fit(self._items.gaussians(positions[:_BLOCK]), self._items.penalties(positions))
            self._put_again(positions)

    def _synchronise(self) -> None:
        """After a change that failed, bring the backend in line with the items."""
        if self._unsure:
            keys = np.array(sorted(self._unsure), np.int64)
            positions = self._items.positions(keys)
            self.backend.remove(keys[positions < 0])
            self._put_again(positions[positions >= 0])
            self._unsure.clear()

    def remove(self, ids: Ids) -> None:
        """Remove items; an id that does not exist is an error, and then nothing is removed."""
        names = as_ids(ids, self._items.id_type)
        keys = self._keys(names)
        self._synchronise()
        self._unsure.update(keys.tolist())
        self.backend.remove(keys)
        self._items.forget(keys, names)
        self._unsure.difference_update(keys.tolist())

    def rebuild(self) -> None:
        """Put every item into the backend again, and tune it."""
        self._put_all()
        self._tune()

    def _tune(self) -> None:
        """Let the backend choose and tune its structure, if it grew."""
        if isinstance(self.backend, Tunable) and self.backend.needs_tuning:
            tuned_on = "items, moved at random" if self._queries is None else "queries given"
            chosen = self.backend.tune(self._encoder.queries(self._tuning_queries())[0])
            self.meta["tuning"] = chosen | {"on": tuned_on}
        self.meta.setdefault("tuning", {"structure": "flat", "recall": 1.0})

    def _tuning_queries(self) -> Gaussian:
        """Some of the queries given, or items moved by half the difference of two others.

        Captions are farther from images than images are from each other. Items moved in this way are at least as hard
        to search for as the captions of a trained model.
        """
        draw = np.random.default_rng(0)
        if self._queries is not None:
            return self._queries[np.sort(draw.permutation(len(self._queries))[:_SAMPLE])]
        items, a, b = (self.gaussians(draw.integers(len(self), size=_SAMPLE)) for _ in range(3))
        return Gaussian(items.mean + 0.5 * (a.mean - b.mean), items.log_var)

    def search(self, queries: Gaussian | Array, k: int = 10, *, rerank: int | None = None) -> Ranking:
        """The k items closest to each query (all items if there are fewer), best first.

        rerank   for a similarity without points: fetch this many times k items and score them
        """
        encoded = Gaussian.of(queries)
        if encoded.dim != self.dim:
            raise InputError(f"the queries have {encoded.dim} dimensions, the index {self.dim}; are they of one model?")
        encoded = checked(encoded, "query")
        k = min(_at_least_one(k, "k"), len(self))
        factor = self.rerank if rerank is None else _at_least_one(rerank, "rerank")
        if k and len(encoded) <= _QUERIES:
            rows, scores = self._search(encoded, k, factor)
        else:
            rows, scores = np.full((len(encoded), k), -1, np.int64), np.full((len(encoded), k), -np.inf, np.float32)
            for start in range(0, len(encoded) if k else 0, _QUERIES):
                part = slice(start, start + _QUERIES)
                rows[part], scores[part] = self._search(encoded[part], k, factor)
        ids = [self._items.ids(row[row >= 0]) for row in rows]
        ranking = Ranking(ids, scores, rows, corrections=self._corrections(rows))
        return ranking if self.probability is None else replace(ranking, probabilities=self._probabilities(ranking))

    def _search(self, queries: Gaussian, k: int, factor: int) -> tuple[Keys, FloatArray]:
        direct = self._encoder.direct
        fetch = (k if direct else min(len(self), k * factor)) + len(self._unsure)
        points, constant = self._encoder.queries(queries)
        keys, squared = self.backend.search(points, fetch)
        rows = self._items.positions(keys)
        if direct:
            scores = self._encoder.scores(constant, squared)
            if not self._unsure:
                return rows, scores
        else:
            scores = np.stack([self._scored(queries[i : i + 1], rows[i]) for i in range(len(queries))])
        scores = np.where(rows < 0, -np.inf, scores)
        order = np.lexsort((rows, -scores), axis=1)[:, :k]
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def _scored(self, query: Gaussian, rows: Keys) -> FloatArray:
        """The scores of one query. Each query has its own call, so that no random draw depends on another query."""
        exist = rows >= 0
        ordered = np.sort(rows[exist])
        scores = np.full(len(rows), -np.inf, np.float32)
        if len(ordered):
            values = self._score(query, self._items.gaussians(ordered)).numpy()[0] - self._items.penalties(ordered)
            scores[exist] = values[np.searchsorted(ordered, rows[exist])]
        return scores

    def _corrections(self, rows: Keys) -> FloatArray | None:
        if self._hubness is None:
            return None
        return np.where(rows < 0, 0, self._items.penalties(rows.ravel()).reshape(rows.shape))

    def _probabilities(self, ranking: Ranking) -> FloatArray:
        """The probabilities of the uncorrected scores, on which a calibrator is fitted."""
        exist = ranking.rows >= 0
        if not exist.any():
            return np.zeros(exist.shape, np.float32)
        assert self.probability is not None
        size = {"gallery": len(self)} if _takes_gallery(self.probability) else {}
        # all scores of a query at once: a probability can depend on the query's best score
        probabilities = self.probability(ranking.uncorrected.astype(np.float64), **size)
        return np.where(exist, probabilities, 0.0).astype(np.float32)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index to a folder; an index that is there is replaced.

        A process that has the old index open keeps it. If interrupted, the folder holds the old index or the new.
        """
        self._synchronise()
        write_index(
            Contents(
                self.similarity, self._items, self._encoder, self.backend, self._hubness, self._queries, self.rerank,
                self.meta,
            ),
            folder,
        )  # fmt: skip

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
        """Load a saved index, mapped into memory.

        backend   None: the one it was saved with; otherwise the items are put into this one (from faiss to Milvus)
        recall    of a new backend
        verify    compare every file with its checksum, which reads all of them; False: compare only sizes
        """
        new_backend = None if backend is None else choose_backend(backend, recall)
        index = cls.__new__(cls)
        index._set_contents(read_index(folder, new_backend, verify=verify), probability)
        if new_backend is not None:
            index.meta.pop("tuning", None)
            index.rebuild()
        return index

    def close(self) -> None:
        """Close connections and files."""
        if hasattr(self.backend, "close"):
            self.backend.close()


def _takes_gallery(probability: Probability) -> bool:
    try:
        return "gallery" in signature(probability).parameters
    except ValueError:  # functions written in C may have no signature
        return False


def _sampled(queries: Gaussian, dim: int) -> Gaussian:
    """At most `_KEPT` of the queries, evenly spread."""
    if queries.dim != dim:
        raise InputError(f"the queries have {queries.dim} dimensions, the items {dim}; are they of one model?")
    return checked(queries[:: max(1, -(-len(queries) // _KEPT))], "query")


def _at_least_one(value: int, what: str) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise InputError(f"{what} is {value}; it must be a whole number, 1 or more")
    return int(value)
