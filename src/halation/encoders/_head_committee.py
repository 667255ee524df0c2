"""Several heads on one backbone, each trained by itself, joined into one point."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.data import Features
from halation.encoders._head_point import PointHead
from halation.similarity import Gaussian

__all__ = ["Committee"]


class Committee(nn.Module):
    """m point heads that see the same features, each with weights and dropout of its own.

        x = [x₁, …, x_m] / √m,    so that x · y = mean_k x_k · y_k

    An ensemble (Hansen and Salamon, PAMI 1990) that an index stores as one point: what one member mistakes the others
    outvote. That takes members who learnt apart: give each its own loss (`training.ByMember`, which a recipe with
    `model.members` does), not the joint one. `make` gives a new head. Features → points (B, m·dim).

    >>> Committee(lambda: PointHead(8, 4), members=3)(Features(torch.ones(2, 8)))
    Gaussian(n=2, d=12, points)
    """

    def __init__(self, make: Callable[[], PointHead], members: int) -> None:
        super().__init__()
        if members < 1:
            raise InputError(f"a committee has at least one member, not {members}")
        self.members = nn.ModuleList(make() for _ in range(members))

    def forward(self, features: Features) -> Gaussian:
        points = [member(features).mean for member in self.members]
        return Gaussian.point(torch.cat(points, dim=1) / len(points) ** 0.5)

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """What each cell weighs in the means of all members, one after the other; empty where nothing attends."""
        each = [member.attentions(features) for member in self.members if isinstance(member, PointHead)]
        return {name: torch.cat([weights[name] for weights in each], dim=1) for name in each[0]}

    @staticmethod
    def split(joined: Gaussian, members: int) -> list[Gaussian]:
        """The points of each member, of length 1 again: (n, m·d) → m times (n, d).

        >>> Committee.split(Gaussian.of([[0.5, 0.5, 0.0, 0.5**0.5]]), 2)
        [Gaussian(n=1, d=2, points), Gaussian(n=1, d=2, points)]
        """
        if members < 1 or joined.dim % members:
            raise InputError(f"points of {joined.dim} numbers cannot be split equally among {members} members")
        if not joined.is_point:
            raise InputError("a committee gives points; these are Gaussians with a variance")
        return [Gaussian.point(part * members**0.5) for part in joined.mean.chunk(members, dim=1)]
