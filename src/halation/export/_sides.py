"""The graphs that are exported: tensors in, mean and log σ² out."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from halation.data import Features, Projection, Tokens
from halation.encoders import Encoded
from halation.export._dense import dense
from halation.similarity import Gaussian

__all__ = ["Backbone", "ImageSide", "TextSide", "both"]


class ImageSide(nn.Module):
    """pixels (B, 3, H, W), or pooled (B, d) and perhaps cells (B, cells, d') → mean, log_var (B, D)."""

    def __init__(self, encoder: nn.Module, on_features: bool) -> None:
        super().__init__()
        self.encoder, self.on_features = dense(encoder), on_features
        self.eval()  # all of it: the exporter puts the whole back as it was

    def forward(self, pixels: Tensor, cells: Tensor | None = None) -> tuple[Tensor, Tensor]:
        taken = Features(pixels, cells) if self.on_features else pixels
        return both(self.encoder(taken))


class TextSide(nn.Module):
    """ids (B, L) int64, mask (B, L) bool, perhaps sentence (B, 384) → mean, log_var (B, D)."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = dense(encoder)
        self.eval()

    def forward(self, ids: Tensor, mask: Tensor, sentence: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return both(self.encoder(Tokens(ids, mask, sentence)))


class Backbone(nn.Module):
    """pixels (B, 3, H, W) → what an image side on features takes: pooled (B, d), and cells (B, cells, d') if asked.

    Stored features are rounded (half precision, int8); these are not: a graph and torch would round to different sides.
    """

    def __init__(self, network: nn.Module, projection: Projection | None, cells: bool) -> None:
        super().__init__()
        self.network, self.cells = dense(network), cells
        self.projection = None if projection is None else replace(projection, scale=None)
        self.eval()

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        return self.seen(self.network(pixels))

    def seen(self, seen: Features) -> tuple[Tensor, ...]:
        """What a network saw → what the image side takes."""
        if not self.cells or seen.local is None:
            return (seen.pooled,)
        return seen.pooled, seen.local if self.projection is None else self.projection(seen.local)


def both(gaussian: Encoded) -> tuple[Tensor, Tensor]:
    """Mean and log σ². A point has no variance: log 0 = −∞, so that exp gives the 0 it has."""
    assert isinstance(gaussian, Gaussian)  # others have no mean, and were refused
    log_var = gaussian.log_var
    return gaussian.mean, torch.full_like(gaussian.mean, -torch.inf) if log_var is None else log_var
