"""Words and the whole sentence: a bag of learnt words beside what a frozen sentence encoder understands."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.data import Features, Tokens
from halation.encoders._text_words import PooledWords
from halation.encoders._vocabulary import Vocabulary
from halation.semantics import sentence_encoder

__all__ = ["WordsAndSentence"]

_WIDTH = 384  # of MiniLM's embeddings


class WordsAndSentence(nn.Module):
    """`PooledWords`, and MiniLM's embedding of the caption (frozen, extra `pretrained`) beside them.

    tokens → pooled (B, 2·dim + 384), local (B, L, dim) the word vectors. Embeddings are computed when captions are
    tokenized, once per text (`semantics.sentence_encoder`), so that training costs what words cost.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        vectors: Tensor | None = None,
        dropout: float = 0.15,
        *,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.words = PooledWords(vocabulary, dim, vectors, dropout, trainable=trainable)
        self.pooled_dim, self.local_dim = self.words.pooled_dim + _WIDTH, dim
        self._sentences = sentence_encoder()

    def read_only(self) -> None:
        """From now on new sentences are encoded and forgotten: for searching, where the cache must not grow."""
        self._sentences = sentence_encoder(keep=False)

    def tokenize(self, captions: Sequence[str]) -> Tokens:
        """Captions → numbers (B, L), and their sentence embeddings."""
        tokens = self.words.tokenize(captions)
        return tokens._replace(sentence=torch.from_numpy(self._sentences(captions)))

    def forward(self, tokens: Tokens) -> Features:
        """tokens (B, L) → pooled (B, 2·dim + 384), local (B, L, dim)."""
        if tokens.sentence is None:
            raise InputError("these tokens carry no sentence embeddings; make them with this backbone's tokenize")
        features = self.words(tokens)
        sentence = tokens.sentence.to(features.pooled) * _WIDTH**0.5  # units of length 1 → values about 1
        return Features(torch.cat([features.pooled, sentence], dim=1), features.local, features.mask)

    def layers(self) -> list[nn.Module]:
        """From the input to the output."""
        return self.words.layers()
