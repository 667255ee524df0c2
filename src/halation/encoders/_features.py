"""What flows through an encoder: tokens in, features of a backbone, and what a head makes of them."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from halation.gaussian import Gaussian

__all__ = ["Features", "Gisted", "Parts", "Several", "Tokens"]


class Tokens(NamedTuple):
    """Captions as numbers."""

    ids: Tensor  # (B, L) int64; padding holds any valid number
    mask: Tensor  # (B, L) bool, True = a real token; every row has at least one
    sentence: Tensor | None = None  # (B, d) what a frozen sentence encoder makes of each caption, where one is asked


class Features(NamedTuple):
    """What a backbone sees: each item as one vector, and as one vector per cell of the picture or word of the text."""

    pooled: Tensor  # (B, d)
    local: Tensor | None = None  # (B, cells, d'); None where a backbone gives the pooled vector alone
    mask: Tensor | None = None  # (B, cells) bool, True = a real cell; None = all are


class Several(NamedTuple):
    """K embeddings per item (PVSE)."""

    points: Tensor  # (B, K, D), of length 1
    residuals: Tensor  # (B, K, D), what attention added to the pooled vector; PVSE keeps them apart


class Parts(NamedTuple):
    """Items as their parts, of length 1 each, for a scorer that looks from one item to the other (SGR, SAF)."""

    local: Tensor  # (B, cells, D)
    mask: Tensor | None = None  # (B, cells) bool, True = a real cell; None = all are


class Gisted(NamedTuple):
    """Items in detail, as a model's own head gives them, and their gist beside it."""

    detail: Gaussian | Several | Parts
    gist: Gaussian  # points of length 1
