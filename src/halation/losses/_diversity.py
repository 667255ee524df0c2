"""PVSE's diversity: the K embeddings of an item should differ."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._arrays import Array
from halation._errors import InputError
from halation.losses._checks import as_points, check_finite

__all__ = ["Diversity", "diversity"]


def diversity(residuals: Array, *, check: bool = False) -> Tensor:
    """Mean over items of ‖offdiag(R Rᵀ)‖_F / K², where R is the item's K residuals, scaled to length 1.

    Song and Soleymani, CVPR 2019 (PVSE). residuals (n, K, d): the vectors that attention adds to the global feature.

    >>> diversity(torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [3.0, 0.0]]]))
    tensor(0.1768)
    """
    residuals = as_points("residuals", residuals)
    if residuals.ndim != 3:
        raise InputError(f"residuals must hold K vectors per item, (n, K, d), not {tuple(residuals.shape)}")
    if check:
        check_finite("residuals", residuals)
    unit = normalize(residuals, dim=2)
    k = unit.shape[1]
    same = torch.eye(k, dtype=torch.bool, device=unit.device)
    with torch.autocast(unit.device.type, enabled=False):
        gram = (unit @ unit.transpose(1, 2)).masked_fill(same, 0)  # (n, K, K)
    lengths: Tensor = torch.linalg.vector_norm(gram, dim=(1, 2))  # (n,)
    return lengths.mean() / k**2


class Diversity(nn.Module):
    """`diversity` as a module."""

    def __init__(self, *, check: bool = False) -> None:
        super().__init__()
        self.check = check

    def forward(self, residuals: Array) -> Tensor:
        """residuals (n, K, d); a scalar."""
        return diversity(residuals, check=self.check)
