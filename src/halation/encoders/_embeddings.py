"""What heads make of features, beside a `Gaussian`: several points, or parts."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from halation.similarity import Gaussian

__all__ = ["Gisted", "MultiEmbedding", "PartEmbedding"]


class MultiEmbedding(NamedTuple):
    """K embeddings per item (PVSE)."""

    points: Tensor  # (B, K, D), of length 1
    residuals: Tensor  # (B, K, D), what attention added to the pooled vector; PVSE keeps them apart


class PartEmbedding(NamedTuple):
    """Items as their parts, of length 1 each, for a scorer that looks from one item to the other (SGR, SAF)."""

    local: Tensor  # (B, cells, D)
    mask: Tensor | None = None  # (B, cells) bool, True = a real cell; None = all are


class Gisted(NamedTuple):
    """Items in detail, as a model's own head gives them, and their gist beside it."""

    detail: Gaussian | MultiEmbedding | PartEmbedding
    gist: Gaussian  # points of length 1
