"""The items of an index: ids and Gaussians under keys, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from halation._arrays import FloatArray
from halation._errors import InputError
from halation._tensors import Blocks
from halation.index._backend import Keys, Points
from halation.similarity import Gaussian

__all__ = ["Id", "Ids", "Items", "Table", "as_ids"]

Id = str | int
Ids = Sequence[str] | Sequence[int] | npt.NDArray[Any]
"""Strings or integers, one kind; a numpy array of either will do."""

_BLOCK = 32_768
_FEW = 32  # ids that are looked up in the file, without a dictionary of all
_KINDS = {str: "strings", int: "integers"}


class Table:
    """Columns of float32 vectors under ascending keys.

    What is stored is never moved or overwritten: a row put under a key that exists takes its place, a dropped key is
    forgotten, and only a saved table is compact again.

    >>> table = Table({"point": 2})
    >>> table.put(np.array([4, 7]), {"point": np.zeros((2, 2), np.float32)})
    >>> table.put(np.array([4]), {"point": np.ones((1, 2), np.float32)})
    >>> table.keys, table.take(np.array([0]))["point"]
    (array([4, 7]), array([[1., 1.]], dtype=float32))
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = dict(widths)
        self.keys: Keys = np.empty(0, np.int64)
        self.row: Keys = np.empty(0, np.int64)  # of each key: below `_n_mapped` in the file, else among the added
        self._mapped: dict[str, Points] = {name: np.empty((0, width), np.float32) for name, width in widths.items()}
        self._added = {name: np.empty((0, width), np.float32) for name, width in widths.items()}
        self._n_mapped = self._n_added = 0

    def map(self, keys: Keys, columns: Mapping[str, Points]) -> None:
        """Take the rows of a file, which stay there. The table must be empty."""
        self.keys, self.row = np.array(keys), np.arange(len(keys))
        self._mapped, self._n_mapped = dict(columns), len(keys)

    def __len__(self) -> int:
        return len(self.keys)

    def positions(self, keys: Keys) -> Keys:
        """The positions of keys (of any shape) among the ascending ones; −1 for those that do not exist."""
        if not len(self.keys):
            return np.full(np.shape(keys), -1, np.int64)
        if self.keys[-1] == len(self.keys) - 1 and self.keys[0] == 0:  # 0, 1, 2, …: nothing was ever dropped
            return np.where(keys < len(self.keys), keys, -1)
        position = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[position] == keys, position, -1)

    def put(self, keys: Keys, columns: Mapping[str, Points]) -> None:
        """Store rows under keys, each key once."""
        rows = self._n_mapped + self._n_added + np.arange(len(keys))
        for name, values in columns.items():
            self._added[name] = _appended(self._added[name], self._n_added, values)
        self._n_added += len(keys)
        position = self.positions(keys)
        known = position >= 0
        self.row[position[known]] = rows[known]
        if known.all():
            return
        all_keys, all_rows = np.concatenate([self.keys, keys[~known]]), np.concatenate([self.row, rows[~known]])
        order = np.argsort(all_keys, kind="stable")
        self.keys, self.row = all_keys[order], all_rows[order]

    def drop(self, keys: Keys) -> None:
        """Forget keys; those that do not exist are ignored."""
        position = self.positions(keys)
        kept = np.ones(len(self), bool)
        kept[position[position >= 0]] = False
        self.keys, self.row = self.keys[kept], self.row[kept]

    def take(self, positions: Keys, columns: Collection[str] | None = None) -> dict[str, Points]:
        """The rows at these positions, of some columns or of all."""
        rows = self.row[positions]
        mapped = rows < self._n_mapped
        wanted = self.widths if columns is None else columns
        out = {name: np.empty((len(rows), self.widths[name]), np.float32) for name in wanted}
        for name, values in out.items():
            values[mapped] = self._mapped[name][rows[mapped]]
            values[~mapped] = self._added[name][rows[~mapped] - self._n_mapped]
        return out

    def blocks(self, size: int = _BLOCK) -> Iterator[tuple[Keys, dict[str, Points]]]:
        """All keys and rows in order of the keys; without a copy where they are contiguous."""
        for start in range(0, len(self), size):
            rows = self.row[start : start + size]
            first, last = int(rows[0]), int(rows[-1]) + 1
            source, shift = (self._mapped, 0) if last <= self._n_mapped else (self._added, self._n_mapped)
            contiguous = first >= shift and last - first == len(rows) and bool((np.diff(rows) == 1).all())
            if contiguous:
                columns = {name: source[name][first - shift : last - shift] for name in self.widths}
            else:
                columns = self.take(np.arange(start, start + len(rows)))
            yield self.keys[start : start + size], columns

    def for_file(self) -> dict[str, Blocks]:
        """Keys and columns as `write_arrays` takes them; `map` is the way back."""
        arrays: dict[str, Blocks] = {"keys": ((len(self),), np.dtype("<i8"), [self.keys])}
        for name, width in self.widths.items():
            arrays[name] = ((len(self), width), np.dtype("<f4"), self._column(name))
        return arrays

    def _column(self, name: str) -> Iterator[Points]:
        for _, columns in self.blocks():
            yield columns[name]


def _appended(buffer: Points, used: int, values: Points) -> Points:
    """The buffer with values behind the used rows; it doubles when it is full, so adding one by one stays cheap."""
    if used + len(values) > len(buffer):
        larger = np.empty((max(2 * used, used + len(values)), buffer.shape[1]), np.float32)
        larger[:used] = buffer[:used]
        buffer = larger
    buffer[used : used + len(values)] = values
    return buffer


class Items(Table):
    """Items in order of their keys: id, Gaussian, and what hubness takes off its scores. A key is never used twice."""

    def __init__(self, dim: int, *, points: bool, penalty: bool, next_key: int = 0) -> None:
        super().__init__({"mean": dim} | ({} if points else {"log_var": dim}) | ({"penalty": 1} if penalty else {}))
        self.dim, self.points, self.next_key = dim, points, next_key
        self._mapped_ids: _Texts | _Numbers = _Numbers(np.empty(0, np.int64))
        self._added_ids: list[Any] = []
        self._key_of: dict[Id, int] | None = {}

    @classmethod
    def mapped(cls, arrays: Mapping[str, npt.NDArray[Any]], next_key: int) -> Items:
        """The items of a saved index, left in their files."""
        columns = {name: arrays[name] for name in ("mean", "log_var", "penalty") if name in arrays}
        dim = columns["mean"].shape[1]
        items = cls(dim, points="log_var" not in columns, penalty="penalty" in columns, next_key=next_key)
        items.map(arrays["keys"], columns)
        items._mapped_ids = _Numbers(arrays["ids"]) if "ids" in arrays else _Texts(arrays["text"], arrays["ends"])
        items._key_of = None
        return items

    def for_file(self) -> dict[str, Blocks]:
        """All arrays as `write_arrays` takes them; `mapped` is the way back."""
        ids = self.ids(np.arange(len(self)))
        kept = _Numbers.for_file(ids) if self.id_type is int else _Texts.for_file(ids)
        return super().for_file() | kept

    @property
    def id_type(self) -> type | None:
        """str or int; None while there are no items."""
        return type(self.ids(np.zeros(1, np.int64))[0]) if len(self) else None

    def ids(self, positions: Keys) -> list[Any]:
        """The ids of items by their positions: strings or integers, as they were given."""
        rows, n_mapped = self.row[positions], len(self._mapped_ids)
        if not n_mapped:
            return [self._added_ids[row] for row in rows.tolist()]
        if not self._added_ids:
            return self._mapped_ids.at(rows)
        mapped = self._mapped_ids.at(np.minimum(rows, n_mapped - 1))
        pairs = zip(rows.tolist(), mapped, strict=True)
        return [one if row < n_mapped else self._added_ids[row - n_mapped] for row, one in pairs]

    def gaussians(self, positions: Keys) -> Gaussian:
        """The Gaussians of items by their positions."""
        columns = self.take(positions, [name for name in ("mean", "log_var") if name in self.widths])
        log_var = columns.get("log_var")
        return Gaussian(torch.from_numpy(columns["mean"]), None if log_var is None else torch.from_numpy(log_var))

    def penalties(self, positions: Keys) -> FloatArray:
        """What hubness takes off the scores of items by their positions."""
        if "penalty" not in self.widths:
            return np.zeros(len(positions), np.float32)
        return self.take(positions, ["penalty"])["penalty"][:, 0]

    def find(self, ids: Sequence[Id]) -> list[int | None]:
        """The key of each id, None for one that does not exist; a few are looked up in the file itself."""
        if self._key_of is None and len(ids) <= _FEW:
            positions = map(self._mapped_ids.find, ids)  # nothing was changed yet, so rows are positions
            return [None if position is None else int(self.keys[position]) for position in positions]
        return [*map(self.key_of().get, ids)]

    def key_of(self) -> dict[Id, int]:
        """Key by id; made when it is first needed, as searching needs no ids."""
        if self._key_of is None:
            self._key_of = dict(zip(self.ids(np.arange(len(self))), self.keys.tolist(), strict=True))
        return self._key_of

    def keys_for(self, ids: Sequence[Id]) -> Keys:
        """The key of each id; new ids get the next keys."""
        known = self.key_of()
        keys, following = np.empty(len(ids), np.int64), self.next_key
        for position, one in enumerate(ids):
            key = known.get(one)
            if key is None:
                key, following = following, following + 1
            keys[position] = key
        return keys

    def set(self, keys: Keys, ids: Sequence[Id], gaussians: Gaussian, penalties: FloatArray) -> None:
        """Store items, new ones or in place of what their keys held."""
        columns: dict[str, Points] = {"mean": gaussians.mean.numpy()}
        if gaussians.log_var is not None:
            columns["log_var"] = gaussians.log_var.numpy()
        if "penalty" in self.widths:
            columns["penalty"] = np.asarray(penalties, np.float32)[:, None]
        known = self.key_of()  # of what is there, before it changes
        self.put(keys, columns)
        self._added_ids.extend(ids)
        known.update(zip(ids, keys.tolist(), strict=True))
        self.next_key = max(self.next_key, int(keys.max(initial=-1)) + 1)

    def forget(self, keys: Keys, ids: Sequence[Id]) -> None:
        """Drop items."""
        known = self.key_of()
        self.drop(keys)
        for one in ids:
            known.pop(one)


class _Texts:
    """Strings in a file: all their bytes and where each string ends, so that a million of them open at once."""

    def __init__(self, text: npt.NDArray[np.uint8], ends: Keys) -> None:
        self._text, self._ends = text, ends

    def __len__(self) -> int:
        return len(self._ends)

    def at(self, rows: Keys) -> list[str]:
        # all offsets at once: fetched one by one, a million ids take twenty seconds
        ends, starts = self._ends[rows].tolist(), np.where(rows > 0, self._ends[rows - 1], 0).tolist()
        text = self._text.data
        return [str(text[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]

    def find(self, one: Id) -> int | None:
        """The row of a string: of the rows of its length, the one that ends as it does.

        A look at a million strings takes milliseconds; a dictionary of them takes seconds, and their memory.
        """
        wanted = str(one).encode(errors="surrogatepass")
        rows = np.flatnonzero(np.diff(self._ends, prepend=0) == len(wanted))
        for back, byte in enumerate(reversed(wanted), start=1):
            rows = rows[self._text[self._ends[rows] - back] == byte]
        return int(rows[0]) if len(rows) and wanted else None

    @staticmethod
    def for_file(ids: Sequence[str]) -> dict[str, Blocks]:
        encoded = [one.encode() for one in ids]
        text = np.frombuffer(b"".join(encoded), np.uint8)
        ends = np.cumsum([len(part) for part in encoded], dtype=np.int64)
        return {"text": ((len(text),), np.dtype("u1"), [text]), "ends": ((len(ends),), np.dtype("<i8"), [ends])}


class _Numbers:
    """Integers in a file."""

    def __init__(self, numbers: Keys) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def at(self, rows: Keys) -> list[int]:
        numbers: list[int] = self._numbers[rows].tolist()
        return numbers

    def find(self, one: Id) -> int | None:
        rows = np.flatnonzero(self._numbers == one)
        return int(rows[0]) if len(rows) else None

    @staticmethod
    def for_file(ids: Sequence[int]) -> dict[str, Blocks]:
        return {"ids": ((len(ids),), np.dtype("<i8"), [np.asarray(ids, np.int64)])}


def as_ids(ids: Ids, kind: type | None = None) -> list[Any]:
    """A list of different strings or of different integers; an InputError names the id that does not fit.

    kind   what the index has already

    >>> as_ids(np.arange(3))
    [0, 1, 2]
    """
    if isinstance(ids, (str, int)):
        raise InputError(f"ids must be a list, not the one id {ids!r}; write [{ids!r}]")
    plain: Iterable[Any] = ids.tolist() if hasattr(ids, "tolist") else ids
    checked = [_as_id(one, position) for position, one in enumerate(plain)]
    if checked and kind is not None and type(checked[0]) is not kind:
        raise InputError(f"the ids of this index are {_KINDS[kind]}, and {checked[0]!r} is not; an index has one kind")
    if len(set(map(type, checked))) > 1:
        other = next(one for one in checked if type(one) is not type(checked[0]))
        raise InputError(f"the ids {checked[0]!r} and {other!r} are of two kinds; use strings or integers, not both")
    if len(set(checked)) < len(checked):
        seen: dict[Id, int] = {}
        for position, one in enumerate(checked):
            if one in seen:
                raise InputError(f"ids {seen[one]} and {position} are both {one!r}; every item needs its own id")
            seen[one] = position
    return checked


def _as_id(one: Any, position: int) -> Id:
    if isinstance(one, str) and one:
        try:
            one.encode()
        except UnicodeEncodeError:
            raise InputError(f"id {position} is text that cannot be written as UTF-8 ({one!r})") from None
        return str(one)
    if isinstance(one, (int, np.integer)) and not isinstance(one, bool) and -(2**63) <= int(one) < 2**63:
        return int(one)
    raise InputError(f"id {position} is {one!r}; an id is a string that is not empty, or an integer of 64 bits")
