"""The items of a search: ids, captions and locations in one SQLite file, looked up by row or id."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast
from urllib.request import pathname2url

from halation._errors import InputError
from halation.search._answers import Side
from halation.search._source import PictureLocation

__all__ = ["ItemRecord", "ItemTable", "write_items"]

_COLUMNS = "row, id, captions, root, name, offset, size, uncertainty"
_BATCH = 500  # rows per SQL query


class ItemRecord(NamedTuple):
    """An item as it is stored, without its Gaussian."""

    id: str
    captions: tuple[str, ...] = ()
    location: PictureLocation | None = None
    uncertainty: float | None = None


def write_items(path: Path, sides: Iterable[tuple[Side, Iterable[ItemRecord]]]) -> None:
    """Write a new file with the items of every side, in the order of their rows."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # the folder it is in is thrown away if this ends early
        connection.execute("PRAGMA synchronous = OFF")  # the folder is on the disk before it is published
        connection.execute(
            "CREATE TABLE items (side TEXT, row INTEGER, id TEXT, captions TEXT, root INTEGER, name TEXT, "
            "offset INTEGER, size INTEGER, uncertainty REAL, PRIMARY KEY (side, row)) WITHOUT ROWID"
        )
        for side, items in sides:
            connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _rows(side, items))
        connection.execute("CREATE UNIQUE INDEX items_by_id ON items (id)")
        connection.commit()
    finally:
        connection.close()


def _rows(side: Side, items: Iterable[ItemRecord]) -> Iterator[tuple[object, ...]]:
    for row, item in enumerate(items):
        location = item.location or (None, None, None, None)
        yield side, row, item.id, json.dumps(item.captions, ensure_ascii=False), *location, item.uncertainty


class ItemTable:
    """The file, open for reading. Several threads may use it."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        try:
            address = f"file:{pathname2url(str(path.resolve()))}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
            self._connection.execute("SELECT count(*) FROM items")
        except sqlite3.Error as error:
            raise InputError(
                f"cannot be read ({error})", path=path, remedy="make the index again with `halation index`"
            ) from None

    def records(self, side: Side, rows: Sequence[int]) -> list[ItemRecord]:
        """The items at these rows of a side, in the order of the rows."""
        records: dict[int, ItemRecord] = {}
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            marks = ", ".join("?" * len(batch))
            query = f"SELECT {_COLUMNS} FROM items WHERE side = ? AND row IN ({marks})"  # noqa: S608  # only marks
            records.update({cast(int, values[0]): _record(values) for values in self._select(query, [side, *batch])})
        return [records[row] for row in rows]

    def locate(self, id: str) -> tuple[Side, int] | None:  # noqa: A002
        """The side and row of an id; None if there is no such item."""
        rows = self._select("SELECT side, row FROM items WHERE id = ?", [id])
        return cast(tuple[Side, int], rows[0]) if rows else None

    def _select(self, query: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def _record(values: Sequence[object]) -> ItemRecord:
    location = None if values[3] is None else PictureLocation(*values[3:7])  # type: ignore[arg-type]
    return ItemRecord(str(values[1]), tuple(json.loads(str(values[2]))), location, cast(float | None, values[7]))
