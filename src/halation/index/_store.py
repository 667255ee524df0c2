"""The items themselves: their Gaussians and names under keys, apart from whatever backend finds them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from halation._arrays import FloatArray
from halation._errors import InputError
from halation.index._backend import Keys, Points
from halation.index._items import Names
from halation.index._table import Table
from halation.similarity import Gaussian

__all__ = ["Store", "checked"]

_FEW = 32  # names for which no dictionary of all is made


class Store:
    """Items in order of their keys; a key is given once and never again."""

    def __init__(self, dim: int, *, points: bool, penalty: bool, next_key: int = 0) -> None:
        widths = {"mean": dim} | ({} if points else {"log_var": dim}) | ({"penalty": 1} if penalty else {})
        self.dim, self.points, self.next_key = dim, points, next_key
        self.table, self.names = Table(widths), Names()
        self._key_of: dict[str, int] | None = {}

    @classmethod
    def over(cls, table: Table, names: Names, next_key: int) -> Store:
        """The items of a saved index, left in their files."""
        store = cls(table.widths["mean"], points="log_var" not in table.widths, penalty=False, next_key=next_key)
        store.table, store.names, store._key_of = table, names, None
        return store

    def __len__(self) -> int:
        return len(self.table)

    def keys_of(self, names: Sequence[str]) -> list[int | None]:
        """The key of each name, None for one that is not there; a few are looked up where they lie in the file."""
        if self._key_of is None and len(names) <= _FEW:
            rows = map(self.names.find, names)  # as nothing was changed yet, rows are places
            return [None if row is None else int(self.table.keys[row]) for row in rows]
        return [*map(self.key_of().get, names)]

    def key_of(self) -> dict[str, int]:
        """Key by name; made when it is first asked for, as searching needs no names."""
        if self._key_of is None:
            self._key_of = dict(zip(self.names.at(self.table.row), self.table.keys.tolist(), strict=True))
        return self._key_of

    def names_at(self, positions: Keys) -> list[str]:
        """The names of items by their places."""
        return self.names.at(self.table.row[positions])

    def gaussians(self, positions: Keys) -> Gaussian:
        """The Gaussians of items by their places."""
        return _gaussian(self.table.take(positions))

    def penalties(self, positions: Keys) -> FloatArray:
        """What hubness takes off the scores of items by their places."""
        if "penalty" not in self.table.widths:
            return np.zeros(len(positions), np.float32)
        return self.table.take(positions, ["penalty"])["penalty"][:, 0]

    def keys_for(self, names: Sequence[str]) -> Keys:
        """The key of each name: its own, or one of the next."""
        known = self.key_of()
        keys, following = np.empty(len(names), np.int64), self.next_key
        for place, name in enumerate(names):
            key = known.get(name)
            if key is None:
                key, following = following, following + 1
            keys[place] = key
        return keys

    def put(self, keys: Keys, names: Sequence[str], gaussians: Gaussian, penalties: FloatArray) -> None:
        """Store items, new ones or in place of what their keys held."""
        columns: dict[str, Points] = {"mean": gaussians.mean.numpy()}
        if gaussians.log_var is not None:
            columns["log_var"] = gaussians.log_var.numpy()
        if "penalty" in self.table.widths:
            columns["penalty"] = np.asarray(penalties, np.float32)[:, None]
        known = self.key_of()  # of what is there, before it changes
        self.table.put(keys, columns)
        self.names.append(names)
        known.update(zip(names, keys.tolist(), strict=True))
        self.next_key = max(self.next_key, int(keys.max(initial=-1)) + 1)

    def drop(self, keys: Keys, names: Sequence[str]) -> None:
        """Forget items."""
        known = self.key_of()
        self.table.drop(keys)
        for name in names:
            known.pop(name)


def _gaussian(columns: dict[str, Points]) -> Gaussian:
    log_var = columns.get("log_var")
    return Gaussian(torch.from_numpy(columns["mean"]), None if log_var is None else torch.from_numpy(log_var))


def checked(gaussians: Gaussian, what: str, names: Sequence[str] | None = None) -> Gaussian:
    """Finite, in float32, on the CPU, outside any graph; the error names the item."""
    parts = [part for part in (gaussians.mean, gaussians.log_var) if part is not None]
    if any(part.requires_grad or part.dtype != torch.float32 or part.device.type != "cpu" for part in parts):
        gaussians = gaussians.detach().to("cpu", torch.float32)
    if _finite(gaussians):
        return gaussians
    for part, values in (("mean", gaussians.mean), ("log_var", gaussians.log_var)):
        if values is None:
            continue
        wrong = torch.nonzero(~torch.isfinite(values).all(dim=1))
        if len(wrong):
            row = int(wrong[0])
            which = f"{what} {row}" if names is None else f"{what} {names[row]!r}"
            raise InputError(f"the {part} of {which} is not finite; was the model's output sound?")
    return gaussians


def _finite(gaussians: Gaussian) -> bool:
    """Whether the sum is, which is quick to know of one query; a sum that is not may be one of finite numbers."""
    with np.errstate(all="ignore"):
        total = float(gaussians.mean.numpy().sum())
        return math.isfinite(total if gaussians.log_var is None else total + float(gaussians.log_var.numpy().sum()))
