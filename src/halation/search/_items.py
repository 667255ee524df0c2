"""What the items of an index are: captions and places in one SQLite file, looked up by id, never all in memory."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.request import pathname2url

from halation._errors import InputError
from halation.search._answers import Side
from halation.search._entries import PictureLocation

__all__ = ["Items", "Known", "write_items"]

_COLUMNS = "id, captions, root, name, offset, size, uncertainty"


class Known(NamedTuple):
    """What is known of an item."""

    id: str
    captions: tuple[str, ...] = ()
    place: PictureLocation | None = None
    uncertainty: float | None = None


def write_items(path: Path, sides: Iterable[tuple[Side, Iterable[Known]]]) -> None:
    """A new file with the items of every side."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # the folder it is in is thrown away if this ends early
        connection.execute("PRAGMA synchronous = OFF")  # who makes that folder has it all on the disk before it counts
        connection.execute(
            "CREATE TABLE items (side TEXT, id TEXT, captions TEXT, root INTEGER, name TEXT, offset INTEGER, "
            "size INTEGER, uncertainty REAL, PRIMARY KEY (side, id)) WITHOUT ROWID"
        )
        for side, items in sides:
            connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _rows(side, items))
        connection.commit()
    finally:
        connection.close()


def _rows(side: Side, items: Iterable[Known]) -> Iterator[tuple[object, ...]]:
    for item in items:
        place = item.place or (None, None, None, None)
        yield side, item.id, json.dumps(item.captions, ensure_ascii=False), *place, item.uncertainty


class Items:
    """The file, open to read; may be asked by several threads."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        try:
            address = f"file:{pathname2url(str(path.resolve()))}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
            self._connection.execute("SELECT count(*) FROM items")
        except sqlite3.Error as error:
            raise InputError(f"cannot be read ({error}); make the index again with halation index", path=path) from None

    def find(self, side: Side, ids: Sequence[str]) -> dict[str, Known]:
        """What is known of these items; those that are not there are left out."""
        found: dict[str, Known] = {}
        for start in range(0, len(ids), 500):
            some = list(ids[start : start + 500])
            marks = ", ".join("?" * len(some))
            with self._lock:
                rows = self._connection.execute(
                    f"SELECT {_COLUMNS} FROM items WHERE side = ? AND id IN ({marks})",  # noqa: S608  # marks alone
                    [side, *some],
                ).fetchall()
            found.update({str(row[0]): _known(row) for row in rows})
        return found

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()


def _known(row: tuple[object, ...]) -> Known:
    place = None if row[2] is None else PictureLocation(*row[2:6])  # type: ignore[arg-type]
    return Known(str(row[0]), tuple(json.loads(str(row[1]))), place, row[6])  # type: ignore[arg-type]
