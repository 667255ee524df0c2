"""Cells made smaller: principal components of some pictures' cells, and files of all pictures in those terms."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from halation._arrays import IntArray
from halation._errors import InputError
from halation._files import write_text
from halation._progress import Progress, silent
from halation._storage import publish_file
from halation.data._cache_files import check_same
from halation.data._feature_files import CORRUPT, LOCAL, META, NAMES, POOLED, open_features
from halation.data._features import Rows
from halation.data._projection import Projection

__all__ = ["Smaller", "principal"]

_PICTURES = 64  # at a time: 32 MB of 49 cells with 1,280 numbers, as float64
_WHOLE = "whole"


class Smaller:
    """A folder of features whose cells have `cells` numbers each; full size they lie in its folder `whole` meanwhile.

    meta.json says what is made and, last of all, that it is complete; then `whole` goes. Cut short, the same goes on.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], cells: int) -> None:
        self.folder, self.whole, self._cells = folder, folder / _WHOLE, cells
        self._meta: dict[str, Any] = {**identity, "cells": cells, "complete": False}
        if (folder / META).is_file():
            self._meta = check_same(folder, self._meta)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            strange = [path.name for path in folder.iterdir() if path.name[0] != "."]
            if strange:
                raise InputError(f"{folder} holds other files ({strange[0]}); name a new or empty folder")
            self._say()
        if self.complete:
            shutil.rmtree(self.whole, ignore_errors=True)  # of a run that ended here

    @property
    def complete(self) -> bool:
        return bool(self._meta["complete"])

    def finish(self, learn: Sequence[str], progress: Progress = silent) -> None:
        """Fit on the cells of the pictures called `learn`, write all cells in those terms, let the whole ones go."""
        store = open_features(self.whole, memory=0)
        assert store.local is not None and store.names is not None
        row_of = {name: row for row, name in enumerate(store.names)}
        rows = np.array(sorted(row_of[name] for name in learn if name in row_of), dtype=np.int64)
        projection, share = principal(store.local, rows, self._cells, progress)
        projection.save(self.folder / Projection.FILE)
        self._write(store.local, projection, progress)
        for name in (POOLED, NAMES, CORRUPT):
            with publish_file(self.folder / name) as temporary:
                shutil.copyfile(self.whole / name, temporary)
        shapes = {"pooled": [store.pooled_dim], "local": [store.cells, self._cells]}
        self._meta |= {"fitted_on": len(rows), "variance": share, "shapes": shapes, "complete": True}
        self._say()
        shutil.rmtree(self.whole)

    def _write(self, local: Rows, projection: Projection, progress: Progress) -> None:
        shape = (len(local), local.shape[0], self._cells)
        with publish_file(self.folder / LOCAL) as temporary:
            out = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float16, shape=shape)
            for rows in _blocks(np.arange(len(local)), "smaller cells", progress):
                out[rows[0] : rows[-1] + 1] = projection(local.read(rows)).half().numpy()
            out.flush()

    def _say(self) -> None:
        write_text(self.folder / META, json.dumps(self._meta, indent=2) + "\n")


def principal(local: Rows, rows: IntArray, k: int, progress: Progress = silent) -> tuple[Projection, float]:
    """The k principal components of the cells of some pictures, and the share of their variance that these keep.

    local (n, cells, d); rows: which pictures. The covariance (d, d) is summed block by block in float64 about a mean
    that is taken first, so memory does not grow with the pictures; blocks are of a fixed size and each component
    points to where its largest entry is positive, so the same pictures give the same numbers.
    """
    cells, d = local.shape
    n = len(rows) * cells
    if not 0 < k <= min(d, n - 1):
        raise InputError(
            f"cells of {k} dimensions cannot be fitted on {len(rows):,} pictures with {cells} cells of {d} numbers; "
            f"ask for 1 to {max(1, min(d, n - 1))}, or give more pictures"
        )
    total = torch.zeros(d, dtype=torch.float64)
    for block in _blocks(rows, "mean of the cells", progress):
        total += _flat(local, block).sum(0)
    mean = total / n
    covariance = torch.zeros(d, d, dtype=torch.float64)
    for block in _blocks(rows, "principal components", progress):
        centred = _flat(local, block) - mean
        covariance.addmm_(centred.T, centred)
    values, vectors = torch.linalg.eigh(covariance / (n - 1))  # ascending
    components = vectors.T.flip(0)[:k]
    largest = components.gather(1, components.abs().argmax(1, keepdim=True))
    share = float(values.flip(0)[:k].sum() / values.sum()) if values.sum() > 0 else 1.0
    return Projection(mean.float(), (components * largest.sign()).float()), share


def _flat(local: Rows, rows: IntArray) -> Tensor:
    return local.read(rows).double().flatten(0, 1)  # (B · cells, d)


def _blocks(rows: IntArray, what: str, progress: Progress) -> Iterator[IntArray]:
    progress(what, 0, len(rows))
    for start in range(0, len(rows), _PICTURES):
        yield rows[start : start + _PICTURES]
        progress(what, min(start + _PICTURES, len(rows)), len(rows))
