"""The names of items: a mapped text and where each name ends, so that a million of them cost nothing to open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._errors import InputError
from halation.index._backend import Keys
from halation.index._mapped import Blocks

__all__ = ["Names", "as_names"]


class Names:
    """Names by row; rows are only ever added.

    >>> names = Names()
    >>> names.append(["a.jpg", "ü.jpg"])
    >>> names[1], len(names)
    ('ü.jpg', 2)
    """

    def __init__(self, text: npt.NDArray[np.uint8] | None = None, ends: Keys | None = None) -> None:
        self._text = np.empty(0, np.uint8) if text is None else text
        self._ends = np.empty(0, np.int64) if ends is None else ends
        self._added: list[str] = []

    def __len__(self) -> int:
        return len(self._ends) + len(self._added)

    def __getitem__(self, row: int) -> str:
        if row >= len(self._ends):
            return self._added[row - len(self._ends)]
        start = int(self._ends[row - 1]) if row else 0
        return self._text[start : int(self._ends[row])].tobytes().decode()

    def append(self, names: Sequence[str]) -> None:
        """New rows."""
        self._added.extend(names)

    def at(self, rows: Keys) -> list[str]:
        """The names of many rows."""
        old = len(self._ends)
        if not old:
            return [self._added[row] for row in rows.tolist()]
        mapped = np.minimum(rows, old - 1)
        # the places of all at once: asked for one by one, a million names take twenty seconds
        ends, starts = self._ends[mapped].tolist(), np.where(mapped > 0, self._ends[mapped - 1], 0).tolist()
        text = self._text.data
        return [
            str(text[start:end], "utf-8") if row < old else self._added[row - old]
            for row, start, end in zip(rows.tolist(), starts, ends, strict=True)
        ]

    def find(self, name: str) -> int | None:
        """The row of a name among those mapped from a file: of the rows of its length, those that end as it does.

        A look at a million names takes milliseconds; a dictionary of them takes seconds, and their memory.
        """
        wanted = name.encode(errors="surrogatepass")
        rows = np.flatnonzero(np.diff(self._ends, prepend=0) == len(wanted))
        for back, byte in enumerate(reversed(wanted), start=1):
            rows = rows[self._text[self._ends[rows] - back] == byte]
        return int(rows[0]) if len(rows) and wanted else None

    @staticmethod
    def for_file(names: Sequence[str]) -> dict[str, Blocks]:
        """As `write_arrays` takes them."""
        encoded = [name.encode() for name in names]
        text = np.frombuffer(b"".join(encoded), np.uint8)
        ends = np.cumsum([len(part) for part in encoded], dtype=np.int64)
        kinds = np.dtype("u1"), np.dtype("<i8")
        return {"text": ((len(text),), kinds[0], [text]), "ends": ((len(ends),), kinds[1], [ends])}


def as_names(items: Sequence[str]) -> list[str]:
    """A list of different, non-empty names, or an error that says which is not."""
    if isinstance(items, str):
        raise InputError("items must be a list of names, not one name; write [name]")
    names: list[Any] = list(items)
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise InputError(f"item {place} is {name!r}; every item needs a name, a text that is not empty")
        if name in seen:
            raise InputError(f"items {seen[name]} and {place} are both called {name!r}; every item needs its own name")
        seen[name] = place
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        wrong = next(place for place, name in enumerate(names) if not _is_text(name))
        raise InputError(f"the name of item {wrong} is no text that can be written ({names[wrong]!r})") from None
    return names


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
