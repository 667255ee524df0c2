"""A folder of features that is always complete and can grow: its rows, and the step to its next version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import halation
from halation._errors import InputError
from halation._files import read_json, read_lines
from halation._progress import Progress, silent
from halation._storage import DATA, exclusive, replace_version, sweep
from halation.data._feature_files import CORRUPT, LOCAL, META, NAMES, PARTIAL, POOLED, open_features
from halation.data._feature_journal import ABOUT, FeatureJournal
from halation.data._features import FeatureArray, FeatureStore
from halation.data._origin import NOT_PROJECTED, FeatureOrigin
from halation.data._projection import Projection, blocks, principal

__all__ = ["FeatureFolder"]


@dataclass(frozen=True)
class _Part:
    """Some rows of the next version, and the pictures they are of."""

    names: Sequence[str]
    sizes: Sequence[int | None]
    pooled: FeatureArray
    local: FeatureArray | None


class FeatureFolder:
    """A folder of features of one origin.

    meta.json   the origin of the features, and the name of the data folder
    data-…/     pooled.npy, local.npy, images.txt, corrupt.txt, projection.safetensors
    partial/    rows computed since then, with their journal (`FeatureJournal`)

    origin      of the features you want, without their projection
    cells       dimensions of a cell, by a projection that is fitted after the last picture
    projection  a given one for the cells; a folder that grows keeps the one it has
    """

    def __init__(self, folder: Path, origin: FeatureOrigin, cells: int | None, projection: Projection | None) -> None:
        self.folder, self._cells = folder, cells
        self.store: FeatureStore | None = None
        self._meta: Any = {}
        if (folder / META).is_file():
            self._meta = read_json(folder / META)
            self._check_finished()
            self.store = open_features(folder, memory=0)
            self._check_same(origin, projection)
            projection = self.store.projection
            self._drop_published()
        elif folder.is_dir() and (strange := self._strange()):
            raise InputError(f"holds other files ({strange[0]})", path=folder, remedy="name a new or empty folder")
        self.projection = projection
        digest = NOT_PROJECTED if projection is None else projection.digest
        self.origin = replace(origin, projection=digest)
        self._sizes, self._corrupt = self._read_sizes()

    def _strange(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if not path.name.startswith((".", PARTIAL, DATA)))

    def _drop_published(self) -> None:
        """Remove rows that a killed process had published already: they may share a file with the published ones."""
        about = self.folder / PARTIAL / ABOUT
        if about.is_file() and read_json(about)["id"] == self._meta.get("journal"):
            shutil.rmtree(self.folder / PARTIAL)

    def _check_finished(self) -> None:
        if not isinstance(self._meta, dict) or self._meta.get("complete") is not True:
            problem = "was begun by an older version"
            raise InputError(problem, path=self.folder, remedy="delete it and run the same again")

    def _check_same(self, origin: FeatureOrigin, projection: Projection | None) -> None:
        assert self.store is not None
        reason = self.store.origin.without_cells().differs_from(origin)
        if reason is None and self._meta.get("cells") != self._cells and projection is None:
            reason = "its cells have another size"
        if reason is None and projection is not None:
            reason = self.store.origin.differs_from(replace(origin, projection=projection.digest))
        if reason is not None:
            raise InputError(f"holds other features: {reason}", path=self.folder, remedy="name another folder")

    def _read_sizes(self) -> tuple[dict[str, int | None], dict[str, tuple[str, int | None]]]:
        """The size of each picture that has a row; for the others, the reason why not and their size."""
        if self.store is None:
            return {}, {}
        data = self.folder / self._meta.get("data", ".")
        rows = [line.split("\t") for _, line in read_lines(data / NAMES)]
        lost = [line.split("\t") for _, line in read_lines(data / CORRUPT)]
        return (
            {row[0].strip(): int(row[1]) if len(row) > 1 else None for row in rows},
            {row[0].strip(): (row[1], int(row[2]) if len(row) > 2 else None) for row in lost},
        )

    def has(self, name: str, path: Path) -> bool:
        """Whether the published features know this picture as it is now."""
        known = name in self._sizes or name in self._corrupt
        size = self._sizes[name] if name in self._sizes else self._corrupt.get(name, ("", None))[1]
        if size is not None or not known or not path.is_file():
            return known and size == size_of(path)
        return path.stat().st_mtime < (self.folder / META).stat().st_mtime  # older versions did not keep sizes

    def knows_none_of(self, names: Sequence[str]) -> bool:
        """Whether there are features, but of none of these pictures."""
        return self.store is not None and not any(name in self._sizes or name in self._corrupt for name in names)

    @contextmanager
    def journal(self) -> Iterator[FeatureJournal]:
        """The rows that are not published yet; one process at a time may add to them."""
        partial = self.folder / PARTIAL
        partial.mkdir(parents=True, exist_ok=True)
        try:
            with exclusive(partial, wait=False):
                yield FeatureJournal(partial, self.origin)
        except BlockingIOError:
            problem = "is being filled by another process"
            raise InputError(problem, path=self.folder, remedy="wait for it to end") from None

    def publish(self, journal: FeatureJournal, fit_on: Sequence[str], progress: Progress = silent) -> None:
        """Publish the folder's next version: the old features, with those of the journal added or in their place."""
        journal.finish()
        parts = [part for part in (self._old_rows(journal), _new_rows(journal)) if part is not None]
        corrupt: dict[str, tuple[str, int | None]] = {
            name: kept for name, kept in self._corrupt.items() if name not in journal.size_of
        }
        corrupt |= {name: (reason, journal.size_of[name]) for name, reason in journal.corrupt.items()}
        if not parts:
            first = next(iter(corrupt.values()))[0]
            raise InputError(f": not one of {len(corrupt)} pictures could be read ({first})", path=self.folder)
        fitted, about = self._fitted(journal, fit_on, progress)
        projection = self.projection or fitted
        with replace_version(self.folder, META) as version:
            shapes = self._write_arrays(version.folder, parts, fitted, journal, progress)
            _write_names(version.folder, parts, corrupt)
            if projection is not None:
                projection.save(version.folder / Projection.FILE)
            version.head = {
                **self.origin.as_dict(),
                "projection": NOT_PROJECTED if projection is None else projection.digest,
                **about,
                "images": sum(len(part.names) for part in parts),
                "shapes": shapes,
                "journal": journal.id,
                "halation": halation.__version__,
                "complete": True,
            }
        self._clear()

    def _fitted(
        self, journal: FeatureJournal, fit_on: Sequence[str], progress: Progress
    ) -> tuple[Projection | None, dict[str, Any]]:
        """The projection, if it is to be fitted, and the entries of meta.json about the cells."""
        if self.projection is not None:
            kept = {key: self._meta[key] for key in ("fitted_on", "variance") if key in self._meta}
            return None, {"cells": self.projection.dims[1], **kept}
        if self._cells is None:
            return None, {}
        rows = np.array(sorted(journal.row_of[name] for name in fit_on if name in journal.row_of), dtype=np.int64)
        fitted, share = principal(FeatureArray(journal.array("local"), memory=0), rows, self._cells, progress)
        return fitted, {"cells": self._cells, "fitted_on": len(rows), "variance": share}

    def _old_rows(self, journal: FeatureJournal) -> _Part | None:
        if self.store is None:
            return None
        assert self.store.names is not None and self.store.pooled is not None
        kept = [row for row, name in enumerate(self.store.names) if name not in journal.size_of]
        if not kept:
            return None
        store = self.store.take(kept)
        assert store.names is not None and store.pooled is not None
        return _Part(store.names, [self._sizes.get(name) for name in store.names], store.pooled, store.local)

    def _write_arrays(
        self,
        folder: Path,
        parts: Sequence[_Part],
        projection: Projection | None,
        journal: FeatureJournal,
        progress: Progress,
    ) -> dict[str, list[int]]:
        shapes = {}
        alone = len(parts) == 1 and self.store is None and journal.in_order
        for kind, file in (("pooled", POOLED), ("local", LOCAL)):
            arrays = [getattr(part, kind) for part in parts]
            if any(array is None for array in arrays):
                continue
            shape = list(arrays[0].shape)
            if kind == "local" and projection is not None:
                shape = [shape[0], projection.dims[1]]
            elif alone:
                _link(journal.folder / file, folder / file)
                shapes[kind] = shape
                continue
            _write_rows(folder / file, arrays, shape, projection if kind == "local" else None, progress)
            shapes[kind] = shape
        return shapes

    def _clear(self) -> None:
        """Remove rows that are published, and files that older versions kept beside meta.json."""
        shutil.rmtree(self.folder / PARTIAL, ignore_errors=True)
        for name in (POOLED, LOCAL, NAMES, CORRUPT, Projection.FILE):
            (self.folder / name).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove files of killed processes beside complete features."""
        shutil.rmtree(self.folder / PARTIAL, ignore_errors=True)
        sweep(self.folder)


def size_of(path: Path) -> int:
    """The bytes of a file; −1 where there is none."""
    return path.stat().st_size if path.is_file() else -1


def _new_rows(journal: FeatureJournal) -> _Part | None:
    if not journal.row_of:
        return None
    rows = np.fromiter(journal.row_of.values(), np.int64)
    local = journal.array("local")
    return _Part(
        list(journal.row_of),
        [journal.size_of[name] for name in journal.row_of],
        FeatureArray(journal.array("pooled"), index=rows, memory=0),
        None if local is None else FeatureArray(local, index=rows, memory=0),
    )


def _write_rows(
    path: Path, arrays: Sequence[FeatureArray], shape: Sequence[int], projection: Projection | None, progress: Progress
) -> None:
    total = sum(len(array) for array in arrays)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(total, *shape))
    start = 0
    for array in arrays:
        for rows in blocks(np.arange(len(array)), "writing features", progress):
            values = array.read(rows)
            out[start + rows[0] : start + rows[-1] + 1] = (values if projection is None else projection(values)).half()
        start += len(array)
    out.flush()


def _write_names(folder: Path, parts: Sequence[_Part], corrupt: Mapping[str, tuple[str, int | None]]) -> None:
    rows = [row for part in parts for row in zip(part.names, part.sizes, strict=True)]
    lost = [(name, " ".join(reason.split()), size) for name, (reason, size) in corrupt.items()]
    for file, lines in ((NAMES, rows), (CORRUPT, lost)):
        text = "".join("\t".join(str(value) for value in line if value is not None) + "\n" for line in lines)
        (folder / file).write_text(text, encoding="utf-8")


def _link(source: Path, target: Path) -> None:
    """The same file under a second name, or a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
