"""The deterministic head: dropout, a linear map, length 1."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._errors import one_of
from halation.encoders._attention import local_of, masked_mean
from halation.encoders._features import Features
from halation.gaussian import Gaussian

__all__ = ["PointHead"]

Source = Literal["pooled", "local", "both"]


class PointHead(nn.Module):
    """One point of length 1 per item, L2(W dropout(x) + b): what VSE++ and InfoNCE train.

    x is the pooled vector, the mean of the local ones, or (`source="both"`) the two side by side; `in_dim` is its
    width. Features → points (B, dim).

    >>> PointHead(8, 4)(Features(torch.ones(3, 8)))
    Gaussian(n=3, d=4, points)
    """

    def __init__(self, in_dim: int, dim: int, dropout: float = 0.0, source: Source = "pooled") -> None:
        super().__init__()
        self.source = one_of(source, ("pooled", "local", "both"), "source")
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(in_dim, dim)
        nn.init.xavier_uniform_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, features: Features) -> Gaussian:
        return Gaussian.point(normalize(self.fc(self.dropout(self._input(features))), dim=1))

    def _input(self, features: Features) -> Tensor:
        if self.source == "pooled":
            return features.pooled
        local = masked_mean(local_of(features, "PointHead"), features.mask)
        return local if self.source == "local" else torch.cat([features.pooled, local], dim=1)
