"""The embed journal: rows that grow batch by batch and survive a kill at any moment.

A part's folder holds `mean.f32` and `log_var.f32`, rows of float32 one after the other, and `journal.jsonl` with one
line per batch: the ids of its rows, and their sha256. The vectors are on disk before their line is, and a line counts
once it ends with a line feed. So nothing in the journal is lost or computed twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from halation._errors import InputError
from halation._storage import exclusive
from halation.similarity import Gaussian

__all__ = ["ARRAYS", "JOURNAL", "Batch", "Failure", "Journal", "JournalWriter", "read_journal"]

ARRAYS = ("mean.f32", "log_var.f32")
JOURNAL = "journal.jsonl"
_REMEDY = "delete this folder and embed again: the other parts are kept"

Failure = tuple[str, str, str]  # id, stamp, reason


@dataclass(frozen=True)
class Batch:
    """A line of the journal."""

    start: int
    count: int
    sha256: str


@dataclass
class Journal:
    """The contents of a part's folder."""

    folder: Path
    rows: list[tuple[str, str]] = field(default_factory=list)  # (id, stamp), in the order of the rows
    corrupt: dict[str, tuple[str, str]] = field(default_factory=dict)  # id → (stamp, why)
    missed: dict[str, tuple[str, str]] = field(
        default_factory=dict
    )  # the same, for items that the next run tries again
    batches: list[Batch] = field(default_factory=list)
    dim: int = 0
    points: bool = False
    length: int = 0  # bytes of the journal that count

    def arrays(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None]:
        """Mean and log-variance (n, d), memory-mapped; the second is None for points."""
        arrays = [self._array(name) for name in (ARRAYS[:1] if self.points else ARRAYS)]
        return arrays[0], arrays[1] if len(arrays) > 1 else None

    def check(self) -> None:
        """Read every row and compare with its checksum; a part without rows has no files, and nothing to compare."""
        if not self.rows:
            return
        arrays = [array for array in self.arrays() if array is not None]
        for batch in self.batches:
            actual = _sha256([array[batch.start : batch.start + batch.count] for array in arrays])
            if actual != batch.sha256:
                raise InputError(
                    f": rows {batch.start} to {batch.start + batch.count - 1} are damaged (their sha256 "
                    "differs from the journal's)",
                    path=self.folder,
                    remedy=_REMEDY,
                )

    def _array(self, name: str) -> npt.NDArray[np.float32]:
        path, shape = self.folder / name, (len(self.rows), self.dim)
        expected = shape[0] * shape[1] * 4
        size = path.stat().st_size if path.is_file() else -1
        if size < expected:
            problem = "is missing" if size < 0 else f"has {size} bytes, and the journal expects {expected}"
            raise InputError(f": {name} {problem}", path=self.folder, remedy=_REMEDY)
        return np.memmap(path, dtype="<f4", mode="c", shape=shape)  # torch wants it writable; no write reaches the file


def read_journal(folder: Path) -> Journal:
    """The journal of a part; a last line without a line feed does not count."""
    journal = Journal(folder)
    path = folder / JOURNAL
    if not path.is_file():
        return journal
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                _apply(journal, json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f": {JOURNAL} line {number} is damaged ({error!r})", path=folder, remedy=_REMEDY
                ) from None
            journal.length += len(line)
    return journal


def _apply(journal: Journal, line: Mapping[str, Any]) -> None:
    rows = [(str(name), str(stamp)) for name, stamp in line["rows"]]
    if rows:
        journal.dim, journal.points = int(line["dim"]), bool(line["points"])
        journal.batches.append(Batch(len(journal.rows), len(rows), str(line["sha256"])))
        journal.rows += rows
    journal.corrupt.update({str(name): (str(stamp), str(why)) for name, stamp, why in line["corrupt"]})
    journal.missed.update({str(name): (str(stamp), str(why)) for name, stamp, why in line.get("missed", ())})


class JournalWriter:
    """Adds batches to a part. Use it in a `with` block: the lock on the part ends with the block, or the process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._open_files = contextlib.ExitStack()  # and the lock

    def __enter__(self) -> JournalWriter:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._resume(self._open(JOURNAL))
        except BaseException:
            self.__exit__()
            raise
        return self

    def _resume(self, file: IO[bytes]) -> None:
        try:
            self._open_files.enter_context(exclusive(self.folder / JOURNAL, wait=False))
        except BlockingIOError:
            raise InputError(
                "is being written by another process", path=self.folder, remedy="wait for it, or stop it"
            ) from None
        self.journal = read_journal(self.folder)
        if self.journal.rows:
            self.journal.arrays()  # an InputError if a file is missing, before more is added
        file.truncate(self.journal.length)

    def __exit__(self, *problem: object) -> None:
        self._open_files.close()

    def add(
        self,
        rows: Sequence[tuple[str, str]],
        values: Gaussian | None,
        corrupt: Sequence[Failure],
        missed: Sequence[Failure] = (),
    ) -> None:
        """Add a batch: (id, stamp) of each row with its Gaussian, and failures, corrupt for good or missed this time.

        An item missed before for the same reason is not written again: a run may be repeated for ever.
        """
        line: dict[str, Any] = {"rows": list(rows), "corrupt": list(corrupt)}
        if new := [failure for failure in missed if self.journal.missed.get(failure[0]) != failure[1:]]:
            line["missed"] = new
        if not rows and not corrupt and not new:
            return
        if rows:
            assert values is not None and len(values) == len(rows)
            arrays = [x.numpy().astype("<f4", copy=False) for x in (values.mean, values.log_var) if x is not None]
            if self.journal.rows and (self.journal.dim, self.journal.points) != (values.dim, values.is_point):
                raise InputError("holds rows of another width; was the run's folder changed?", path=self.folder)
            for name, array in zip(ARRAYS, arrays, strict=False):
                self._append(name, len(self.journal.rows) * values.dim * 4, array.tobytes())
            line |= {"dim": values.dim, "points": values.is_point, "sha256": _sha256(arrays)}
        written = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        self._append(JOURNAL, self.journal.length, written)
        self.journal.length += len(written)
        _apply(self.journal, line)

    def _append(self, name: str, offset: int, content: bytes) -> None:
        file = self._files.get(name) or self._open(name)
        file.seek(offset)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())

    def _open(self, name: str) -> IO[bytes]:
        handle = os.open(self.folder / name, os.O_RDWR | os.O_CREAT, 0o666)  # neither truncated nor only appended to
        self._files[name] = self._open_files.enter_context(os.fdopen(handle, "r+b"))
        return self._files[name]


def _sha256(arrays: Sequence[npt.NDArray[np.float32]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
