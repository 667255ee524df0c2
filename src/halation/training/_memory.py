"""What earlier steps saw: items to be told from that no batch is large enough to hold."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation.losses import Others

__all__ = ["Memory"]


class Memory(nn.Module):
    """The last `size` points that were added, (size, dim), each with the image it belongs to.

    They are buffers: a checkpoint has them, so that a run that was killed goes on as if it had not been.

    >>> memory = Memory(3, 2)
    >>> memory.add(torch.eye(2), torch.tensor([7, 8]))
    >>> memory.others(torch.tensor([8, 9])).meets
    tensor([[ True, False, False],
            [ True,  True, False]])
    """

    points: Tensor
    owner: Tensor
    place: Tensor

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("points", torch.zeros(size, dim))
        self.register_buffer("owner", torch.full((size,), -1))  # −1: nothing is here yet
        self.register_buffer("place", torch.tensor(0))

    def others(self, owners: Tensor) -> Others:
        """All that is remembered, for queries that belong to these images: none meets what is of its own image."""
        meets = (self.owner >= 0) & (self.owner != owners[:, None])  # (n, size)
        return Others(self.points, meets)

    @torch.no_grad()
    def add(self, points: Tensor, owners: Tensor) -> None:
        """Remember these, and forget the oldest."""
        size = len(self.points)
        points, owners = points[-size:], owners[-size:]
        at = (self.place + torch.arange(len(points), device=points.device)) % size
        self.points[at] = points.to(self.points)
        self.owner[at] = owners
        self.place.copy_((self.place + len(points)) % size)
