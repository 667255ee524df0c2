"""Pooling of cells and words: means, attention, sorted values. Padding never counts."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from halation._errors import InputError
from halation.data import Features

__all__ = ["AttentionPool", "GeneralisedPool", "local_features", "masked_mean", "unit"]


def unit(x: Tensor, eps: float = 1e-8) -> Tensor:
    """x / (‖x‖ + ε) over the last dimension, as in SGRAF; its gradient at 0 is finite.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / (length + eps)


def masked_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """The mean over the real cells: x (B, cells, d), mask (B, cells) bool, or None if all are real → (B, d).

    >>> masked_mean(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([[True, True, False]]))
    tensor([[2.]])
    """
    if mask is None:
        return x.mean(dim=1)
    real = mask.unsqueeze(-1)
    return x.masked_fill(~real, 0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


def local_features(features: Features, needed_by: str) -> Tensor:
    """The local features, or an error that names the module that needs them."""
    if features.local is None:
        raise InputError(
            f"{needed_by} needs cells or words, but the backbone gave only the pooled vector; "
            "use a backbone with local features, or build the head with local_dim=0 if it allows that"
        )
    return features.local


class AttentionPool(nn.Module):
    """K weighted means over cells or words, a = softmax_cells(w₂ tanh(w₁ x)), without biases.

    Lin et al., "A Structured Self-attentive Sentence Embedding", ICLR 2017, as PVSE and PCME use it.
    x (B, cells, in_dim), mask (B, cells) bool → means (B, K, in_dim) and weights (B, K, cells); padding has weight 0.

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


class GeneralisedPool(nn.Module):
    """Sort the cells of each dimension by size and weight their ranks: Σ_p w_p(n) · (p-th largest of n).

    Chen et al., "Learning the Best Pooling Strategy for Visual Semantic Embedding", CVPR 2021. The weights depend only
    on the rank p and the number of cells n: a small bidirectional GRU reads sinusoids of the ranks; its two directions
    are averaged, mapped to a number and divided by 0.1; then softmax over the n ranks. They are computed once for
    every n that occurs. x (B, cells, d), mask (B, cells) bool → (B, d).

    >>> GeneralisedPool()(torch.ones(2, 5, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, position_dim: int = 32, hidden: int = 32) -> None:
        super().__init__()
        self.position_dim = position_dim
        self.gru = nn.GRU(position_dim, hidden, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(hidden, 1, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        weights, descending, _ = self._sorted(x, mask)
        if mask is not None:
            descending = descending.masked_fill(descending == -torch.inf, 0)
        return (descending @ weights.to(descending.dtype).unsqueeze(2)).squeeze(2)

    def cell_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weight w of each cell in each dimension, (B, d, cells): forward is Σ_cells w · x."""
        weights, descending, order = self._sorted(x, mask)
        return torch.zeros_like(descending).scatter(2, order, weights.to(descending).unsqueeze(1).expand_as(descending))

    def _sorted(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of the ranks (1 or B, cells); the values of each dimension, largest first; and their cells."""
        cells = x.shape[1]
        if mask is None:
            weights = self._weights(torch.tensor([cells]), cells)
        else:
            x = x.masked_fill(~mask.unsqueeze(2), -torch.inf)
            counts, which = torch.unique(mask.sum(dim=1), return_inverse=True)
            weights = self._weights(counts.cpu(), cells)[which]
        descending, order = x.transpose(1, 2).sort(dim=2, descending=True)  # (B, d, cells)
        return weights, descending, order

    def _weights(self, counts: Tensor, cells: int) -> Tensor:
        """counts (u,) on the host → weights (u, cells), 0 beyond each count."""
        positions = _position_codes(int(counts.max()), self.position_dim).to(self.linear.weight)
        packed = pack_padded_sequence(
            positions.expand(len(counts), -1, -1), counts, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=cells)
        forwards, backwards = states.chunk(2, dim=2)
        logits = self.linear((forwards + backwards) / 2).squeeze(2) / 0.1  # (u, cells)
        real = torch.arange(cells) < counts.unsqueeze(1)
        weights: Tensor = logits.masked_fill(~real.to(logits.device), -torch.inf).softmax(dim=1)
        return weights


def _position_codes(n: int, dim: int) -> Tensor:
    rates = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    angles = torch.arange(n).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)  # (n, dim)
