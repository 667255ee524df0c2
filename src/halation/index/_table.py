"""Rows of numbers under keys: a mapped file, what was added since, and which row is each key's latest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from halation.index._backend import Keys, Points
from halation.index._mapped import Blocks

__all__ = ["Table"]

_BLOCK = 32_768


class Table:
    """Columns of float32 vectors under ascending keys.

    Nothing that is stored is ever moved or written over: a row put under a key that is there takes its place, a
    dropped key is forgotten, and only what is written to a file is compact again.

    >>> table = Table({"point": 2})
    >>> table.put(np.array([4, 7]), {"point": np.zeros((2, 2), np.float32)})
    >>> table.put(np.array([4]), {"point": np.ones((1, 2), np.float32)})
    >>> table.keys, table.take(np.array([0]))["point"]
    (array([4, 7]), array([[1., 1.]], dtype=float32))
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = dict(widths)
        self.keys: Keys = np.empty(0, np.int64)
        self.row: Keys = np.empty(0, np.int64)  # of each key: below `_old` in the file, else among the added
        self._base: dict[str, Points] = {name: np.empty((0, width), np.float32) for name, width in widths.items()}
        self._added = {name: np.empty((0, width), np.float32) for name, width in widths.items()}
        self._old = self._n_added = 0

    @classmethod
    def over(cls, keys: Keys, columns: Mapping[str, Points]) -> Table:
        """A table of rows that lie in a file."""
        table = cls({name: column.shape[1] for name, column in columns.items()})
        table.keys, table.row = np.array(keys), np.arange(len(keys))
        table._base, table._old = dict(columns), len(keys)
        return table

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def rows_ever(self) -> int:
        """How many rows were ever stored."""
        return self._old + self._n_added

    def positions(self, keys: Keys) -> Keys:
        """Where keys of any shape are among the ascending ones; −1 for those that are not there."""
        if not len(self.keys):
            return np.full(np.shape(keys), -1, np.int64)
        if self.keys[-1] == len(self.keys) - 1 and self.keys[0] == 0:  # 0, 1, 2, …: nothing was ever dropped
            return np.where(keys < len(self.keys), keys, -1)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, place, -1)

    def put(self, keys: Keys, columns: Mapping[str, Points]) -> None:
        """Store rows under keys, each key once."""
        rows = self.rows_ever + np.arange(len(keys))
        for name, values in columns.items():
            self._added[name] = _appended(self._added[name], self._n_added, values)
        self._n_added += len(keys)
        place = self.positions(keys)
        known = place >= 0
        self.row[place[known]] = rows[known]
        if known.all():
            return
        all_keys, all_rows = np.concatenate([self.keys, keys[~known]]), np.concatenate([self.row, rows[~known]])
        order = np.argsort(all_keys, kind="stable")
        self.keys, self.row = all_keys[order], all_rows[order]

    def drop(self, keys: Keys) -> None:
        """Forget keys; those that are not there are no error."""
        place = self.positions(keys)
        kept = np.ones(len(self), bool)
        kept[place[place >= 0]] = False
        self.keys, self.row = self.keys[kept], self.row[kept]

    def take(self, positions: Keys, columns: Collection[str] | None = None) -> dict[str, Points]:
        """The rows at these positions, of some columns or of all."""
        rows = self.row[positions]
        old = rows < self._old
        wanted = self.widths if columns is None else columns
        out = {name: np.empty((len(rows), self.widths[name]), np.float32) for name in wanted}
        for name, values in out.items():
            values[old] = self._base[name][rows[old]]
            values[~old] = self._added[name][rows[~old] - self._old]
        return out

    def blocks(self, size: int = _BLOCK) -> Iterator[tuple[Keys, dict[str, Points]]]:
        """All keys and rows in order of the keys; without a copy where they lie together."""
        for start in range(0, len(self), size):
            rows = self.row[start : start + size]
            first, last = int(rows[0]), int(rows[-1]) + 1
            source, shift = (self._base, 0) if last <= self._old else (self._added, self._old)
            together = first >= shift and last - first == len(rows) and bool((np.diff(rows) == 1).all())
            if together:
                columns = {name: source[name][first - shift : last - shift] for name in self.widths}
            else:
                columns = self.take(np.arange(start, start + len(rows)))
            yield self.keys[start : start + size], columns

    def for_file(self) -> dict[str, Blocks]:
        """Keys and columns as `write_arrays` takes them; `Table.over` is the way back."""
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
