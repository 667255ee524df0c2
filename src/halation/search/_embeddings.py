"""`Embeddings`: a folder of Gaussians with what they are of, larger than memory if need be."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from halation._errors import InputError
from halation._files import read_json
from halation._storage import sha256_of
from halation.search._answers import Side
from halation.search._entries import PictureLocation
from halation.search._journal import JOURNAL, Journal, read_journal
from halation.similarity import Gaussian

__all__ = ["FORMAT", "MANIFEST", "Embedded", "Embeddings", "Record", "parts_of", "read_manifest"]

FORMAT, MANIFEST = "halation embeddings 1", "manifest.json"


class Record(NamedTuple):
    """One line of a side's list: what a row is of, and where it lies."""

    id: str
    captions: tuple[str, ...]
    place: PictureLocation | None
    part: int
    row: int


@dataclass(frozen=True)
class Embedded:
    """One side of a collection, in the order of its source."""

    side: Side
    folder: Path
    count: int
    listing: Path
    parts: tuple[str, ...]  # folders, as the records number them
    corrupt: tuple[tuple[str, str], ...] = ()  # (id, why) of what could not be read

    def __len__(self) -> int:
        return self.count

    def records(self) -> Iterator[Record]:
        """What each row is of, in order; one line of a file at a time."""
        with self.listing.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                place = row.get("place")
                yield Record(row["id"], tuple(row["captions"]), PictureLocation(*place) if place else None, *row["at"])

    def blocks(self, size: int = 4096) -> Iterator[tuple[list[Record], Gaussian]]:
        """Records and their Gaussians, `size` at a time, read from the memory-mapped files."""
        journals = [read_journal(self.folder / name) for name in self.parts]
        arrays = [journal.arrays() if journal.rows else None for journal in journals]
        block: list[Record] = []
        for record in self.records():
            block.append(record)
            if len(block) == size:
                yield block, _gathered(block, arrays)
                block = []
        if block:
            yield block, _gathered(block, arrays)

    def gaussians(self) -> Gaussian:
        """All of them: mapped from the file where they lie in it in order, else in memory."""
        journals = [read_journal(self.folder / name) for name in self.parts]
        if len(journals) == 1 and len(journals[0].rows) == self.count:
            straight = all(record.row == row for row, record in enumerate(self.records()))
            if straight:
                mean, log_var = journals[0].arrays()
                return Gaussian(torch.from_numpy(mean), None if log_var is None else torch.from_numpy(log_var))
        return Gaussian.cat([gaussians for _, gaussians in self.blocks()])

    @property
    def ids(self) -> list[str]:
        """In order."""
        return [record.id for record in self.records()]

    def check(self) -> None:
        """Read everything and compare with the checksums; an InputError names what is damaged."""
        for name in self.parts:
            read_journal(self.folder / name).check()


@dataclass(frozen=True)
class Embeddings:
    """What `embed` made. `sides` has "images", "captions" or both.

    run, fingerprint   the model's folder and what it was then
    roots              folders the pictures lie below
    complete           False while shards are still at work
    about              the manifest
    """

    folder: Path
    run: Path
    fingerprint: str
    similarity: str
    roots: tuple[Path, ...]
    sides: dict[Side, Embedded] = field(default_factory=dict)
    complete: bool = True
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Embeddings:
        """The embeddings in a folder; an InputError says what is missing or damaged."""
        root = Path(folder)
        said = read_manifest(root)
        try:
            sides = {side: _side(root, side, facts) for side, facts in said["sides"].items()}
            found = cls(
                root,
                Path(said["run"]),
                str(said["fingerprint"]),
                str(said["similarity"]),
                tuple(Path(one) for one in said["roots"]),
                sides,
                bool(sides),
                said,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"is damaged ({error!r}); embed again into another folder", path=root / MANIFEST) from None
        if not found.complete:
            raise InputError("is not finished; run the same `halation embed` again, it goes on where it was", path=root)
        return found

    @property
    def corrupt(self) -> list[tuple[str, str]]:
        """(id, why) of what could not be read."""
        return [lost for side in self.sides.values() for lost in side.corrupt]

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(one):,} {side}" for side, one in self.sides.items()) or "not finished"
        return f"Embeddings({str(self.folder)!r}: {counts})"


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an embeddings folder."""
    if not folder.is_dir():
        raise InputError("does not exist", path=folder, remedy="make it with `halation embed`")
    if not (folder / MANIFEST).is_file():
        raise InputError(f"holds no {MANIFEST}; it is no folder that halation embed made", path=folder)
    said = read_json(folder / MANIFEST)
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        version = said.get("format") if isinstance(said, dict) else None
        raise InputError(
            f'says "format": {version!r}, this halation reads {FORMAT!r}; embed again with this version',
            path=folder / MANIFEST,
        )
    return said


def parts_of(folder: Path) -> list[Journal]:
    """All parts of a side, whoever wrote them."""
    return [read_journal(path) for path in sorted(folder.glob("part-*")) if path.is_dir()]


def _side(root: Path, side: Side, facts: dict[str, Any]) -> Embedded:
    listing = root / side / str(facts["listing"])
    if not listing.is_file():
        raise InputError("is missing; run the same `halation embed` again, it writes it anew", path=listing)
    if sha256_of(listing) != facts["sha256"]:
        raise InputError("is damaged (its sha256 differs); run the same `halation embed` again", path=listing)
    for part in facts["parts"]:
        if not (root / side / str(part) / JOURNAL).is_file():
            raise InputError(
                "is missing; run the same `halation embed` again: it computes it anew", path=root / side / str(part)
            )
    corrupt = tuple((str(one), str(why)) for one, why in facts["corrupt"])
    return Embedded(side, root / side, int(facts["items"]), listing, tuple(facts["parts"]), corrupt)


def _gathered(block: Sequence[Record], arrays: Sequence[Any]) -> Gaussian:
    at = np.array([(record.part, record.row) for record in block])
    first = arrays[at[0, 0]]
    mean = np.empty((len(block), first[0].shape[1]), dtype=np.float32)
    log_var = None if first[1] is None else np.empty_like(mean)
    for part in np.unique(at[:, 0]):
        here = at[:, 0] == part
        mean[here] = arrays[part][0][at[here, 1]]
        if log_var is not None:
            log_var[here] = arrays[part][1][at[here, 1]]
    return Gaussian(torch.from_numpy(mean), None if log_var is None else torch.from_numpy(log_var))
