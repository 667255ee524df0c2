"""Generalised pooling: a learnt mixture between the maximum and the mean."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = ["GeneralisedPool"]


class GeneralisedPool(nn.Module):
    """Sort the cells of each dimension by size and weigh the places: Σ_p w_p(n) · (p-th largest of n).

    Chen et al., "Learning the Best Pooling Strategy for Visual Semantic Embedding", CVPR 2021. The weights depend on
    the place p and on the number of cells n only: a small bidirectional GRU reads sinusoids of the places, its two
    directions are averaged, mapped to a number and divided by 0.1, softmax over the n places. They are computed once
    for every n that occurs. x (B, cells, d), mask (B, cells) bool → (B, d).

    >>> GeneralisedPool()(torch.ones(2, 5, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, places_dim: int = 32, hidden: int = 32) -> None:
        super().__init__()
        self.places_dim = places_dim
        self.gru = nn.GRU(places_dim, hidden, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(hidden, 1, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        weights, falling, _ = self._sorted(x, mask)
        if mask is not None:
            falling = falling.masked_fill(falling == -torch.inf, 0)
        return (falling @ weights.to(falling.dtype).unsqueeze(2)).squeeze(2)

    def shares(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What each cell weighs in each dimension, (B, d, cells): forward is Σ_cells shares · x."""
        weights, falling, order = self._sorted(x, mask)
        return torch.zeros_like(falling).scatter(2, order, weights.to(falling).unsqueeze(1).expand_as(falling))

    def _sorted(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of the places (1 or B, cells), the cells of each dimension, largest first, and which they are."""
        cells = x.shape[1]
        if mask is None:
            weights = self._weights(torch.tensor([cells]), cells)
        else:
            x = x.masked_fill(~mask.unsqueeze(2), -torch.inf)
            counts, which = torch.unique(mask.sum(dim=1), return_inverse=True)
            weights = self._weights(counts.cpu(), cells)[which]
        falling, order = x.transpose(1, 2).sort(dim=2, descending=True)  # (B, d, cells)
        return weights, falling, order

    def _weights(self, counts: Tensor, cells: int) -> Tensor:
        """counts (u,) on the host → weights (u, cells), 0 beyond each count."""
        places = _sinusoids(int(counts.max()), self.places_dim).to(self.linear.weight)
        packed = pack_padded_sequence(
            places.expand(len(counts), -1, -1), counts, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=cells)
        forth, back = states.chunk(2, dim=2)
        logits = self.linear((forth + back) / 2).squeeze(2) / 0.1  # (u, cells)
        real = torch.arange(cells) < counts.unsqueeze(1)
        weights: Tensor = logits.masked_fill(~real.to(logits.device), -torch.inf).softmax(dim=1)
        return weights


def _sinusoids(n: int, dim: int) -> Tensor:
    rates = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    angles = torch.arange(n).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)  # (n, dim)
