"""Features while they are computed: rows on the disk, and a journal of the pictures they are of."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halation._errors import InputError
from halation._files import read_json, read_npy, write_text
from halation.data._origin import FeatureOrigin

__all__ = ["ABOUT", "FeatureJournal"]

ABOUT, _JOURNAL = "about.json", "journal.jsonl"


class FeatureJournal:
    """A folder to which rows are added block by block.

    about.json      the origin of the features, and the shapes of a row
    pooled.npy, local.npy   rows in the order in which they were computed
    journal.jsonl   a line for each block that is on the disk: its pictures with their sizes, and those that could not
                    be read. Rows that it does not list are cut off

    The journal knows pictures by their names, so it serves any later list of pictures.
    """

    def __init__(self, folder: Path, origin: FeatureOrigin) -> None:
        self.folder = folder
        self.row_of: dict[str, int] = {}
        self.size_of: dict[str, int] = {}
        self.corrupt: dict[str, str] = {}  # name → why it could not be read
        self._shapes: dict[str, list[int]] = {}
        self._n_rows = 0
        self.id = uuid.uuid4().hex
        if (folder / ABOUT).is_file():
            self._resume(origin)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.iterdir():  # of a process that ended before it had written what it computes
                path.unlink()
        self._origin = origin

    def _resume(self, origin: FeatureOrigin) -> None:
        about = read_json(self.folder / ABOUT)
        reason = FeatureOrigin.from_dict(about).differs_from(origin)
        if reason is not None:
            problem = f"holds unfinished features of another origin: {reason}"
            raise InputError(problem, path=self.folder, remedy="name another folder")
        self._shapes, self.id = about["shapes"], about["id"]
        journal = self.folder / _JOURNAL
        content = journal.read_bytes() if journal.is_file() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):  # cut short
            os.truncate(journal, whole)
        for line in content[:whole].splitlines():
            self._note(json.loads(line))

    def _note(self, block: Mapping[str, Any]) -> None:
        for name, size in block["pictures"]:
            self.corrupt.pop(name, None)
            self.row_of[name], self.size_of[name] = self._n_rows, size
            self._n_rows += 1
        for name, size, reason in block["corrupt"]:
            self.row_of.pop(name, None)
            self.corrupt[name], self.size_of[name] = reason, size

    def has(self, name: str, size: int) -> bool:
        """Whether this picture was processed when it had this size."""
        return self.size_of.get(name) == size

    def array(self, kind: str) -> Any:
        """The rows of "pooled" or "local", memory-mapped; None where there are none."""
        path = self.folder / f"{kind}.npy"
        return read_npy(path) if kind in self._shapes else None

    @property
    def in_order(self) -> bool:
        """Whether every row is the latest of its picture, in the order of `row_of`."""
        return list(self.row_of.values()) == list(range(self._n_rows))

    def add(
        self,
        pictures: Sequence[tuple[str, int]],
        arrays: Mapping[str, Any] | None,
        corrupt: Sequence[tuple[str, int, str]],
    ) -> None:
        """Add one block: first its rows, then its line. `arrays` is None if none of its pictures could be read."""
        if arrays is not None:
            if not self._shapes:
                self._begin({kind: list(values.shape[1:]) for kind, values in arrays.items()})
            for kind, values in arrays.items():
                self._append(kind, values)
        elif not (self.folder / ABOUT).is_file():
            self._begin({})
        block = {"pictures": list(pictures), "corrupt": list(corrupt)}
        with (self.folder / _JOURNAL).open("ab") as journal:
            journal.write(json.dumps(block).encode() + b"\n")
            journal.flush()
            os.fsync(journal.fileno())
        self._note(block)

    def _begin(self, shapes: dict[str, list[int]]) -> None:
        self._shapes = shapes
        about = {**self._origin.as_dict(), "shapes": shapes, "id": self.id}
        write_text(self.folder / ABOUT, json.dumps(about, indent=2) + "\n")

    def _append(self, kind: str, values: Any) -> None:
        path, shape = self.folder / f"{kind}.npy", self._shapes.get(kind)
        if list(values.shape[1:]) != shape:
            raise InputError(f": the backbone gave rows of {values.shape[1:]}, before of {shape}", path=path)
        # written, not mapped: a full disk raises an error, while a mapped page would kill the process
        with path.open("r+b" if path.exists() else "w+b") as file:
            _write_header(file, self._n_rows + len(values), shape)
            file.seek(self._n_rows * values[0].nbytes, os.SEEK_CUR)
            file.write(values.tobytes())
            file.truncate()
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> None:
        """Make the files of rows readable: cut them to the rows that the journal lists."""
        for kind, shape in self._shapes.items():
            with (self.folder / f"{kind}.npy").open("r+b") as file:
                _write_header(file, self._n_rows, shape)
                file.truncate(file.tell() + self._n_rows * 2 * int(np.prod(shape)))


def _write_header(file: Any, rows: int, shape: Sequence[int]) -> None:
    """The header of a float16 array; numpy leaves room in it, so that its length does not depend on the rows."""
    header = {"descr": "<f2", "fortran_order": False, "shape": (rows, *shape)}
    np.lib.format.write_array_header_1_0(file, header)
