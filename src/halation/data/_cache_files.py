"""The files of a feature cache while it grows: arrays, marks of what is done, and the step to a complete folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halation._errors import InputError
from halation._files import read_json, read_npy, write_text
from halation._storage import publish_file, sweep
from halation.data._feature_files import CORRUPT, LOCAL, META, NAMES, POOLED

__all__ = ["Cache", "check_same"]

_MARKS = "done.jsonl"
_PARTS = {"pooled": "pooled.part.npy", "local": "local.part.npy"}
_FINAL = {"pooled": POOLED, "local": LOCAL}
_MUST_AGREE = {
    "weights": "another backbone",
    "images": "other pictures",
    "source": "other pictures",
    "dtype": "another precision",
    "cells": "cells of another size",
}


class Cache:
    """A folder that fills block by block.

    `{pooled,local}.part.npy` have a row for every picture; a line of `done.jsonl` follows each block that is on disk;
    `meta.json` says what is computed and, last of all, that it is complete. Nothing is believed that is not marked.
    """

    def __init__(self, folder: Path, names: Sequence[str], identity: Mapping[str, Any], block: int) -> None:
        if len(set(names)) != len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise InputError(f"{twice} is listed twice; every picture needs its own name")
        self.folder, self._names = folder, list(names)
        self.complete = False
        self._block, self._done, self._corrupt = block, set[int](), dict[int, str]()
        self._meta: dict[str, Any] = {**identity, "block": block, "complete": False}
        if (folder / META).is_file():
            self._go_on(identity)
        else:
            self._begin()

    def _begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ours = {_MARKS, *_PARTS.values()}
        strange = [path.name for path in self.folder.iterdir() if path.name not in ours and path.name[0] != "."]
        if strange:
            raise InputError(f"{self.folder} holds other files ({strange[0]}); name a new or empty folder")
        for name in ours:  # of a run that ended before it had written anything to go by
            (self.folder / name).unlink(missing_ok=True)

    def _go_on(self, identity: Mapping[str, Any]) -> None:
        meta = check_same(self.folder, identity)
        self._meta, self._block, self.complete = meta, int(meta["block"]), bool(meta["complete"])
        marks = self.folder / _MARKS
        for line in marks.read_bytes().split(b"\n")[:-1] if marks.is_file() else []:  # behind the last \n: cut short
            mark = json.loads(line)
            self._done.add(int(mark["start"]))
            self._corrupt.update({int(row): why for row, why in mark["corrupt"].items()})
        if marks.is_file() and (text := marks.read_bytes()) and not text.endswith(b"\n"):
            os.truncate(marks, text.rfind(b"\n") + 1)

    @property
    def n_done(self) -> int:
        return sum(len(self._rows(start)) for start in self._done)

    def blocks_to_do(self) -> list[range]:
        """The rows of every block that is not marked."""
        starts = range(0, len(self._names), self._block)
        return [self._rows(start) for start in starts if start not in self._done]

    def _rows(self, start: int) -> range:
        return range(start, min(start + self._block, len(self._names)))

    def write(self, start: int, rows: Sequence[int], arrays: Mapping[str, Any] | None, corrupt: dict[int, str]) -> None:
        """One block: its rows, on disk, then its mark. `arrays` is None where no picture of it could be read."""
        if arrays is not None:
            if "shapes" not in self._meta:
                self._lay_out(arrays)
            for name, values in arrays.items():
                self._put(self.folder / _PARTS[name], rows, values)
        mark = json.dumps({"start": start, "corrupt": {str(row): why for row, why in corrupt.items()}})
        if not (self.folder / META).is_file():
            self._say()
        with (self.folder / _MARKS).open("ab") as marks:
            marks.write(mark.encode() + b"\n")
            marks.flush()
            os.fsync(marks.fileno())
        self._done.add(start)
        self._corrupt.update(corrupt)

    def _lay_out(self, arrays: Mapping[str, Any]) -> None:
        """Empty arrays of the right shape, then a meta.json that knows the shapes."""
        for name, values in arrays.items():
            shape = (len(self._names), *values.shape[1:])
            np.lib.format.open_memmap(self.folder / _PARTS[name], mode="w+", dtype=np.float16, shape=shape)
        self._meta["shapes"] = {name: list(values.shape[1:]) for name, values in arrays.items()}
        self._say()

    def _put(self, path: Path, rows: Sequence[int], values: Any) -> None:
        if list(values.shape[1:]) != list(self._meta["shapes"][path.name.split(".")[0]]):
            raise InputError(f"{path}: the backbone gave rows of {values.shape[1:]}, before of another shape")
        offset = int(read_npy(path).offset)  # type: ignore[attr-defined]  # a memmap
        # written, not mapped: a full disk is an error here, where a mapped page would kill the process
        with path.open("r+b") as file:
            for row, value in zip(rows, values, strict=True):
                file.seek(offset + row * value.nbytes)
                file.write(value.tobytes())
            file.flush()
            os.fsync(file.fileno())

    def _say(self) -> None:
        write_text(self.folder / META, json.dumps(self._meta, indent=2) + "\n")

    def finish(self) -> None:
        """From parts to the finished folder; cut short, the same call does the rest."""
        kept = [row for row in range(len(self._names)) if row not in self._corrupt]
        if not kept:
            first = next(iter(self._corrupt.values()))
            raise InputError(f"{self.folder}: not one of {len(self._names)} pictures could be read ({first})")
        for name in self._meta["shapes"]:
            self._settle(self.folder / _PARTS[name], self.folder / _FINAL[name], kept)
        write_text(self.folder / NAMES, "".join(f"{self._names[row]}\n" for row in kept))
        lost = sorted(self._corrupt.items())
        write_text(
            self.folder / CORRUPT, "".join(f"{self._names[row]}\t{' '.join(why.split())}\n" for row, why in lost)
        )
        self._meta["complete"] = True
        self._say()
        self.complete = True
        for name in (*_PARTS.values(), _MARKS):
            (self.folder / name).unlink(missing_ok=True)
        sweep(self.folder)

    def _settle(self, part: Path, final: Path, kept: Sequence[int]) -> None:
        if not part.is_file():
            return  # settled by a run that ended here
        if len(kept) == len(self._names):
            part.replace(final)
            return
        rows = read_npy(part)
        with publish_file(final) as temporary:
            whole = np.lib.format.open_memmap(
                temporary, mode="w+", dtype=np.float16, shape=(len(kept), *rows.shape[1:])
            )
            for start in range(0, len(kept), 1024):
                whole[start : start + 1024] = rows[kept[start : start + 1024]]
            whole.flush()


def check_same(folder: Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    """What meta.json says of features that were begun; an InputError where they are not those of `identity`."""
    meta = read_json(folder / META)
    if not isinstance(meta, dict):
        raise InputError(f"{folder / META} is damaged; name another folder")
    for key, what in _MUST_AGREE.items():
        if meta.get(key) != identity.get(key):
            raise InputError(f"{folder} holds features of {what} ({META}: {key}); name another folder")
    return meta
