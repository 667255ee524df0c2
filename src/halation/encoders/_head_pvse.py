"""PVSE's head: K embeddings per item."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._errors import InputError
from halation.data import Features
from halation.encoders._attention import AttentionPool, local_of
from halation.encoders._embeddings import MultiEmbedding
from halation.encoders._head_pcme import Summary, summary_of

__all__ = ["PVSEHead"]


class PVSEHead(nn.Module):
    """K points of length 1 per item, L2(LayerNorm(o + sigmoid(fc(Σ a_k x)))), k = 1 … K.

    Song and Soleymani, "Polysemous Visual-Semantic Embedding for Cross-Modal Retrieval", CVPR 2019. o is the summary
    as in `PCMEHead`, a_k the k-th attention over the local vectors x. The residuals, what attention added, go with the
    points: the losses `Diversity` and `MMD` want them. Features → Several, points and residuals (B, K, dim).

    >>> PVSEHead(8, 6, 4, k=2)(Features(torch.ones(3, 8), torch.ones(3, 5, 6))).points.shape
    torch.Size([3, 2, 4])
    """

    def __init__(
        self,
        pooled_dim: int,
        local_dim: int,
        dim: int,
        k: int = 2,
        summary: Summary | nn.Module = "pooled",
        *,
        hidden: int | None = None,
        dropout: float = 0.0,
        variant: Literal["paper", "released"] = "paper",
    ) -> None:
        super().__init__()
        if k < 1 or local_dim < 1:
            raise InputError(
                f"PVSEHead needs k ≥ 1 and local vectors (local_dim ≥ 1), not k={k}, local_dim={local_dim}"
            )
        self.summary = summary_of(summary, pooled_dim, local_dim, dim, variant)
        self.attention = AttentionPool(local_dim, hidden, k)
        self.fc = nn.Linear(local_dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, features: Features) -> MultiEmbedding:
        attended, _ = self.attention(local_of(features, "PVSEHead"), features.mask)  # (B, K, local_dim)
        residuals = self.dropout(torch.sigmoid(self.fc(attended)))
        points = self.norm(self.summary(features).unsqueeze(1) + residuals)
        return MultiEmbedding(normalize(points, dim=2), residuals)

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """What each cell weighs in each of the K points, (B, K, cells)."""
        weights: Tensor = self.attention(local_of(features, "PVSEHead"), features.mask)[1]
        return {"points": weights}
