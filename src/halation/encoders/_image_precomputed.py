"""A backbone for image features that were computed before: it has no weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from halation._errors import InputError
from halation.data import Features

__all__ = ["Precomputed"]


class Precomputed(nn.Module):
    """Stored features in float32, checked for their widths.

    pooled (B, pooled_dim), local (B, cells, local_dim) or None with local_dim 0. `grid`: the cells of a square picture
    averaged into grid × grid cells; 0 leaves them as they are.

    >>> Precomputed(4)(Features(torch.zeros(2, 4, dtype=torch.float16))).pooled.dtype
    torch.float32
    """

    def __init__(self, pooled_dim: int, local_dim: int = 0, *, grid: int = 0) -> None:
        super().__init__()
        self.pooled_dim, self.local_dim, self.grid = pooled_dim, local_dim, grid

    def forward(self, features: Features) -> Features:
        """The same features in float32."""
        pooled, local, mask = features
        if pooled.shape[-1] != self.pooled_dim:
            raise InputError(f"the features have {pooled.shape[-1]} dimensions, the model expects {self.pooled_dim}")
        if not self.local_dim:
            return Features(pooled.to(torch.float32))
        if local is None:
            raise InputError(f"the model expects local features of {self.local_dim} dimensions, the data have none")
        if local.shape[-1] != self.local_dim:
            raise InputError(f"local features have {local.shape[-1]} dimensions, the model expects {self.local_dim}")
        pooled, local = pooled.to(torch.float32), local.to(torch.float32)
        return Features(pooled, self.average_cells(local)) if self.grid else Features(pooled, local, mask)

    def average_cells(self, local: Tensor) -> Tensor:
        """The means of neighbouring cells: (B, side², d) → (B, grid², d)."""
        side = math.isqrt(local.shape[1])
        if side * side != local.shape[1] or self.grid > side:
            raise InputError(
                f"{local.shape[1]} cells cannot be averaged into {self.grid} × {self.grid}: they are not a square of "
                "at least that size; lower image.grid, or set it to 0"
            )
        picture = local.transpose(1, 2).reshape(len(local), -1, side, side)  # (B, d, side, side)
        return adaptive_avg_pool2d(picture, self.grid).flatten(2).transpose(1, 2)

    def layers(self) -> list[nn.Module]:
        """No layers: nothing learns."""
        return []

    def extra_repr(self) -> str:
        return f"pooled_dim={self.pooled_dim}, local_dim={self.local_dim}, grid={self.grid}"
