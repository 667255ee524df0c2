"""What a collection is made of before it is embedded: entries, and where their pictures lie."""

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
    "Entry",
    "PictureLocation",
    "Source",
    "file_of",
    "in_utf8",
    "one_line",
    "plain",
    "read_place",
    "stamp_of",
    "stamp_of_file",
    "unique",
]


class PictureLocation(NamedTuple):
    """Where a picture lies: a file below a root, or a stretch of a tar file below it."""

    root: int
    name: str  # below the root, with forward slashes
    offset: int = -1  # of the picture inside a tar file
    size: int = -1


class Entry(NamedTuple):
    """One thing to embed.

    stamp: of its content. The same id with another stamp is another picture, and is looked at again.
    """

    id: str
    stamp: str
    captions: tuple[str, ...] = ()
    place: PictureLocation | None = None
    row: tuple[int, int] | None = None  # of its features: which store, which row


@dataclass(frozen=True)
class Source:
    """A collection: its entries in order, and how to get at them.

    name      for people
    roots     folders below which the pictures lie, absolute, links resolved
    entries   by side; what a side has not is left out
    problems  (id, what is wrong) of what is no entry: links that leave the root, broken members of a tar file
    stores    features of a dataset, for runs that were trained on them
    notes     for people
    split     of a dataset; None: all of it, or no dataset
    """

    name: str
    roots: tuple[Path, ...] = ()
    entries: Mapping[Side, Sequence[Entry]] = field(default_factory=dict)
    problems: tuple[tuple[str, str], ...] = ()
    stores: tuple[FeatureStore, ...] = ()
    notes: tuple[str, ...] = ()
    split: str | None = None

    def features(self, entries: Sequence[Entry]) -> Features:
        """What the dataset's backbone saw of these, in this order."""
        parts: list[Features] = []
        rows = [entry.row for entry in entries]
        start = 0
        for stop in range(1, len(rows) + 1):  # runs of one store
            if stop == len(rows) or rows[stop][0] != rows[start][0]:  # type: ignore[index]
                store = self.stores[rows[start][0]]  # type: ignore[index]
                parts.append(store.rows([row[1] for row in rows[start:stop]]))  # type: ignore[index]
                start = stop
        local: list[Tensor] = [part.local for part in parts if part.local is not None]
        return Features(torch.cat([part.pooled for part in parts]), torch.cat(local) if local else None)


def read_place(roots: Sequence[Path], place: PictureLocation) -> Path | bytes:
    """The file of a picture, or its bytes where it lies inside a tar file; an InputError where it leaves its root."""
    path = file_of(roots, place)
    if place.offset < 0:
        return path
    with path.open("rb") as file:
        file.seek(place.offset)
        return file.read(place.size)


def file_of(roots: Sequence[Path], place: PictureLocation) -> Path:
    """The file a place is in, links followed: an InputError where it leaves its root or does not exist.

    Strings, not paths, within: every hit of every search comes through here.
    """
    if not 0 <= place.root < len(roots):
        raise InputError(f"{place.name}: there is no root {place.root}; was the list of items edited?")
    root = str(roots[place.root])  # links were resolved when it was recorded
    path = os.path.join(root, place.name)  # noqa: PTH118  # an absolute name replaces the root, and is found outside
    try:
        real = os.path.realpath(path)
        there = os.path.isfile(real)  # noqa: PTH113
    except ValueError:  # a null character
        raise InputError(f"{place.name!r} is no name of a file") from None
    if not real.startswith(root.rstrip(os.sep) + os.sep):
        raise InputError("leaves its folder; only what is below it is read", path=path)
    if not there:
        raise InputError("does not exist", path=path)
    return Path(real)


def stamp_of(text: str) -> str:
    """Of a caption."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def plain(text: str) -> str:
    """A text that UTF-8 can write: half characters (JSON and file names can hold them) become question marks.

    >>> plain("two dogs \\ud83d")
    'two dogs ?'
    """
    return text.encode("utf-8", "replace").decode()


def in_utf8(folder: Path) -> None:
    """An InputError where the name of a folder for results cannot be written in UTF-8, as FAISS and terminals want."""
    if plain(str(folder)) != str(folder):
        raise InputError(f"{plain(str(folder))}: its name is not UTF-8; name another folder")


def one_line(text: str) -> str:
    """A caption as it is kept: plain, every run of white space one space.

    >>> one_line(" two\\ndogs ")
    'two dogs'
    """
    return " ".join(plain(text).split())


def stamp_of_file(path: Path) -> str:
    """Of a file: its size and when it was changed; "gone" where it is not there."""
    try:
        state = path.stat()
    except OSError:
        return "gone"
    return f"{state.st_size}-{state.st_mtime_ns}"


def unique(entries: Iterable[tuple[str, Entry]], what: str) -> list[Entry]:
    """The entries; an InputError names the place where an id comes a second time."""
    seen: dict[str, str] = {}
    kept: list[Entry] = []
    for place, entry in entries:
        if entry.id in seen:
            raise InputError(f"{place}: {what} {entry.id!r} was in {seen[entry.id]} already; each may come once")
        seen[entry.id] = place
        kept.append(entry)
    return kept
