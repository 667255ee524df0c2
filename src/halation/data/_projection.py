"""A linear map that made stored cells smaller, kept so that new pictures can be brought to the same numbers."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from halation._errors import InputError
from halation._tensors import load_tensors, save_tensors

__all__ = ["Projection"]

_LARGEST = 127  # of an int8


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
        """The sha256 of its numbers: cells are comparable where it is the same."""
        digest = hashlib.sha256()
        for name in _NAMES:
            value = getattr(self, name)
            if value is not None:
                plain = value.detach().cpu().float().contiguous().numpy().astype("<f4")
                digest.update(f"{name} {plain.shape}".encode() + plain.tobytes())
        return digest.hexdigest()

    @property
    def dims(self) -> tuple[int, int]:
        """Of what comes in and of what goes out."""
        return int(self.components.shape[1]), int(self.components.shape[0])

    def __call__(self, cells: Tensor) -> Tensor:
        y = (cells - self.mean.to(cells)) @ self.components.to(cells).T
        if self.scale is None:
            return y
        scale = self.scale.to(cells)
        return (y / scale).round().clamp(-_LARGEST, _LARGEST) * scale

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Projection | None:
        """Of a `…_params.npz` with "mean", "components" and perhaps "scale"; None where it has no such map."""
        try:
            with np.load(path, allow_pickle=False) as found:
                names = set(found.files)
                arrays = {name: torch.from_numpy(found[name].astype(np.float32)) for name in _NAMES if name in names}
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise InputError(
                f"is no readable archive of arrays ({error}); was it written completely?", path=path
            ) from None
        return cls(**arrays) if {"mean", "components"} <= names else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as safetensors."""
        save_tensors(path, {name: value for name in _NAMES if (value := getattr(self, name)) is not None})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Projection:
        """What `save` wrote."""
        found = load_tensors(path)
        if not {"mean", "components"} <= set(found) <= set(_NAMES):
            raise InputError("is no projection of features; was it edited?", path=Path(path))
        return cls(**found)


_NAMES = ("mean", "components", "scale")
