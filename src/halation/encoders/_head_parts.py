"""The head of the scorers: every cell or word of length 1, nothing pooled."""

from __future__ import annotations

from torch import Tensor, nn

from halation.data import Features
from halation.encoders._attention import local_of, unit
from halation.encoders._embeddings import PartEmbedding

__all__ = ["PartsHead"]


class PartsHead(nn.Module):
    """Each local vector mapped to `dim` numbers and brought to length 1: what SGR and SAF score.

    `dim=None` takes the vectors as they are (SGRAF's words are the GRU's states). Features → Parts (B, cells, dim).

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
        local = self.fc(self.dropout(local_of(features, "PartsHead")))
        return PartEmbedding(unit(local), features.mask)

    def attentions(self, features: Features) -> dict[str, Tensor]:
        """Empty: who attends to what, the scorer decides (`SGR.attentions`)."""
        return {}
