"""SGRAF's whole vectors: attention over the parts, guided by their mean."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation.encoders._attention import masked_mean, unit
from halation.encoders._linear import linear

__all__ = ["GuidedPool"]


class GuidedPool(nn.Module):
    """v̄ = L2(Σ softmax(w · (l ∘ g)) x) with l = tanh(BN(W x)), g = tanh(BN(W' mean x)); dropout on l and g.

    Images have the batch norms, l's over the index of the region (so `regions` is fixed) and g's over the features;
    captions have none (`regions=None`). x (B, cells, dim), mask (B, cells) bool → (B, dim). Diao et al., AAAI 2021.
    """

    def __init__(self, dim: int, regions: int | None = None, dropout: float = 0.4) -> None:
        super().__init__()
        self.local, self.whole, self.weight = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)
        self.local_norm = nn.Identity() if regions is None else nn.BatchNorm1d(regions)
        self.whole_norm = nn.Identity() if regions is None else nn.BatchNorm1d(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return unit((self.weights(x, mask).unsqueeze(1) @ x).squeeze(1))

    def weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What each part weighs, (B, cells), adding up to 1."""
        local = linear(x, self.local.weight, self.local.bias)  # (B, cells, dim)
        local = self.dropout(torch.tanh(self.local_norm(local)))
        whole = self.dropout(torch.tanh(self.whole_norm(self.whole(masked_mean(x, mask)))))  # (B, dim)
        # w · (l ∘ g) is a product of l with (w ∘ g)
        logits = (local @ (self.weight.weight * whole).unsqueeze(2)).squeeze(2) + self.weight.bias
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        weights: Tensor = logits.softmax(dim=1)
        return weights
