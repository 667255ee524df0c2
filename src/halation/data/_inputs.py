"""The inputs of encoders: captions as tokens, and the features of a backbone."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Features", "Tokens"]


class Tokens(NamedTuple):
    """Captions as numbers."""

    ids: Tensor  # (B, L) int64; padding holds any valid number
    mask: Tensor  # (B, L) bool, True = a real token; every row has at least one
    sentence: Tensor | None = None  # (B, d) each caption by a frozen sentence encoder, if the model has one

    def to(self, device: torch.device) -> Tokens:
        """The same on another device."""
        return Tokens(*(None if x is None else x.to(device, non_blocking=True) for x in self))  # type: ignore[arg-type]


class Features(NamedTuple):
    """The output of a backbone: one vector for each item, and one for each cell of a picture or word of a text."""

    pooled: Tensor  # (B, d)
    local: Tensor | None = None  # (B, cells, d'); None where a backbone gives the pooled vector alone
    mask: Tensor | None = None  # (B, cells) bool, True = a real cell; None = all are

    def to(self, device: torch.device) -> Features:
        """The same on another device."""
        return Features(*(None if x is None else x.to(device, non_blocking=True) for x in self))  # type: ignore[arg-type]
