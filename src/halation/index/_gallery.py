"""What an index holds: items in a store, their points in a backend, and the two kept alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halation._arrays import FloatArray
from halation._errors import InputError
from halation.index._backend import Backend, Keys, Settling
from halation.index._form import Form
from halation.index._hubness import Hubness
from halation.index._named import repeatable
from halation.index._store import Store, checked
from halation.similarity import Gaussian, Similarity

__all__ = ["Gallery"]

_BLOCK, _SAMPLE = 65_536, 600  # items put at a time; queries to tune on


class Gallery:
    """Items under keys, in the store and in the backend.

    A change goes to the backend first. Until it is through, its keys count as strays; should it fail (a server that
    went away), the store is as before, and the next change begins by bringing the backend back to what the store holds.
    """

    def __init__(
        self, similarity: Similarity, store: Store, backend: Backend, hubness: Hubness | None, queries: Gaussian | None
    ) -> None:
        self.score = repeatable(similarity)
        self.store, self.backend, self.hubness, self.queries = store, backend, hubness, queries
        self.form = Form(similarity, penalty=hubness is not None)
        self.strays: set[int] = set()

    def __len__(self) -> int:
        return len(self.store)

    def add(self, names: list[str], items: Gaussian) -> None:
        """Add items, or replace those that are there."""
        self._check(names, items)
        if not names:
            return
        items = checked(items, "item", names)
        self.tidy()
        if not len(self) and self.store.points != items.is_point:
            kept = self.store.next_key
            self.store = Store(items.dim, points=items.is_point, penalty=self.hubness is not None, next_key=kept)
        penalties = self._penalties(items)
        keys = self.store.keys_for(names)
        if self.form.origin is None or not (len(self) or self.form.fits(penalties)):
            self.form.begin(items, penalties)
        fits = self.form.fits(penalties)
        if fits:
            self._put(keys, names, items, penalties)
        self.store.put(keys, names, items, penalties)
        if not fits:
            self.rebuild()

    def _check(self, names: Sequence[str], items: Gaussian) -> None:
        if len(names) != len(items):
            raise InputError(f"{len(names)} items but {len(items)} Gaussians; one for each, in order")
        if items.dim != self.store.dim:
            raise InputError(
                f"the items have {items.dim} dimensions, the index {self.store.dim}; are they of one model?"
            )
        if len(self) and len(names) and items.is_point != self.store.points:
            have, get = ("points", "Gaussians with variances") if self.store.points else ("Gaussians", "points")
            raise InputError(f"the index holds {have}, and these are {get}; an index holds one kind")

    def _penalties(self, items: Gaussian) -> FloatArray:
        if self.hubness is None:
            return np.zeros(len(items), np.float32)
        if not len(self):
            self.hubness = self.hubness.fitted(self.score, items)
        return self.hubness.penalties(self.score, items)

    def _put(self, keys: Keys, names: list[str], items: Gaussian, penalties: FloatArray) -> None:
        for start in range(0, len(keys), _BLOCK):
            part = slice(start, start + _BLOCK)
            points = self.form.points(items[part], penalties[part], names[part])
            self.strays.update(keys[part].tolist())
            self.backend.add(keys[part], points)
        self.strays.difference_update(keys.tolist())

    def _put_again(self, positions: Keys) -> None:
        for start in range(0, len(positions), _BLOCK):
            part = positions[start : start + _BLOCK]
            names, items = self.store.names_at(part), self.store.gaussians(part)
            self._put(self.store.table.keys[part], names, items, self.store.penalties(part))

    def remove(self, names: Sequence[str]) -> None:
        """Forget items."""
        keys = self.keys(names)
        self.tidy()
        self.strays.update(keys.tolist())
        self.backend.remove(keys)
        self.store.drop(keys, names)
        self.strays.difference_update(keys.tolist())

    def keys(self, names: Sequence[str]) -> Keys:
        """The keys of items; a name that is not there is an error."""
        keys = self.store.keys_of(names)
        if None in keys:
            missing = names[keys.index(None)]
            raise InputError(f"there is no item {missing!r} among the {len(self):,} of this index")
        return np.array(keys, np.int64)

    def tidy(self) -> None:
        """After a change that failed, bring the backend to what the store holds."""
        if not self.strays:
            return
        keys = np.array(sorted(self.strays), np.int64)
        positions = self.store.table.positions(keys)
        self.backend.remove(keys[positions < 0])
        self._put_again(positions[positions >= 0])
        self.strays.clear()

    def rebuild(self) -> None:
        """Put every item into the backend again."""
        keys, positions = self.store.table.keys, np.arange(len(self))
        if not len(keys):
            return
        self.strays.update(keys.tolist())
        self.backend.remove(keys)
        self.form.begin(self.store.gaussians(positions[:_BLOCK]), self.store.penalties(positions))
        self._put_again(positions)

    def settle(self) -> dict[str, Any] | None:
        """Let the backend choose and tune its structure, if it grew; what it chose."""
        if not isinstance(self.backend, Settling) or not self.backend.unsettled:
            return None
        chosen = self.backend.settle(self.form.ask(self._like_queries())[0])
        return chosen | {"on": "items, moved at random" if self.queries is None else "queries given"}

    def _like_queries(self) -> Gaussian:
        """Queries to tune on: some that were given, or items moved by half the difference of two others.

        Captions lie farther from images than images from each other. Moved so, items are at least as hard to serve as
        the captions of a trained model.
        """
        draw = np.random.default_rng(0)
        if self.queries is not None:
            return self.queries[np.sort(draw.permutation(len(self.queries))[:_SAMPLE])]
        some, one, other = (self.store.gaussians(draw.integers(len(self), size=_SAMPLE)) for _ in range(3))
        return Gaussian(some.mean + 0.5 * (one.mean - other.mean), some.log_var)
