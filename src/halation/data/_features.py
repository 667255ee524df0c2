"""`FeatureStore`: the features of images by a frozen backbone, as rows of files that may be larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from halation._arrays import Array, IntArray, as_indices
from halation._errors import InputError
from halation.data._inputs import Features
from halation.data._origin import FeatureOrigin
from halation.data._projection import Projection

__all__ = ["FeatureArray", "FeatureStore"]

MEMORY = 1 << 30
"""Arrays of at most this many bytes are held in memory."""


@dataclass(frozen=True, eq=False)
class FeatureArray:
    """Rows of one array: in memory, memory-mapped or in HDF5; read as float32, times `scale` where there is one."""

    array: Any  # (n, …) ndarray, memmap or h5py dataset: float16, float32, float64, int8
    scale: Tensor | None = None  # broadcasts with a row
    index: IntArray | None = None  # which rows of the array these are; None = all
    memory: int = MEMORY

    def __len__(self) -> int:
        return len(self.array) if self.index is None else len(self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape[1:])

    @property
    def n_bytes(self) -> int:
        return len(self) * int(np.prod(self.shape)) * int(self.array.dtype.itemsize)

    def take(self, index: IntArray) -> FeatureArray:
        return replace(self, index=index if self.index is None else self.index[index])

    def read(self, index: IntArray) -> Tensor:
        """(B, …) float32, a copy."""
        if self.n_bytes <= self.memory:
            rows = self._held.index_select(0, torch.from_numpy(index)).float()
        else:
            rows = torch.from_numpy(self._gathered(index)).float()
        return rows if self.scale is None else rows.mul_(self.scale)

    @cached_property
    def _held(self) -> Tensor:
        return torch.from_numpy(self._gathered(np.arange(len(self))))

    def _gathered(self, index: IntArray) -> Any:
        wanted = index if self.index is None else self.index[index]
        # in the order of the file, each row once: fast on disks, and h5py requires it
        ordered, back = np.unique(wanted, return_inverse=True)
        whole = len(ordered) == len(self.array)
        rows = np.asarray(self.array[:] if whole else self.array[ordered])
        if len(ordered) == len(wanted) and (back[1:] > back[:-1]).all():
            native = rows.dtype.newbyteorder("=")
            return np.array(rows, dtype=native)
        return rows[back].astype(rows.dtype.newbyteorder("="), copy=False)


class FeatureStore:
    """Features of images: `pooled` (n, d), `local` (n, cells, d'), or both, with the images' names where known.

    `rows(index)` gives a batch as float32 tensors. With cells only, the pooled vector is their mean. Arrays of at most
    `FeatureArray.memory` bytes are loaded on their first use; others are read from the file. `origin` records the
    backbone and the rest that made them, as far as known.

    >>> store = FeatureStore(FeatureArray(np.eye(3, dtype=np.float16)), names=["a.jpg", "b.jpg", "c.jpg"])
    >>> store.take([2, 0]).rows([0]).pooled
    tensor([[0., 0., 1.]])
    """

    def __init__(
        self,
        pooled: FeatureArray | None = None,
        local: FeatureArray | None = None,
        *,
        names: Sequence[str] | None = None,
        source: str = "features",
        corrupt: Sequence[str] = (),
        projection: Projection | None = None,
        origin: FeatureOrigin | None = None,
    ) -> None:
        self.pooled, self.local = pooled, local
        self.names = None if names is None else tuple(names)
        self.source, self.corrupt = source, tuple(corrupt)
        self.projection = projection  # of a backbone's cells to these, where they were made smaller
        self.origin = origin or FeatureOrigin()
        self._check()

    def _check(self) -> None:
        parts = [rows for rows in (self.pooled, self.local) if rows is not None]
        if not parts:
            raise InputError("holds neither pooled nor local features", path=self.source)
        for rows, dims, what in ((self.pooled, 1, "pooled (n, d)"), (self.local, 2, "local (n, cells, d)")):
            if rows is None:
                continue
            if len(rows.shape) != dims or rows.array.dtype.kind not in "fiu":
                shape = (len(rows), *rows.shape)
                raise InputError(f": {what} features must be numbers, not {rows.array.dtype} {shape}", path=self.source)
        counts = {len(rows) for rows in parts}
        if len(counts) > 1:
            problem = f": {len(parts[0])} pooled but {len(parts[1])} local rows"
            raise InputError(problem, path=self.source, remedy="make them anew")
        if self.names is not None and len(self.names) != len(self):
            problem = f": {len(self)} rows of features but {len(self.names)} names in images.txt"
            remedy = "give one name for each row, in the order of the rows"
            raise InputError(problem, path=self.source, remedy=remedy)

    def __len__(self) -> int:
        rows = self.pooled if self.pooled is not None else self.local
        assert rows is not None
        return len(rows)

    @property
    def pooled_dim(self) -> int:
        rows = self.pooled if self.pooled is not None else self.local
        assert rows is not None
        return int(rows.shape[-1])

    @property
    def local_dim(self) -> int:
        """0 where there are no cells."""
        return 0 if self.local is None else int(self.local.shape[-1])

    @property
    def cells(self) -> int:
        """How many cells an image has; 0 where there are none."""
        return 0 if self.local is None else int(self.local.shape[0])

    def rows(self, index: Array) -> Features:
        """The features of some images as float32: pooled (B, d), local (B, cells, d') or None."""
        wanted = as_indices(index, len(self), "index")
        local = None if self.local is None else self.local.read(wanted)
        if self.pooled is not None:
            return Features(self.pooled.read(wanted), local)
        assert local is not None
        return Features(local.mean(dim=1), local)

    def take(self, index: Array) -> FeatureStore:
        """The store of some rows, in the given order."""
        wanted = as_indices(index, len(self), "index")
        return FeatureStore(
            None if self.pooled is None else self.pooled.take(wanted),
            None if self.local is None else self.local.take(wanted),
            names=None if self.names is None else [self.names[row] for row in wanted],
            source=self.source,
            corrupt=self.corrupt,
            projection=self.projection,
            origin=self.origin,
        )

    def pooled_only(self) -> FeatureStore:
        """The store without its cells, for a model that does not use them."""
        if self.pooled is None:
            raise InputError("holds local features only", path=self.source)
        origin = self.origin.without_cells()
        return FeatureStore(self.pooled, names=self.names, source=self.source, corrupt=self.corrupt, origin=origin)

    def __repr__(self) -> str:
        cells = f", {self.cells} cells of {self.local_dim}" if self.local is not None else ""
        return f"FeatureStore({len(self):,} images, pooled {self.pooled_dim}{cells}, from {self.source})"
