"""The network inside every model: two encoders, and a similarity that compares their embeddings."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._progress import Progress, silent
from halation._torch import evaluation_mode
from halation.encoders._embeddings import Encoded, MultiEmbedding, count, select

__all__ = ["Compare", "Encoder", "Network", "best_cosine", "current_device"]

Compare = Callable[[Any, Any], Tensor]
"""(encoded images, encoded captions) → scores (n_images, n_captions), bigger = closer."""


class Encoder(nn.Module):
    """A backbone and a head: pictures or tokens → `Gaussian`, `MultiEmbedding` or `PartEmbedding`."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, batch: Any) -> Encoded:
        """The embeddings of a batch, in the form the backbone takes."""
        encoded: Encoded = self.head(self.backbone(batch))
        return encoded


class Network(nn.Module):
    """An image encoder, a text encoder, and the comparison of their embeddings.

    `compare` is a similarity of `halation.similarity`, `best_cosine` for K embeddings per item, or a scorer with
    its own weights (SGR, SAF).
    """

    def __init__(self, image: nn.Module, text: nn.Module, compare: Compare) -> None:
        super().__init__()
        self.image, self.text = image, text
        self.compare = compare

    def images(self, batch: Any) -> Encoded:
        """The embeddings of pictures or features, in the form the image backbone takes."""
        encoded: Encoded = self.image(batch)
        return encoded

    def captions(self, batch: Any) -> Encoded:
        """The embeddings of captions, given as `Tokens`."""
        encoded: Encoded = self.text(batch)
        return encoded

    def scores(self, images: Encoded, captions: Encoded) -> Tensor:
        """(n_images, n_captions), bigger = closer."""
        return self.compare(images, captions)

    @torch.no_grad()
    def all_scores(
        self, images: Encoded, captions: Encoded, *, block: int = 256, progress: Progress = silent
    ) -> Tensor:
        """The scores of many items in evaluation mode: (n_images, n_captions) float32, in the host's memory.

        Images are scored `block` at a time.
        """
        total = count(images)
        out = torch.empty(total, count(captions))
        with evaluation_mode(self):
            for start in range(0, total, block):
                stop = min(start + block, total)
                out[start:stop] = self.scores(select(images, slice(start, stop)), captions).to(out)
                progress("scores", stop, total)
        return out


def best_cosine(images: MultiEmbedding, captions: MultiEmbedding) -> Tensor:
    """The largest cosine among the K × K' pairs of embeddings of two items: PVSE's score, (n_images, n_captions).

    >>> one = MultiEmbedding(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.zeros(1, 2, 2))
    >>> best_cosine(one, one)
    tensor([[1.]])
    """
    a, b = normalize(images.points, dim=2), normalize(captions.points, dim=2)
    pairs = a.flatten(0, 1) @ b.flatten(0, 1).T  # (n·K, m·K')
    return pairs.view(len(a), a.shape[1], len(b), b.shape[1]).amax(dim=(1, 3))


def current_device() -> torch.device:
    """This process's accelerator, by the local rank that torchrun gives it, or the CPU if there is none."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        return torch.device("cpu")
    return torch.device(accelerator.type, int(os.environ.get("LOCAL_RANK", "0")))
