"""Deterministic heads: one point of length 1 per item, and a committee of such heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._errors import InputError, one_of
from halation.data import Features
from halation.encoders._pooling import local_features, masked_mean
from halation.similarity import Gaussian

__all__ = ["Committee", "PointHead"]

Source = Literal["pooled", "local", "both", "attended"]


class PointHead(nn.Module):
    """One point of length 1 per item, L2(W dropout(x) + b), as VSE++ and InfoNCE train it.

    `source` tells what x is: "pooled", the pooled vector; "local", the mean of the local vectors; "both", these two
    concatenated; "attended", the pooled vector and `heads` weighted means of the local ones, a_k = softmax_cells(q_k ·
    cell). `in_dim` is the width of x without the weighted means. Features → points (B, dim).

    >>> PointHead(8, 4)(Features(torch.ones(3, 8)))
    Gaussian(n=3, d=4, points)
    """

    def __init__(
        self,
        in_dim: int,
        dim: int,
        dropout: float = 0.0,
        source: Source = "pooled",
        *,
        local_dim: int = 0,
        heads: int = 4,
    ) -> None:
        super().__init__()
        self.source = one_of(source, ("pooled", "local", "both", "attended"), "source")
        self.dropout = nn.Dropout(dropout)
        if source == "attended":
            if local_dim < 1 or heads < 1:
                raise InputError(f"attention needs local features and heads, not local_dim={local_dim}, heads={heads}")
            self.queries = nn.Linear(local_dim, heads, bias=False)
            in_dim += heads * local_dim
        self.fc = nn.Linear(in_dim, dim)
        nn.init.xavier_uniform_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, features: Features) -> Gaussian:
        return Gaussian.point(normalize(self.fc(self.dropout(self.inputs(features))), dim=1))

    @torch.no_grad()
    def set_map(self, mean: Tensor, matrix: Tensor) -> None:
        """Make the linear map (x − mean) @ matrix; mean (width,), matrix (width, dim)."""
        self.fc.weight.copy_(matrix.T)
        self.fc.bias.copy_(-mean @ matrix)

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """The weight of each cell in each of the means, (B, heads, cells); empty without attention."""
        return {"means": self._weights(features)} if self.source == "attended" else {}

    def inputs(self, features: Features) -> Tensor:
        """x, the input of the linear map, (B, width)."""
        if self.source == "pooled":
            return features.pooled
        if self.source == "attended":
            return torch.cat([features.pooled, self._attended(features).flatten(1)], dim=1)
        local = masked_mean(local_features(features, "PointHead"), features.mask)
        return local if self.source == "local" else torch.cat([features.pooled, local], dim=1)

    def _attended(self, features: Features) -> Tensor:
        return self._weights(features) @ local_features(features, "PointHead")

    def _weights(self, features: Features) -> Tensor:
        logits: Tensor = self.queries(local_features(features, "PointHead")).transpose(1, 2)  # (B, heads, cells)
        if features.mask is not None:
            logits = logits.masked_fill(~features.mask.unsqueeze(1), -torch.inf)
        return logits.softmax(dim=2)


class Committee(nn.Module):
    """m point heads on the same features, each with its own weights and dropout.

        x = [x₁, …, x_m] / √m,    so that x · y = mean_k x_k · y_k

    An ensemble (Hansen and Salamon, PAMI 1990) that an index stores as one point: if one member is wrong, the others
    outvote it. For that, members must learn separately: give each its own loss (`training.ByMember`; a recipe with
    `model.members` does), not a joint one. `make` returns a new head. Features → points (B, m·dim).

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
        """The weight of each cell in the means of all members, (B, members·heads, cells); empty without attention."""
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
