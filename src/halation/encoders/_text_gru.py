"""Captions read by a GRU, as PCME and SGRAF read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from halation._errors import one_of
from halation.data import Features, Tokens
from halation.encoders._gru import BiGRU, Merge, Variant
from halation.encoders._text_words import WordTable
from halation.encoders._vocabulary import Vocabulary

__all__ = ["WordsGRU"]


class WordsGRU(nn.Module):
    """Word vectors and a bidirectional GRU: pooled = its final states (B, hidden).

    `local="words"` gives the word vectors (B, L, dim), over which PCME attends; `local="states"` the GRU's states
    (B, L, hidden), the words of SGR and SAF. `merge` and `variant` are `BiGRU`'s; `hidden` is the width of what comes
    out. `vectors`, `dropout` (of words) and `trainable` are as in `PooledWords`.

    >>> text = WordsGRU(Vocabulary(["dog", "cat"]), dim=8, hidden=16)
    >>> pooled, local, mask = text(text.tokenize(["dog and cat", "dog"]))
    >>> pooled.shape, local.shape
    (torch.Size([2, 16]), torch.Size([2, 3, 8]))
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        hidden: int,
        vectors: Tensor | None = None,
        dropout: float = 0.0,
        *,
        local: Literal["words", "states"] = "words",
        merge: Merge = "concat",
        variant: Variant = "paper",
        trainable: bool = True,
    ) -> None:
        super().__init__()
        one_of(local, ("words", "states"), "local")
        self.vocabulary, self.local = vocabulary, local
        self.pooled_dim, self.local_dim = hidden, dim if local == "words" else hidden
        self.table = WordTable(vocabulary, dim, vectors, dropout=dropout, trainable=trainable)
        self.reader = BiGRU(dim, hidden, merge, variant)

    def tokenize(self, captions: Sequence[str]) -> Tokens:
        """Captions → numbers (B, L)."""
        return self.vocabulary.encode(captions)

    def forward(self, tokens: Tokens) -> Features:
        """tokens (B, L) → pooled (B, hidden), local (B, L, dim or hidden)."""
        words, mask = self.table(tokens)
        states, final = self.reader(words, mask)
        return Features(final, words if self.local == "words" else states, mask)

    def layers(self) -> list[nn.Module]:
        """From the input to the output."""
        return [*self.table.layers(), self.reader]
