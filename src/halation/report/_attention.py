"""Where the heads of a model look, over the cells of a picture and over words; or why that is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from halation._arrays import FloatArray
from halation.data import Features
from halation.encoders import Encoded, Model, PartEmbedding
from halation.report._explanation import Attention

__all__ = ["SideAttention", "TextWords", "attention_of", "cells_per_row", "split_words"]

_NOT_LOOKED = "the model did not look at the picture, so its attention is not known"
_NONE = "this {side} head has no attention"
_NOT_REPORTED = "this {what} does not report its attention"
_NOT_SQUARE = "the attention of this image head is not drawn: its cells do not form a square"
_WORD_PIECES = "the attention of this text head is not shown: it reads pieces of words"


class TextWords(NamedTuple):
    """A text split into words.

    words     split at white space; or the model's tokens, if it splits the text in another way
    tokens    the positions of each word's tokens, empty for a word that the model skips ("a"); None if it reads word
              pieces
    without   the text without each word
    """

    words: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...] | None
    without: tuple[str, ...]

    def sum_tokens(self, weights: FloatArray) -> FloatArray:
        """(heads, tokens) → (heads, words): the weight of a word is the sum over its tokens."""
        sums = np.zeros((len(weights), len(self.words)))
        for word, positions in enumerate(self.tokens or ()):
            sums[:, word] = weights[:, list(positions)].sum(1)
        return sums


def split_words(text: str, model: Model) -> TextWords:
    """The words of a text, each with the tokens that the model makes of it: one, several or none."""
    words = text.split()
    whole, each = model.texts.words(text), [model.texts.words(word) for word in words]
    if whole is None:
        return TextWords(tuple(words), None, _without(words))
    positions, start = [], 0
    for tokens in each:
        positions.append(tuple(range(start, start + len(tokens or ()))))
        start += len(tokens or ())
    if [token for tokens in each for token in tokens or ()] != whole:  # some tokenizers read "can not" as one word
        words, positions = whole, [(position,) for position in range(len(whole))]
    return TextWords(tuple(words), tuple(positions), _without(words))


def _without(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join([*words[:left_out], *words[left_out + 1 :]]) for left_out in range(len(words)))


class SideAttention(NamedTuple):
    """The attentions over the picture, or over the words; if there are none, why."""

    attentions: tuple[Attention, ...]
    why_none: str = ""


class _HeadWeights(NamedTuple):
    """Weights (B, heads, cells) by name as a head reports them; without any, `why_none` says why."""

    weights: dict[str, Tensor] | None
    why_none: str


def attention_of(
    network: Any,
    compare: Any,
    encoded: tuple[Encoded, Encoded],
    features: tuple[Features | None, Features],
    words: TextWords,
    tokens: Sequence[str] | None,
) -> tuple[SideAttention, SideAttention]:
    """The attention over the picture and over the words: a scorer's, if it attends to both at once, or each head's.

    encoded    one image and one text
    features   what the backbones gave; None for a picture that the model did not look at
    tokens     the words as the model splits them, which name a scorer's attentions
    """
    image, text = _weights(network, compare, encoded, features)
    return _over_cells(image, features[0], tokens), _over_words(text, words)


def cells_per_row(local: Tensor | None) -> int | None:
    """How many cells (B, cells, d) a row of the picture has, if they form a square; else None."""
    side = 0 if local is None else math.isqrt(local.shape[1])
    return side if local is not None and side > 1 and side * side == local.shape[1] else None


def _weights(
    network: Any, compare: Any, encoded: tuple[Encoded, Encoded], features: tuple[Features | None, Features]
) -> tuple[_HeadWeights, _HeadWeights]:
    if hasattr(compare, "attentions"):
        image, text = compare.attentions(*encoded)
        return _HeadWeights(image, _NONE.format(side="image")), _HeadWeights(text, _NONE.format(side="text"))
    if isinstance(encoded[0], PartEmbedding):  # nothing is pooled before the scorer, so only it could report
        unknown = _HeadWeights(None, _NOT_REPORTED.format(what="scorer"))
        return unknown, unknown
    return _of_head(network.image, "image", features[0]), _of_head(network.text, "text", features[1])


def _of_head(side: Any, name: str, features: Features | None) -> _HeadWeights:
    attentions = getattr(getattr(side, "head", None), "attentions", None)  # your own head need not have it
    if attentions is None:
        return _HeadWeights(None, _NOT_REPORTED.format(what=f"{name} head"))
    return _HeadWeights(None if features is None else attentions(features), _NONE.format(side=name))


def _over_cells(given: _HeadWeights, features: Features | None, tokens: Sequence[str] | None) -> SideAttention:
    if features is None:
        return SideAttention((), _NOT_LOOKED)
    if not given.weights:
        return SideAttention((), given.why_none)
    side = cells_per_row(features.local)
    if side is None:
        return SideAttention((), _NOT_SQUARE)
    head_names = {"each word": tokens}
    flat = [_attention(of, weights[0], head_names.get(of)) for of, weights in given.weights.items()]
    return SideAttention(tuple(Attention(a.of, a.heads, a.weights.reshape(-1, side, side)) for a in flat))


def _over_words(given: _HeadWeights, words: TextWords) -> SideAttention:
    if not given.weights:
        return SideAttention((), given.why_none)
    if words.tokens is None:
        return SideAttention((), _WORD_PIECES)
    over_tokens = [_attention(of, weights[0]) for of, weights in given.weights.items()]
    return SideAttention(tuple(Attention(a.of, a.heads, words.sum_tokens(a.weights)) for a in over_tokens))


def _attention(of: str, weights: Tensor, heads: Sequence[str] | None = None) -> Attention:
    """weights (heads, cells)."""
    count = len(weights)
    names = tuple(heads) if heads and len(heads) == count else tuple(str(n + 1) for n in range(count))
    array: FloatArray = weights.double().cpu().numpy()
    return Attention(of, ("",) if count == 1 and not heads else names, array)
