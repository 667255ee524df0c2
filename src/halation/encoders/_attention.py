"""Pooling cells and words: means, attention and lengths that padding never enters."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.data import Features

__all__ = ["AttentionPool", "local_of", "masked_mean", "unit"]


def unit(x: Tensor, eps: float = 1e-8) -> Tensor:
    """x / (‖x‖ + ε) over the last dimension, as SGRAF divides; its gradient at 0 is finite.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / (length + eps)


def masked_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """The mean over the real cells: x (B, cells, d), mask (B, cells) bool or None = all; (B, d).

    >>> masked_mean(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([[True, True, False]]))
    tensor([[2.]])
    """
    if mask is None:
        return x.mean(dim=1)
    real = mask.unsqueeze(-1)
    return x.masked_fill(~real, 0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


def local_of(features: Features, who: str) -> Tensor:
    """The local features, or an error that says who needs them."""
    if features.local is None:
        raise InputError(
            f"{who} looks at cells or words, but the backbone gave the pooled vector alone; "
            "take a backbone with local features, or build the head with local_dim=0 where it allows that"
        )
    return features.local


class AttentionPool(nn.Module):
    """K weighted means over cells or words, a = softmax_cells(w₂ tanh(w₁ x)), without biases.

    Lin et al., "A Structured Self-attentive Sentence Embedding", ICLR 2017, as PVSE and PCME use it.
    x (B, cells, in_dim), mask (B, cells) bool → means (B, K, in_dim) and weights (B, K, cells); padding weighs 0.

    >>> means, weights = AttentionPool(4, heads=3)(torch.ones(2, 5, 4))
    >>> means.shape, weights.shape
    (torch.Size([2, 3, 4]), torch.Size([2, 3, 5]))
    """

    def __init__(self, in_dim: int, hidden: int | None = None, heads: int = 1) -> None:
        super().__init__()
        hidden = max(1, in_dim // 2) if hidden is None else hidden
        self.w1 = nn.Linear(in_dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, heads, bias=False)
        nn.init.xavier_uniform_(self.w1.weight)
        nn.init.xavier_uniform_(self.w2.weight)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        logits = self.w2(torch.tanh(self.w1(x))).transpose(1, 2)  # (B, K, cells)
        if mask is not None:
            logits = logits.masked_fill(~mask.unsqueeze(1), -torch.inf)
        weights = logits.softmax(dim=2)
        return weights @ x, weights
