"""The inputs of SGR and SAF: an item's parts, each of length 1, and the whole vector pooled from them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation.data import Features
from halation.encoders._embeddings import PartEmbedding
from halation.encoders._linear import linear
from halation.encoders._pooling import local_features, masked_mean, unit

__all__ = ["GuidedPool", "PartsHead"]


class PartsHead(nn.Module):
    """Each local vector mapped to `dim` numbers and divided by its length, for SGR and SAF.

    `dim=None` leaves the vectors unmapped (SGRAF's words are the GRU's states). Features → PartEmbedding.

    >>> import torch
    >>> PartsHead(6, 4)(Features(torch.ones(3, 8), torch.ones(3, 5, 6))).local.shape
    torch.Size([3, 5, 4])
    """

    def __init__(self, local_dim: int, dim: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.fc: nn.Module = nn.Identity()
        if dim is not None:
            self.fc = linear = nn.Linear(local_dim, dim)
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, features: Features) -> PartEmbedding:
        local = self.fc(self.dropout(local_features(features, "PartsHead")))
        return PartEmbedding(unit(local), features.mask)

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """Empty: the scorer attends, see `SGR.attentions`."""
        return {}


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
        """The weights of the parts, (B, cells); they add up to 1."""
        local = linear(x, self.local.weight, self.local.bias)  # (B, cells, dim)
        local = self.dropout(torch.tanh(self.local_norm(local)))
        whole = self.dropout(torch.tanh(self.whole_norm(self.whole(masked_mean(x, mask)))))  # (B, dim)
        # w · (l ∘ g) is a product of l with (w ∘ g)
        logits = (local @ (self.weight.weight * whole).unsqueeze(2)).squeeze(2) + self.weight.bias
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        weights: Tensor = logits.softmax(dim=1)
        return weights
