"""`Source`, a collection before it is embedded: its items, and the locations of its pictures."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from halation._errors import InputError
from halation.data import Features, FeatureStore
from halation.search._answers import Side

__all__ = [
    "PictureLocation",
    "Source",
    "SourceItem",
    "check_unique",
    "check_utf8",
    "file_stamp",
    "location_file",
    "one_line",
    "read_location",
    "text_stamp",
    "to_utf8",
]


class PictureLocation(NamedTuple):
    """The location of a picture: a file below a root, or a part of a tar file below it."""

    root: int
    name: str  # below the root, with forward slashes
    offset: int = -1  # of the picture inside a tar file
    size: int = -1


class SourceItem(NamedTuple):
    """An image or a caption to embed.

    stamp   changes with its content: the same id with another stamp is embedded again
    row     of its stored features: the number of the store, and the row in it
    """

    id: str
    stamp: str
    captions: tuple[str, ...] = ()
    location: PictureLocation | None = None
    row: tuple[int, int] | None = None


@dataclass(frozen=True)
class Source:
    """A collection: its items in order, and how to read them.

    name      the path it was opened by
    roots     folders that hold the pictures, absolute, links resolved
    sides     the items of each side; a side without items is left out
    problems  (id, reason) of entries that cannot be items: links that leave the root, broken members of a tar file
    stores    features of a dataset, for runs that were trained on them
    notes     for the user
    split     of a dataset; None: all splits, or not a dataset
    """

    name: str
    roots: tuple[Path, ...] = ()
    sides: Mapping[Side, Sequence[SourceItem]] = field(default_factory=dict)
    problems: tuple[tuple[str, str], ...] = ()
    stores: tuple[FeatureStore, ...] = ()
    notes: tuple[str, ...] = ()
    split: str | None = None

    def features(self, items: Sequence[SourceItem]) -> Features:
        """The stored features of these items, in order."""
        parts: list[Features] = []
        rows = [item.row for item in items]
        start = 0
        for stop in range(1, len(rows) + 1):  # items of one store are read together
            if stop == len(rows) or rows[stop][0] != rows[start][0]:  # type: ignore[index]
                store = self.stores[rows[start][0]]  # type: ignore[index]
                parts.append(store.rows([row[1] for row in rows[start:stop]]))  # type: ignore[index]
                start = stop
        local: list[Tensor] = [part.local for part in parts if part.local is not None]
        return Features(torch.cat([part.pooled for part in parts]), torch.cat(local) if local else None)


def read_location(roots: Sequence[Path], location: PictureLocation) -> Path | bytes:
    """The file of a picture, or its bytes if it is inside a tar file; an InputError where it leaves its root."""
    path = location_file(roots, location)
    if location.offset < 0:
        return path
    with path.open("rb") as file:
        file.seek(location.offset)
        return file.read(location.size)


def location_file(roots: Sequence[Path], location: PictureLocation) -> Path:
    """The file of a location, links followed; an InputError where it leaves its root or does not exist.

    It works on strings, which are quicker than paths: every hit of every search comes through here.
    """
    if not 0 <= location.root < len(roots):
        raise InputError(f"{location.name}: the collection has no root {location.root}; was the list of items edited?")
    root = str(roots[location.root])  # links were resolved when it was recorded
    path = os.path.join(root, location.name)  # noqa: PTH118  # an absolute name replaces the root, and is refused below
    try:
        real = os.path.realpath(path)
        exists = os.path.isfile(real)  # noqa: PTH113
    except ValueError:  # a null character
        raise InputError(f"{location.name!r} is not a file name") from None
    if not real.startswith(root.rstrip(os.sep) + os.sep):
        raise InputError("leaves its folder; only files below it are read", path=path)
    if not exists:
        raise InputError("does not exist", path=path)
    return Path(real)


def text_stamp(text: str) -> str:
    """The stamp of a caption."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def to_utf8(text: str) -> str:
    """The text in valid UTF-8: unpaired surrogates, which JSON and file names can hold, become question marks.

    >>> to_utf8("two dogs \\ud83d")
    'two dogs ?'
    """
    return text.encode("utf-8", "replace").decode()


def check_utf8(folder: Path) -> None:
    """An InputError if a folder's name cannot be written in UTF-8, which FAISS and terminals need."""
    if to_utf8(str(folder)) != str(folder):
        raise InputError("has a name that is not UTF-8", path=to_utf8(str(folder)), remedy="name another folder")


def one_line(text: str) -> str:
    """A caption as it is stored: valid UTF-8, with every run of white space as one space.

    >>> one_line(" two\\ndogs ")
    'two dogs'
    """
    return " ".join(to_utf8(text).split())


def file_stamp(path: Path) -> str:
    """The stamp of a file: its size and when it was changed; "gone" where it does not exist."""
    try:
        state = path.stat()
    except OSError:
        return "gone"
    return f"{state.st_size}-{state.st_mtime_ns}"


def check_unique(items: Iterable[tuple[str, SourceItem]], what: str) -> list[SourceItem]:
    """The items of pairs (line, item); an InputError names the line where an id is repeated."""
    seen: dict[str, str] = {}
    kept: list[SourceItem] = []
    for line, item in items:
        if item.id in seen:
            raise InputError(f"{line}: {what} {item.id!r} was in {seen[item.id]} already; each may occur once")
        seen[item.id] = line
        kept.append(item)
    return kept
