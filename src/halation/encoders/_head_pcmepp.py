"""PCME++'s head: a mean of length 1 and a log-variance, both pooled from linear maps of the cells."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from halation._errors import one_of
from halation.data import Features
from halation.encoders._pooling import GeneralisedPool, local_features, masked_mean
from halation.similarity import Gaussian

__all__ = ["PCMEPPHead"]

Pool = Literal["gpo", "mean", "max"]


class PCMEPPHead(nn.Module):
    """N(μ, diag σ²) per item; Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024.

        μ = L2(pool(W x)),    log σ² = pool'(W' y)

    x are the local vectors. So are y, unless `spread` (Features → Features) transforms them: the authors give the
    variance a copy of the backbone's last transformer block. `pool` is learnt ("gpo"), "mean" or "max".
    `scale` puts a LayerNorm of that initial scale behind the log-variance (a variant of the authors; their default is
    none). `log_var` is the initial bias of log σ²: the authors use 0; −ln(dim) makes the total variance 1.
    `local_dim=0`: W and W' map the pooled vector. Features → Gaussian (B, dim).

    >>> PCMEPPHead(8, 6, 4)(Features(torch.ones(3, 8), torch.ones(3, 5, 6)))
    Gaussian(n=3, d=4)
    """

    def __init__(
        self,
        pooled_dim: int,
        local_dim: int,
        dim: int,
        pool: Pool = "gpo",
        spread: nn.Module | None = None,
        *,
        dropout: float = 0.0,
        log_var: float = 0.0,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.local_dim, self.pool = local_dim, one_of(pool, ("gpo", "mean", "max"), "pool")
        self.dropout = nn.Dropout(dropout)
        self.spread = nn.Identity() if spread is None else spread
        self.mean_fc, self.spread_fc = (nn.Linear(local_dim or pooled_dim, dim) for _ in range(2))
        for fc in (self.mean_fc, self.spread_fc):
            nn.init.xavier_uniform_(fc.weight)
            nn.init.zeros_(fc.bias)
        if local_dim and pool == "gpo":
            self.mean_pool, self.spread_pool = GeneralisedPool(), GeneralisedPool()
        self.spread_norm: nn.Module = nn.Identity()
        if scale is None:
            nn.init.constant_(self.spread_fc.bias, log_var)
        else:
            self.spread_norm = norm = nn.LayerNorm(dim)
            nn.init.constant_(norm.weight, scale)
            nn.init.constant_(norm.bias, log_var)

    def forward(self, features: Features) -> Gaussian:
        mean = self._pooled(features, self.mean_fc, "mean_pool")
        log_var = self._pooled(self.spread(features), self.spread_fc, "spread_pool")
        return Gaussian(normalize(mean, dim=1), self.spread_norm(log_var))

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """The weight of each cell in the mean and in the log-variance, averaged over dimensions: (B, 1, cells) each.

        Pooling by size has no attention: in each dimension a cell has the weight of its rank there. Empty if all cells
        weigh the same (`pool="mean"`), or without local features.
        """
        if not self.local_dim or self.pool == "mean":
            return {}
        sides = {"mean": (features, self.mean_fc), "spread": (self.spread(features), self.spread_fc)}
        return {name: self._cell_weights(*side, f"{name}_pool").mean(1, keepdim=True) for name, side in sides.items()}

    def _cell_weights(self, features: Features, fc: nn.Linear, pool: str) -> Tensor:
        mapped = fc(local_features(features, "PCMEPPHead"))  # (B, cells, dim)
        if self.pool == "gpo":
            return self.get_submodule(pool).cell_weights(mapped, features.mask)  # type: ignore[no-any-return, operator]
        if features.mask is not None:
            mapped = mapped.masked_fill(~features.mask.unsqueeze(2), -torch.inf)
        return one_hot(mapped.argmax(dim=1), mapped.shape[1]).to(mapped)  # (B, dim, cells)

    def _pooled(self, features: Features, fc: nn.Linear, pool: str) -> Tensor:
        if not self.local_dim:
            return fc(self.dropout(features.pooled))  # type: ignore[no-any-return]
        local = self.dropout(local_features(features, "PCMEPPHead"))
        if self.pool == "mean":  # a mean of linear maps is the map of the mean
            return fc(masked_mean(local, features.mask))  # type: ignore[no-any-return]
        mapped = fc(local)  # (B, cells, dim)
        if self.pool == "gpo":
            return self.get_submodule(pool)(mapped, features.mask)  # type: ignore[no-any-return]
        if features.mask is not None:
            mapped = mapped.masked_fill(~features.mask.unsqueeze(2), -torch.inf)
        return mapped.amax(dim=1)  # type: ignore[no-any-return]
