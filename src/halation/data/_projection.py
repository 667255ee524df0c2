"""Projection of cells to their principal components: the linear map, stored for new pictures, and its fit."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from halation._arrays import IntArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation._tensors import load_tensors, save_tensors

if TYPE_CHECKING:
    from halation.data._features import FeatureArray

__all__ = ["Projection", "blocks", "principal"]

_LARGEST = 127  # of an int8
_NAMES = ("mean", "components", "scale")
_PICTURES = 64  # at a time: 32 MB of 49 cells with 1,280 numbers, as float64


@dataclass(frozen=True, eq=False)
class Projection:
    """y = components · (x − mean), in steps of `scale` where it was stored as int8: cells (…, d) → (…, k).

    Principal components of a backbone's cells, as `…_params.npz` beside stored features has them.

    >>> Projection(torch.ones(2), torch.tensor([[1.0, 0.0]]), torch.tensor([0.5]))(torch.tensor([[1.9, 5.0]]))
    tensor([[1.]])
    """

    FILE: ClassVar[str] = "projection.safetensors"  # beside the features, and in a run that was trained on them

    mean: Tensor  # (d,)
    components: Tensor  # (k, d)
    scale: Tensor | None = None  # (k,)

    @cached_property
    def digest(self) -> str:
        """The sha256 of its numbers: cells with the same digest are comparable."""
        digest = hashlib.sha256()
        for name in _NAMES:
            value = getattr(self, name)
            if value is not None:
                plain = value.detach().cpu().float().contiguous().numpy().astype("<f4")
                digest.update(f"{name} {plain.shape}".encode() + plain.tobytes())
        return digest.hexdigest()

    @property
    def dims(self) -> tuple[int, int]:
        """(input, output) dimensions of a cell."""
        return int(self.components.shape[1]), int(self.components.shape[0])

    def __call__(self, cells: Tensor) -> Tensor:
        y = (cells - self.mean.to(cells)) @ self.components.to(cells).T
        if self.scale is None:
            return y
        scale = self.scale.to(cells)
        return (y / scale).round().clamp(-_LARGEST, _LARGEST) * scale

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Projection | None:
        """The projection of a `…_params.npz` with "mean", "components" and perhaps "scale"; None if it has none."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                names = set(archive.files)
                arrays = {name: torch.from_numpy(archive[name].astype(np.float32)) for name in _NAMES if name in names}
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            problem = f"is not a readable archive of arrays ({error})"
            raise InputError(problem, path=path, remedy="was it written completely?") from None
        return cls(**arrays) if {"mean", "components"} <= names else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as safetensors."""
        save_tensors(path, {name: value for name in _NAMES if (value := getattr(self, name)) is not None})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Projection:
        """Read a file of `save`."""
        tensors = load_tensors(path)
        if not {"mean", "components"} <= set(tensors) <= set(_NAMES):
            raise InputError("is not a projection of features", path=path, remedy="was it edited?")
        return cls(**tensors)


def principal(local: FeatureArray, rows: IntArray, k: int, progress: Progress = silent) -> tuple[Projection, float]:
    """The k principal components of the cells of some pictures, and the share of their variance that these keep.

    local (n, cells, d); rows: which pictures. The covariance (d, d) is summed block by block in float64 about a mean
    that is taken first, so memory does not grow with the pictures; blocks are of a fixed size and each component
    points to where its largest entry is positive, so the same pictures give the same numbers.
    """
    cells, d = local.shape
    n = len(rows) * cells
    if not 0 < k <= min(d, n - 1):
        raise InputError(
            f"cells of {k} dimensions cannot be fitted on {len(rows):,} pictures with {cells} cells of {d} numbers",
            remedy=f"take 1 to {max(1, min(d, n - 1))}, or give more pictures",
        )
    total = torch.zeros(d, dtype=torch.float64)
    for block in blocks(rows, "mean of the cells", progress):
        total += _flat(local, block).sum(0)
    mean = total / n
    covariance = torch.zeros(d, d, dtype=torch.float64)
    for block in blocks(rows, "principal components", progress):
        centred = _flat(local, block) - mean
        covariance.addmm_(centred.T, centred)
    values, vectors = torch.linalg.eigh(covariance / (n - 1))  # ascending
    components = vectors.T.flip(0)[:k]
    largest = components.gather(1, components.abs().argmax(1, keepdim=True))
    share = float(values.flip(0)[:k].sum() / values.sum()) if values.sum() > 0 else 1.0
    return Projection(mean.float(), (components * largest.sign()).float()), share


def _flat(local: FeatureArray, rows: IntArray) -> Tensor:
    return local.read(rows).double().flatten(0, 1)  # (B · cells, d)


def blocks(rows: IntArray, what: str, progress: Progress) -> Iterator[IntArray]:
    """Row numbers in blocks of a fixed size, so that sums are the same each time."""
    progress(what, 0, len(rows))
    for start in range(0, len(rows), _PICTURES):
        yield rows[start : start + _PICTURES]
        progress(what, min(start + _PICTURES, len(rows)), len(rows))
