"""The term that trains σ, and its memory of earlier batches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from halation import losses
from halation._toml import number
from halation.training._step import Step
from halation.training._terms import Term

__all__ = ["Memory", "Spread"]


@dataclass(frozen=True)
class Spread(Term):
    """`losses.spread`: σ as the temperature of retrieval, with a learnt scale. It trains σ only."""

    scale: float = number(50.0, positive=True)  # where the learnt scale begins
    memory: int = 0  # images and captions of earlier batches to distinguish from: a batch has few that are alike

    def build(self, dim: int = 0) -> nn.Module:
        return _Spread(self, dim)


class _Spread(nn.Module):
    def __init__(self, term: Spread, dim: int) -> None:
        super().__init__()
        self.loss = losses.Spread(term.scale)
        self.images, self.captions = (Memory(term.memory, dim) if term.memory else None for _ in range(2))

    def forward(self, step: Step) -> Tensor:
        images, captions = step.gaussians()
        if self.images is None or self.captions is None:
            batch_only: Tensor = self.loss(images, captions, step.matches)
            return batch_only
        of_image, of_caption = step.owners
        value: Tensor = self.loss(
            images, captions, step.matches, self.images.others(of_caption), self.captions.others(of_image)
        )
        if self.training:
            self.images.add(images.mean, of_image)
            self.captions.add(captions.mean, of_caption)
        return value

    def learnt(self) -> dict[str, float]:
        return {"scale": self.loss.log_scale.exp().item()}


class Memory(nn.Module):
    """The last `size` points that were added, (size, dim), each with the image it belongs to.

    They are buffers, so checkpoints hold them and a killed run goes on as if nothing had happened.

    >>> memory = Memory(3, 2)
    >>> memory.add(torch.eye(2), torch.tensor([7, 8]))
    >>> memory.others(torch.tensor([8, 9])).meets
    tensor([[ True, False, False],
            [ True,  True, False]])
    """

    points: Tensor
    owner: Tensor
    place: Tensor  # the row that is written next; checkpoints store it by this name

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("points", torch.zeros(size, dim))
        self.register_buffer("owner", torch.full((size,), -1))  # −1: nothing stored yet
        self.register_buffer("place", torch.tensor(0))

    def others(self, owners: Tensor) -> losses.Others:
        """All stored points, for queries that belong to these images. A query does not meet points of its own image."""
        meets = (self.owner >= 0) & (self.owner != owners[:, None])  # (n, size)
        return losses.Others(self.points, meets)

    @torch.no_grad()
    def add(self, points: Tensor, owners: Tensor) -> None:
        """Store these in place of the oldest."""
        size = len(self.points)
        points, owners = points[-size:], owners[-size:]
        rows = (self.place + torch.arange(len(points), device=points.device)) % size
        self.points[rows] = points.to(self.points)
        self.owner[rows] = owners
        self.place.copy_((self.place + len(points)) % size)
