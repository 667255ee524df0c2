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
_FEW = 32  # up to this many ids are looked up in the file, without a dictionary of all
_KINDS = {str: "strings", int: "integers"}


class Table:
    """Columns of float32 vectors under ascending keys.

    Stored rows are never moved or overwritten. A row put under a key that exists replaces the old one, a dropped key is
    forgotten, and saving the table makes it compact again.

    >>> table = Table({"point": 2})
    >>> table.put(np.array([4, 7]), {"point": np.zeros((2, 2), np.float32)})
    >>> table.put(np.array([4]), {"point": np.ones((1, 2), np.float32)})
    >>> table.keys, table.take(np.array([0]))["point"]
    (array([4, 7]), array([[1., 1.]], dtype=float32))
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = dict(widths)
        self.keys: Keys = np.empty(0, np.int64)
        self.row: Keys = np.empty(0, np.int64)  # of each key: in the file if below `_n_mapped`, else among the added
        self._mapped: dict[str, Points] = {name: np.empty((0, width), np.float32) for name, width in widths.items()}
        self._added = {name: np.empty((0, width), np.float32) for name, width in widths.items()}
        self._n_mapped = self._n_added = 0

    def map(self, keys: Keys, columns: Mapping[str, Points]) -> None:
        """Use the rows of a file without reading them into memory. The table must be empty."""
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
        """Store rows under different keys."""
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
        """The rows at these positions: some columns, or all."""
        rows = self.row[positions]
        mapped = rows < self._n_mapped
        wanted = self.widths if columns is None else columns
        out = {name: np.empty((len(rows), self.widths[name]), np.float32) for name in wanted}
        for name, values in out.items():
            values[mapped] = self._mapped[name][rows[mapped]]
            values[~mapped] = self._added[name][rows[~mapped] - self._n_mapped]
        return out

    def blocks(self, size: int = _BLOCK) -> Iterator[tuple[Keys, dict[str, Points]]]:
        """All keys and rows in the order of the keys, without a copy where rows are contiguous."""
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
        """Keys and columns for `write_arrays`; `map` takes them back."""
        arrays: dict[str, Blocks] = {"keys": ((len(self),), np.dtype("<i8"), [self.keys])}
        for name, width in self.widths.items():
            arrays[name] = ((len(self), width), np.dtype("<f4"), self._column(name))
        return arrays

    def _column(self, name: str) -> Iterator[Points]:
        for _, columns in self.blocks():
            yield columns[name]


def _appended(buffer: Points, used: int, values: Points) -> Points:
    """The buffer with values after its used rows. It doubles when it is full, so that adding one by one stays cheap."""
    if used + len(values) > len(buffer):
        larger = np.empty((max(2 * used, used + len(values)), buffer.shape[1]), np.float32)
        larger[:used] = buffer[:used]
        buffer = larger
    buffer[used : used + len(values)] = values
    return buffer


class Items(Table):
    """Items in the order of their keys: id, Gaussian and hub penalty. A key is never used twice."""

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
        """All arrays for `write_arrays`; `mapped` takes them back."""
        ids = self.ids(np.arange(len(self)))
        return super().for_file() | (_Numbers.for_file(ids) if self.id_type is int else _Texts.for_file(ids))

    @property
    def id_type(self) -> type | None:
        """str or int; None while there are no items."""
        return type(self.ids(np.zeros(1, np.int64))[0]) if len(self) else None

    def ids(self, positions: Keys) -> list[Any]:
        """The ids of the items at these positions, strings or integers."""
        rows, n_mapped = self.row[positions], len(self._mapped_ids)
        if not n_mapped:
            return [self._added_ids[row] for row in rows.tolist()]
        if not self._added_ids:
            return self._mapped_ids.at(rows)
        mapped = self._mapped_ids.at(np.minimum(rows, n_mapped - 1))
        pairs = zip(rows.tolist(), mapped, strict=True)
        return [stored if row < n_mapped else self._added_ids[row - n_mapped] for row, stored in pairs]

    def gaussians(self, positions: Keys) -> Gaussian:
        """The Gaussians of the items at these positions."""
        columns = self.take(positions, [name for name in ("mean", "log_var") if name in self.widths])
        log_var = columns.get("log_var")
        return Gaussian(torch.from_numpy(columns["mean"]), None if log_var is None else torch.from_numpy(log_var))

    def penalties(self, positions: Keys) -> FloatArray:
        """The hub penalties of the items at these positions."""
        if "penalty" not in self.widths:
            return np.zeros(len(positions), np.float32)
        return self.take(positions, ["penalty"])["penalty"][:, 0]

    def find(self, ids: Sequence[Id]) -> list[int | None]:
        """The key of each id, or None if it does not exist. A few ids are looked up in the file itself."""
        if self._key_of is None and len(ids) <= _FEW:
            positions = map(self._mapped_ids.find, ids)  # nothing was changed yet, so rows are positions
            return [None if position is None else int(self.keys[position]) for position in positions]
        return [*map(self.key_of().get, ids)]

    def key_of(self) -> dict[Id, int]:
        """The key of every id, as a dictionary. It is made on first use, because a search does not need it."""
        if self._key_of is None:
            self._key_of = dict(zip(self.ids(np.arange(len(self))), self.keys.tolist(), strict=True))
        return self._key_of

    def keys_for(self, ids: Sequence[Id]) -> Keys:
        """The key of each id; new ids get the next keys."""
        known = self.key_of()
        keys, following = np.empty(len(ids), np.int64), self.next_key
        for position, item_id in enumerate(ids):
            key = known.get(item_id)
            if key is None:
                key, following = following, following + 1
            keys[position] = key
        return keys

    def set(self, keys: Keys, ids: Sequence[Id], gaussians: Gaussian, penalties: FloatArray) -> None:
        """Store items; items under the same keys are replaced."""
        columns: dict[str, Points] = {"mean": gaussians.mean.numpy()}
        if gaussians.log_var is not None:
            columns["log_var"] = gaussians.log_var.numpy()
        if "penalty" in self.widths:
            columns["penalty"] = np.asarray(penalties, np.float32)[:, None]
        known = self.key_of()  # made from the items before they change
        self.put(keys, columns)
        self._added_ids.extend(ids)
        known.update(zip(ids, keys.tolist(), strict=True))
        self.next_key = max(self.next_key, int(keys.max(initial=-1)) + 1)

    def forget(self, keys: Keys, ids: Sequence[Id]) -> None:
        """Drop items."""
        known = self.key_of()
        self.drop(keys)
        for item_id in ids:
            known.pop(item_id)


class _Texts:
    """Strings in a file: all their bytes, and the end of each string. A million of them open at once."""

    def __init__(self, text: npt.NDArray[np.uint8], ends: Keys) -> None:
        self._text, self._ends = text, ends

    def __len__(self) -> int:
        return len(self._ends)

    def at(self, rows: Keys) -> list[str]:
        # all offsets at once: fetched one by one, a million ids take twenty seconds
        ends, starts = self._ends[rows].tolist(), np.where(rows > 0, self._ends[rows - 1], 0).tolist()
        text = self._text.data
        return [str(text[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]

    def find(self, text: Id) -> int | None:
        """The row of a string, or None: among the strings of its length, compared byte by byte from the end.

        This takes milliseconds for a million strings. A dictionary of them takes seconds, and memory for all.
        """
        wanted = str(text).encode(errors="surrogatepass")
        rows = np.flatnonzero(np.diff(self._ends, prepend=0) == len(wanted))
        for back, byte in enumerate(reversed(wanted), start=1):
            rows = rows[self._text[self._ends[rows] - back] == byte]
        return int(rows[0]) if len(rows) and wanted else None

    @staticmethod
    def for_file(ids: Sequence[str]) -> dict[str, Blocks]:
        encoded = [text.encode() for text in ids]
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

    def find(self, number: Id) -> int | None:
        rows = np.flatnonzero(self._numbers == number)
        return int(rows[0]) if len(rows) else None

    @staticmethod
    def for_file(ids: Sequence[int]) -> dict[str, Blocks]:
        return {"ids": ((len(ids),), np.dtype("<i8"), [np.asarray(ids, np.int64)])}


def as_ids(ids: Ids, kind: type | None = None) -> list[Any]:
    """The ids as a list of different strings or of different integers; an InputError names one that does not fit.

    kind   str or int, if the index has ids already

    >>> as_ids(np.arange(3))
    [0, 1, 2]
    """
    if isinstance(ids, (str, int)):
        raise InputError(f"ids must be a list, not the one id {ids!r}; write [{ids!r}]")
    plain: Iterable[Any] = ids.tolist() if hasattr(ids, "tolist") else ids
    checked = [_as_id(value, position) for position, value in enumerate(plain)]
    if checked and kind is not None and type(checked[0]) is not kind:
        raise InputError(f"the ids of this index are {_KINDS[kind]}, and {checked[0]!r} is not; an index has one kind")
    if len(set(map(type, checked))) > 1:
        other = next(item_id for item_id in checked if type(item_id) is not type(checked[0]))
        raise InputError(f"the ids {checked[0]!r} and {other!r} are of two kinds; use strings or integers, not both")
    if len(set(checked)) < len(checked):
        seen: dict[Id, int] = {}
        for position, item_id in enumerate(checked):
            if item_id in seen:
                raise InputError(
                    f"ids {seen[item_id]} and {position} are both {item_id!r}; every item needs its own id"
                )
            seen[item_id] = position
    return checked


def _as_id(value: Any, position: int) -> Id:
    if isinstance(value, str) and value:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"id {position} is text that cannot be written as UTF-8 ({value!r})") from None
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and -(2**63) <= int(value) < 2**63:
        return int(value)
    raise InputError(f"id {position} is {value!r}; an id is a string that is not empty, or an integer of 64 bits")
