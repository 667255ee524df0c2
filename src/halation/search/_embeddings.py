"""`Embeddings`: a folder of Gaussians and the items they belong to; it may be larger than memory."""

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
from halation.search._journal import JOURNAL, Journal, read_journal
from halation.search._source import PictureLocation
from halation.similarity import Gaussian

__all__ = ["FORMAT", "MANIFEST", "EmbeddedItem", "EmbeddedSide", "Embeddings", "read_manifest", "read_parts"]

FORMAT, MANIFEST = "halation embeddings 1", "manifest.json"
_AGAIN = "run the same `halation embed` again: it writes what is missing"


class EmbeddedItem(NamedTuple):
    """One line of a side's listing: an item, and the part and row of its Gaussian."""

    id: str
    captions: tuple[str, ...]
    location: PictureLocation | None
    part: int
    row: int


@dataclass(frozen=True)
class EmbeddedSide:
    """The embeddings of one side of a collection, in the order of its source."""

    side: Side
    folder: Path
    count: int
    listing: Path
    parts: tuple[str, ...]  # folders; an item names its part by its position here
    corrupt: tuple[tuple[str, str], ...] = ()  # (id, reason) of items that could not be read

    def __len__(self) -> int:
        return self.count

    def items(self) -> Iterator[EmbeddedItem]:
        """The items in order, read one line at a time."""
        with self.listing.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                location = None if row.get("place") is None else PictureLocation(*row["place"])
                yield EmbeddedItem(row["id"], tuple(row["captions"]), location, *row["at"])

    def blocks(self, size: int = 4096) -> Iterator[tuple[list[EmbeddedItem], Gaussian]]:
        """Items and their Gaussians, `size` at a time, read from the memory-mapped files."""
        journals = [read_journal(self.folder / name) for name in self.parts]
        arrays = [journal.arrays() if journal.rows else None for journal in journals]
        block: list[EmbeddedItem] = []
        for item in self.items():
            block.append(item)
            if len(block) == size:
                yield block, _rows_of(block, arrays)
                block = []
        if block:
            yield block, _rows_of(block, arrays)

    def gaussians(self) -> Gaussian:
        """All Gaussians: mapped from the file if they are in order there, else in memory."""
        journals = [read_journal(self.folder / name) for name in self.parts]
        if len(journals) == 1 and len(journals[0].rows) == self.count:
            in_order = all(item.row == row for row, item in enumerate(self.items()))
            if in_order:
                mean, log_var = journals[0].arrays()
                return Gaussian(torch.from_numpy(mean), None if log_var is None else torch.from_numpy(log_var))
        return Gaussian.cat([gaussians for _, gaussians in self.blocks()])

    @property
    def ids(self) -> list[str]:
        """All ids, in order."""
        return [item.id for item in self.items()]

    def check(self) -> None:
        """Compare all rows with their checksums; an InputError names the damaged part."""
        for name in self.parts:
            read_journal(self.folder / name).check()


@dataclass(frozen=True)
class Embeddings:
    """The folder that `embed` wrote. `sides` has "images", "captions" or both.

    run, fingerprint   the run's folder, and the fingerprint that its model had
    roots              folders that hold the pictures
    complete           False while other shards are still at work
    about              the manifest
    """

    folder: Path
    run: Path
    fingerprint: str
    similarity: str
    roots: tuple[Path, ...]
    sides: dict[Side, EmbeddedSide] = field(default_factory=dict)
    complete: bool = True
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Embeddings:
        """The embeddings in a folder; an InputError names a file that is missing or damaged."""
        root = Path(folder)
        manifest = read_manifest(root)
        try:
            sides = {side: _side(root, side, facts) for side, facts in manifest["sides"].items()}
            embeddings = cls(
                root,
                Path(manifest["run"]),
                str(manifest["fingerprint"]),
                str(manifest["similarity"]),
                tuple(map(Path, manifest["roots"])),
                sides,
                bool(sides),
                manifest,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"is damaged ({error!r})", path=root / MANIFEST, remedy="embed again into another folder"
            ) from None
        if not embeddings.complete:
            raise InputError(
                "is not finished", path=root, remedy="run the same `halation embed` again: it goes on where it stopped"
            )
        return embeddings

    @property
    def corrupt(self) -> list[tuple[str, str]]:
        """(id, reason) of the items that could not be read."""
        return [failure for side in self.sides.values() for failure in side.corrupt]

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(embedded):,} {side}" for side, embedded in self.sides.items()) or "not finished"
        return f"Embeddings({str(self.folder)!r}: {counts})"


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an embeddings folder."""
    if not folder.is_dir():
        raise InputError("does not exist", path=folder, remedy="make it with `halation embed`")
    if not (folder / MANIFEST).is_file():
        raise InputError(f"holds no {MANIFEST}: it is not a folder that `halation embed` made", path=folder)
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        version = manifest.get("format") if isinstance(manifest, dict) else None
        raise InputError(
            f'says "format": {version!r}, this halation reads {FORMAT!r}',
            path=folder / MANIFEST,
            remedy="embed again with this version",
        )
    return manifest


def read_parts(folder: Path) -> list[Journal]:
    """The journals of all parts of a side."""
    return [read_journal(path) for path in sorted(folder.glob("part-*")) if path.is_dir()]


def _side(root: Path, side: Side, facts: dict[str, Any]) -> EmbeddedSide:
    listing = root / side / str(facts["listing"])
    if not listing.is_file():
        raise InputError("is missing", path=listing, remedy=_AGAIN)
    if sha256_of(listing) != facts["sha256"]:
        raise InputError("is damaged (its sha256 differs)", path=listing, remedy=_AGAIN)
    for part in facts["parts"]:
        if not (root / side / str(part) / JOURNAL).is_file():
            raise InputError("is missing", path=root / side / str(part), remedy=_AGAIN)
    corrupt = tuple((str(name), str(why)) for name, why in facts["corrupt"])
    return EmbeddedSide(side, root / side, int(facts["items"]), listing, tuple(facts["parts"]), corrupt)


def _rows_of(block: Sequence[EmbeddedItem], arrays: Sequence[Any]) -> Gaussian:
    """The Gaussians of some items, read from the arrays (mean, log_var) of their parts."""
    parts, rows = np.array([(item.part, item.row) for item in block]).T
    first = arrays[parts[0]]
    mean = np.empty((len(block), first[0].shape[1]), dtype=np.float32)
    log_var = None if first[1] is None else np.empty_like(mean)
    for part in np.unique(parts):
        of_part = parts == part
        mean[of_part] = arrays[part][0][rows[of_part]]
        if log_var is not None:
            log_var[of_part] = arrays[part][1][rows[of_part]]
    return Gaussian(torch.from_numpy(mean), None if log_var is None else torch.from_numpy(log_var))
