"""Image backbones without anything to download, which count the pictures they have seen."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from halation.data import Features


class Patches(nn.Module):
    """Colours of four patches, and their mean through a linear layer; counts what it has seen."""

    pooled_dim, local_dim = 5, 3

    def __init__(self, seed: int = 0, *, local: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 5)
        self.seen, self._local = 0, local
        with torch.no_grad():
            self.linear.weight.copy_(torch.randn(5, 3, generator=torch.Generator().manual_seed(seed)))
            self.linear.bias.zero_()

    def preprocess(self, image: Image.Image) -> Tensor:
        return torch.from_numpy(np.asarray(image.resize((8, 8)), dtype=np.float32) / 255).permute(2, 0, 1)

    def forward(self, images: Tensor) -> Features:
        assert not self.training
        self.seen += len(images)
        cells = torch.nn.functional.avg_pool2d(images, 4).flatten(2).transpose(1, 2)  # (B, 4, 3)
        return Features(self.linear(cells.mean(dim=1)), cells if self._local else None)


class Cells(nn.Module):
    """Sixteen cells of twelve numbers: four colours of four patches each; counts what it has seen."""

    pooled_dim, local_dim = 3, 12

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def preprocess(self, image: Image.Image) -> Tensor:
        return torch.from_numpy(np.asarray(image.resize((16, 16)), dtype=np.float32) / 255).permute(2, 0, 1)

    def forward(self, images: Tensor) -> Features:
        self.seen += len(images)
        cells = nn.functional.pixel_unshuffle(nn.functional.avg_pool2d(images, 2), 2).flatten(2).transpose(1, 2)
        return Features(images.mean((2, 3)), cells)
