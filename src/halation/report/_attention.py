"""Where the heads of a model look, over the cells of a picture and over words; or a sentence why that is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from halation._arrays import FloatArray
from halation.data import Features
from halation.encoders import Encoded, PartEmbedding
from halation.report._explain_reading import Reading
from halation.report._explanation import Attention

__all__ = ["SideAttention", "attention_of", "cells_per_row"]

_NOT_LOOKED = "the model did not look at the picture, so its attention is not known"
_NONE = "this {side} head has no attention"
_NOT_REPORTED = "this {what} does not report its attention"
_NOT_SQUARE = "the attention of this image head is not drawn: its cells do not form a square"
_WORD_PIECES = "the attention of this text head is not shown: it reads pieces of words"


class SideAttention(NamedTuple):
    """The attentions over the picture, or over the words; if there are none, why."""

    attentions: tuple[Attention, ...]
    why_none: str = ""


class _HeadWeights(NamedTuple):
    """Weights (B, heads, cells) by name as a head reports them; without any, `why_none` says why."""

    weights: dict[str, Tensor] | None
    why_none: str


def attention_of(
    model: Any,
    compare: Any,
    encoded: tuple[Encoded, Encoded],
    features: tuple[Features | None, Features],
    reading: Reading,
    tokens: Sequence[str] | None,
) -> tuple[SideAttention, SideAttention]:
    """The attention over the picture and over the words: a scorer's, if it attends to both at once, or each head's.

    encoded    one image and one text
    features   what the backbones gave; None for a picture that the model did not look at
    tokens     the words as the model splits them, which name a scorer's attentions
    """
    image, text = _weights(model, compare, encoded, features)
    return _over_cells(image, features[0], tokens), _over_words(text, reading)


def cells_per_row(local: Tensor | None) -> int | None:
    """How many cells (B, cells, d) a row of the picture has, if they form a square; else None."""
    side = 0 if local is None else math.isqrt(local.shape[1])
    return side if local is not None and side > 1 and side * side == local.shape[1] else None


def _weights(
    model: Any, compare: Any, encoded: tuple[Encoded, Encoded], features: tuple[Features | None, Features]
) -> tuple[_HeadWeights, _HeadWeights]:
    if hasattr(compare, "attentions"):
        image, text = compare.attentions(*encoded)
        return _HeadWeights(image, _NONE.format(side="image")), _HeadWeights(text, _NONE.format(side="text"))
    if isinstance(encoded[0], PartEmbedding):  # nothing is pooled before the scorer, so only it could report
        unknown = _HeadWeights(None, _NOT_REPORTED.format(what="scorer"))
        return unknown, unknown
    return _of_head(model.image, "image", features[0]), _of_head(model.text, "text", features[1])


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


def _over_words(given: _HeadWeights, reading: Reading) -> SideAttention:
    if not given.weights:
        return SideAttention((), given.why_none)
    if reading.tokens is None:
        return SideAttention((), _WORD_PIECES)
    over_tokens = [_attention(of, weights[0]) for of, weights in given.weights.items()]
    return SideAttention(tuple(Attention(a.of, a.heads, reading.gathered(a.weights)) for a in over_tokens))


def _attention(of: str, weights: Tensor, heads: Sequence[str] | None = None) -> Attention:
    """weights (heads, cells)."""
    count = len(weights)
    names = tuple(heads) if heads and len(heads) == count else tuple(str(n + 1) for n in range(count))
    array: FloatArray = weights.double().cpu().numpy()
    return Attention(of, ("",) if count == 1 and not heads else names, array)
