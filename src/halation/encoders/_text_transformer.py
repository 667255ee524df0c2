"""A small transformer over words, trained from scratch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.data import Features, Tokens
from halation.encoders._text_words import WordTable
from halation.encoders._vocabulary import Vocabulary

__all__ = ["SmallTransformer"]


class SmallTransformer(nn.Module):
    """Word vectors, learnt positions and pre-norm transformer layers (Vaswani et al., 2017; Xiong et al., 2020).

    tokens (B, L) → local (B, L, dim), pooled (B, dim), the mean over real words. Words beyond `positions` are read as
    if they were at the last position. `vectors`, `word_dropout` and `trainable` are those of `PooledWords`; `dropout`
    acts inside the layers.

    >>> text = SmallTransformer(Vocabulary(["dog", "cat"]), dim=8, layers=1, heads=2)
    >>> text(text.tokenize(["dog and cat", "dog"])).pooled.shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        layers: int = 2,
        heads: int = 4,
        vectors: Tensor | None = None,
        *,
        positions: int = 64,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        if dim % heads:
            raise InputError(f"{heads} heads cannot share {dim} dimensions equally; set dim to a multiple of heads")
        self.vocabulary = vocabulary
        self.pooled_dim = self.local_dim = dim
        self.table = WordTable(vocabulary, dim, vectors, dropout=word_dropout, trainable=trainable)
        self.positions = nn.Embedding(positions, dim)
        nn.init.normal_(self.positions.weight, std=0.1 * dim**-0.5)
        self.blocks = nn.ModuleList(_Block(dim, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def tokenize(self, captions: Sequence[str]) -> Tokens:
        """Captions → numbers (B, L)."""
        return self.vocabulary.encode(captions)

    def forward(self, tokens: Tokens) -> Features:
        """tokens (B, L) → pooled (B, dim), local (B, L, dim)."""
        x, mask = self.table(tokens)
        positions = torch.arange(x.shape[1], device=x.device).clamp(max=self.positions.num_embeddings - 1)
        rows = mask.flatten().nonzero()[:, 0]  # only real words are computed: half the work for captions
        real = (x + self.positions(positions)).flatten(0, 1)[rows]  # (words, dim)
        for block in self.blocks:
            real = block(real, rows, mask)
        local = _unpack(self.norm(real), rows, mask)
        return Features(local.sum(1) / mask.sum(1, keepdim=True), local, mask)

    def layers(self) -> list[nn.Module]:
        """The layers, from the input to the output."""
        first = nn.ModuleList([*self.table.layers(), self.positions])
        return [first, *self.blocks, self.norm]


def _unpack(words: Tensor, rows: Tensor, mask: Tensor) -> Tensor:
    """(words, d) → (B, L, d), zero at padding."""
    padded = words.new_zeros(mask.numel(), words.shape[1]).index_copy(0, rows, words)
    return padded.view(*mask.shape, -1)


class _Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)), over the real words of all captions."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.Dropout(dropout))

    def forward(self, x: Tensor, rows: Tensor, mask: Tensor) -> Tensor:
        """x (words, dim), rows (words,) their indices in the flattened mask (B, L)."""
        qkv = _unpack(self.qkv(self.norm1(x)), rows, mask).unflatten(2, (3, self.heads, -1))  # type: ignore[no-untyped-call]
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # (B, heads, L, dim/heads)
        attended = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask[:, None, None, :], dropout_p=self.dropout if self.training else 0.0
        )
        x = x + self.out(attended.transpose(1, 2).flatten(2).flatten(0, 1)[rows])
        result: Tensor = x + self.mlp(self.norm2(x))
        return result
