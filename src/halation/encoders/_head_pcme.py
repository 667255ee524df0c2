"""The heads of PCME and PVSE: a summary of the item, and attention over its cells or words."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._errors import InputError, one_of
from halation.data import Features
from halation.encoders._embeddings import MultiEmbedding
from halation.encoders._gru import BiGRU
from halation.encoders._pooling import AttentionPool, local_features
from halation.similarity import Gaussian

__all__ = ["GRUSummary", "LinearSummary", "PCMEHead", "PVSEHead", "PooledSummary", "Summary", "build_summary"]

Summary = Literal["pooled", "given", "gru"]


class LinearSummary(nn.Linear):
    """Features → W · pooled + b, (B, dim)."""

    def forward(self, features: Features) -> Tensor:  # type: ignore[override]
        return super().forward(features.pooled)


class PooledSummary(nn.Module):
    """Features → the pooled vector as it is, (B, dim), for a backbone whose pooled vector has `dim` numbers."""

    def forward(self, features: Features) -> Tensor:
        return features.pooled


class GRUSummary(nn.Module):
    """Features → the final states of a bidirectional GRU over the local vectors, (B, dim)."""

    def __init__(self, local_dim: int, dim: int, variant: Literal["paper", "released"] = "paper") -> None:
        super().__init__()
        self.gru = BiGRU(local_dim, dim, variant=variant)

    def forward(self, features: Features) -> Tensor:
        final: Tensor = self.gru(local_features(features, "a GRU"), features.mask)[1]
        return final


def build_summary(
    kind: Summary | nn.Module, pooled_dim: int, local_dim: int, dim: int, variant: Literal["paper", "released"]
) -> nn.Module:
    """The module Features → (B, dim) that a name stands for; a module stands for itself."""
    if isinstance(kind, nn.Module):
        return kind
    one_of(kind, ("pooled", "given", "gru"), "summary")
    if kind == "gru":
        if local_dim == 0:
            raise InputError("a GRU reads local vectors, but local_dim is 0; take summary='pooled'")
        return GRUSummary(local_dim, dim, variant)
    if kind == "given":
        if pooled_dim != dim:
            raise InputError(f"summary='given' needs pooled_dim = dim, not {pooled_dim} and {dim}; take 'pooled'")
        return PooledSummary()
    linear = LinearSummary(pooled_dim, dim)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


class PCMEHead(nn.Module):
    """N(μ, diag σ²) per item; Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021.

        μ = L2(LayerNorm(o + sigmoid(fc(Σ a x)))),    log σ = fc'(Σ a' x) + s

    x are the local vectors, a and a' two attentions over them (padding has weight 0), o the summary, s that of log σ.
    Images: o and s are linear in the pooled vector ("pooled"). Texts: each is a bidirectional GRU over the words
    ("gru"; `variant="released"` reads both its directions at the last word). "given" takes the pooled vector as it is.
    You may pass any module Features → (B, dim) instead. log σ goes through no sigmoid, LayerNorm or L2.

    `dropout` drops channels, of the pooled vector and of all local vectors together.
    `local_dim=0` leaves out the attended terms: μ = L2(LayerNorm(o)) and log σ = s, for backbones without cells.
    `log_sigma` starts every item near that value: the bias is set to it, and the weights of log σ are made ten times
    smaller. None starts as the authors do. Features → Gaussian (B, dim).

    >>> PCMEHead(8, 6, 4)(Features(torch.ones(3, 8), torch.ones(3, 5, 6)))
    Gaussian(n=3, d=4)
    """

    def __init__(
        self,
        pooled_dim: int,
        local_dim: int,
        dim: int,
        summary: Summary | nn.Module = "pooled",
        spread: Summary | nn.Module = "pooled",
        *,
        hidden: int | None = None,
        dropout: float = 0.0,
        log_sigma: float | None = None,
        variant: Literal["paper", "released"] = "paper",
    ) -> None:
        super().__init__()
        self.local_dim = local_dim
        self.dropout = nn.Dropout(dropout)
        self.summary = build_summary(summary, pooled_dim, local_dim, dim, variant)
        self.spread = build_summary(spread, pooled_dim, local_dim, dim, variant)
        self.mean_norm = nn.LayerNorm(dim)
        if local_dim:
            self.mean_attention, self.spread_attention = (AttentionPool(local_dim, hidden) for _ in range(2))
            self.mean_fc, self.spread_fc = (_linear(local_dim, dim) for _ in range(2))
        if log_sigma is not None:
            self._begin_at(log_sigma)

    def forward(self, features: Features) -> Gaussian:
        features = self._drop_channels(features)
        mean, log_std = self.summary(features), self.spread(features)  # (B, dim)
        if self.local_dim:
            local = local_features(features, "PCMEHead")
            attended, _ = self.mean_attention(local, features.mask)
            mean = mean + torch.sigmoid(self.mean_fc(attended[:, 0]))
            attended, _ = self.spread_attention(local, features.mask)
            log_std = log_std + self.spread_fc(attended[:, 0])
        return Gaussian.from_log_std(normalize(self.mean_norm(mean), dim=1), log_std)

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """The weight of each cell in the mean and in the spread, (B, 1, cells) each; empty without local features."""
        if not self.local_dim:
            return {}
        local = local_features(features, "PCMEHead")
        pools = {"mean": self.mean_attention, "spread": self.spread_attention}
        return {name: pool(local, features.mask)[1] for name, pool in pools.items()}

    def _drop_channels(self, features: Features) -> Features:
        if not (self.training and self.dropout.p):
            return features
        local = features.local
        if local is not None:
            # the same channels in all cells: otherwise neighbours make up for a dropped one, at ten times the cost
            local = local * self.dropout(torch.ones_like(local[:, :1]))
        return Features(self.dropout(features.pooled), local, features.mask)

    @torch.no_grad()
    def _begin_at(self, log_sigma: float) -> None:
        linears = [m for m in (self.spread, getattr(self, "spread_fc", None)) if isinstance(m, nn.Linear)]
        if not linears:
            raise InputError(
                "log_sigma sets the bias of a linear map, but the spread has no linear map; set it in your module"
            )
        for linear in linears:
            linear.weight.mul_(0.1)
            linear.bias.zero_()
        linears[-1].bias.fill_(log_sigma)


def _linear(in_dim: int, dim: int) -> nn.Linear:
    linear = nn.Linear(in_dim, dim)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


class PVSEHead(nn.Module):
    """K points of length 1 per item, L2(LayerNorm(o + sigmoid(fc(Σ a_k x)))), k = 1 … K.

    Song and Soleymani, "Polysemous Visual-Semantic Embedding for Cross-Modal Retrieval", CVPR 2019. o is the summary
    as in `PCMEHead`, a_k the k-th attention over the local vectors x. The residuals, which attention added, are
    returned too: the losses `Diversity` and `MMD` need them. Features → MultiEmbedding of K points (B, K, dim).

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
        self.summary = build_summary(summary, pooled_dim, local_dim, dim, variant)
        self.attention = AttentionPool(local_dim, hidden, k)
        self.fc = nn.Linear(local_dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, features: Features) -> MultiEmbedding:
        attended, _ = self.attention(local_features(features, "PVSEHead"), features.mask)  # (B, K, local_dim)
        residuals = self.dropout(torch.sigmoid(self.fc(attended)))
        points = self.norm(self.summary(features).unsqueeze(1) + residuals)
        return MultiEmbedding(normalize(points, dim=2), residuals)

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """The weight of each cell in each of the K points, (B, K, cells)."""
        weights: Tensor = self.attention(local_features(features, "PVSEHead"), features.mask)[1]
        return {"points": weights}
