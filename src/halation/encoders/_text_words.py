"""Captions as word vectors: pooled, read by a GRU, or with an embedding of the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from halation._errors import InputError, one_of
from halation.data import Features, Tokens
from halation.encoders._gru import BiGRU, Merge, Variant
from halation.encoders._vocabulary import Vocabulary
from halation.semantics import sentence_encoder

__all__ = ["PooledWords", "WordTable", "WordsAndSentence", "WordsGRU", "drop_words"]


class WordTable(nn.Module):
    """A vector for every word: (B, L) numbers → (B, L, dim).

    `vectors` (len(vocabulary), d), as `WordVectors.table` gives them, are the initial table. If d is not
    `dim`, a linear map follows. Without `vectors` the table is drawn with standard deviation 1/√dim. `trainable=False`
    keeps the table as it is (the linear map still learns). In training words are left out with probability `dropout`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        vectors: Tensor | None = None,
        *,
        dropout: float = 0.0,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        if vectors is not None and (vectors.ndim != 2 or len(vectors) != len(vocabulary)):
            raise InputError(
                f"vectors has shape {tuple(vectors.shape)}, but the vocabulary needs {len(vocabulary)} rows; "
                "make them with WordVectors.read(source).table(vocabulary)"
            )
        if not 0 <= dropout < 1:
            raise InputError(f"the share of words left out must be in [0, 1), not {dropout}")
        self.dropout = dropout
        width = dim if vectors is None else vectors.shape[1]
        self.embedding = nn.Embedding(len(vocabulary), width, padding_idx=Vocabulary.PADDING)
        with torch.no_grad():
            if vectors is None:
                self.embedding.weight.normal_(std=dim**-0.5)
                self.embedding.weight[Vocabulary.PADDING] = 0
            else:
                self.embedding.weight.copy_(vectors)
        self.embedding.weight.requires_grad_(trainable)
        self.project = nn.Identity() if width == dim else nn.Linear(width, dim)

    def forward(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Word vectors (B, L, dim) and which of them are real (B, L)."""
        if self.training and self.dropout:
            tokens = drop_words(tokens, self.dropout)
        return self.project(self.embedding(tokens.ids)), tokens.mask

    def layers(self) -> list[nn.Module]:
        return [self.embedding] if isinstance(self.project, nn.Identity) else [self.embedding, self.project]


def drop_words(tokens: Tokens, share: float, generator: torch.Generator | None = None) -> Tokens:
    """Captions in which each word is left out with probability `share`; at least one word stays.

    The words that stay move up. Without a generator, torch's global one draws, as in any dropout.
    """
    draws = torch.rand(tokens.ids.shape, generator=generator, device=tokens.ids.device)  # (B, L)
    draws = draws.masked_fill(~tokens.mask, 0)
    kept = tokens.mask & ((draws >= share) | (draws == draws.amax(1, keepdim=True)))
    mask, order = torch.sort(kept, dim=1, descending=True, stable=True)
    longest = int(mask.sum(1).max())
    return tokens._replace(ids=tokens.ids.gather(1, order)[:, :longest], mask=mask[:, :longest])


class PooledWords(nn.Module):
    """Word vectors: pooled = their maximum and mean concatenated, local = the word vectors.

    tokens (B, L) → pooled (B, 2·dim), local (B, L, dim). In training each word is left out with probability `dropout`.

    >>> words = PooledWords(Vocabulary(["dog", "cat"]), dim=8)
    >>> words(words.tokenize(["dog and cat", "dog"])).pooled.shape
    torch.Size([2, 16])
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
        self.pooled_dim, self.local_dim = 2 * dim, dim
        self.table = WordTable(vocabulary, dim, vectors, dropout=dropout, trainable=trainable)

    def tokenize(self, captions: Sequence[str]) -> Tokens:
        """Captions → numbers (B, L)."""
        return self.vocabulary.encode(captions)

    def forward(self, tokens: Tokens) -> Features:
        """tokens (B, L) → pooled (B, 2·dim), local (B, L, dim)."""
        local, mask = self.table(tokens)
        shares = mask.to(local.dtype) / mask.sum(1, keepdim=True)  # (B, L)
        # (B, dim); a product is the fastest mean, forwards and backwards
        mean = torch.bmm(shares[:, None], local).squeeze(1)
        padding = torch.zeros_like(shares).masked_fill_(~mask, -torch.inf)
        highest = (local + padding[:, :, None]).max(1).values
        return Features(torch.cat([highest, mean], dim=1), local, mask)

    def layers(self) -> list[nn.Module]:
        """The layers, from the input to the output."""
        return self.table.layers()


_WIDTH = 384  # of MiniLM's embeddings


class WordsAndSentence(nn.Module):
    """`PooledWords` with MiniLM's embedding of the caption (frozen, extra `pretrained`).

    tokens → pooled (B, 2·dim + 384), local (B, L, dim) the word vectors. Embeddings are computed when captions are
    tokenized, once per text (`semantics.sentence_encoder`), so that training is as fast as with words alone.
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
        """Stop keeping the embeddings of new sentences: for searching, where the cache must not grow."""
        self._sentences = sentence_encoder(keep=False)

    def tokenize(self, captions: Sequence[str]) -> Tokens:
        """Captions → numbers (B, L), and their sentence embeddings."""
        tokens = self.words.tokenize(captions)
        return tokens._replace(sentence=torch.from_numpy(self._sentences(captions)))

    def forward(self, tokens: Tokens) -> Features:
        """tokens (B, L) → pooled (B, 2·dim + 384), local (B, L, dim)."""
        if tokens.sentence is None:
            raise InputError("these tokens have no sentence embeddings; make them with this backbone's tokenize")
        features = self.words(tokens)
        sentence = tokens.sentence.to(features.pooled) * _WIDTH**0.5  # vectors of length 1 → values of about 1
        return Features(torch.cat([features.pooled, sentence], dim=1), features.local, features.mask)

    def layers(self) -> list[nn.Module]:
        """The layers, from the input to the output."""
        return self.words.layers()


class WordsGRU(nn.Module):
    """Word vectors read by a bidirectional GRU: pooled = its final states (B, hidden).

    `local="words"` gives the word vectors (B, L, dim), over which PCME attends; `local="states"` the GRU's states
    (B, L, hidden), which SGR and SAF compare. `merge` and `variant` are those of `BiGRU`; `hidden` is the width of the
    output. `vectors`, `dropout` (of words) and `trainable` are as in `PooledWords`.

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
        """The layers, from the input to the output."""
        return [*self.table.layers(), self.reader]
