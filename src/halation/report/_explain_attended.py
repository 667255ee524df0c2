"""Where heads look: over the cells of the picture and over the words; or, in words, why that is not known."""

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

__all__ = ["Attended", "attended", "square"]

_NOT_LOOKED = "the picture was not looked at, so where its head looks is not known"
_NOTHING = "this {side} head attends to nothing"
_SILENT = "this {what} does not say where it looks"
_NO_SQUARE = "where this image head looks is not drawn: its cells are not those of a square"
_PIECES = "what this text head looks at is not told: it reads pieces of words"


class Attended(NamedTuple):
    """The attentions of one side; where there are none, why."""

    attentions: tuple[Attention, ...]
    why_none: str = ""


class Given(NamedTuple):
    """What a head says of itself: weights (B, heads, cells) by name, or None and why it says nothing."""

    weights: dict[str, Tensor] | None
    why: str


def attended(
    model: Any,
    compare: Any,
    encoded: tuple[Encoded, Encoded],
    features: tuple[Features | None, Features],
    reading: Reading,
    heard: Sequence[str] | None,
) -> tuple[Attended, Attended]:
    """Of one image and one text: of the scorer, where it looks at both at once, otherwise of each head.

    features   what the backbones gave; None of a picture that was not looked at
    heard      the words as the model splits them, by which a scorer's attentions are named
    """
    image, text = _given(model, compare, encoded, features)
    return _on_cells(image, features[0], heard), _on_words(text, reading)


def square(local: Tensor | None) -> int | None:
    """How many cells there are in a row, where they are those of a square picture."""
    side = 0 if local is None else math.isqrt(local.shape[1])
    return side if local is not None and side > 1 and side * side == local.shape[1] else None


def _given(
    model: Any, compare: Any, encoded: tuple[Encoded, Encoded], features: tuple[Features | None, Features]
) -> tuple[Given, Given]:
    if hasattr(compare, "attentions"):
        image, text = compare.attentions(*encoded)
        return Given(image, _NOTHING.format(side="image")), Given(text, _NOTHING.format(side="text"))
    if isinstance(encoded[0], PartEmbedding):  # nothing is pooled before the scorer: it alone could tell
        silent = Given(None, _SILENT.format(what="scorer"))
        return silent, silent
    return _of_head(model.image, "image", features[0]), _of_head(model.text, "text", features[1])


def _of_head(side: Any, name: str, features: Features | None) -> Given:
    says = getattr(getattr(side, "head", None), "attentions", None)  # a head of one's own need not say
    if says is None:
        return Given(None, _SILENT.format(what=f"{name} head"))
    return Given(None if features is None else says(features), _NOTHING.format(side=name))


def _on_cells(given: Given, features: Features | None, heard: Sequence[str] | None) -> Attended:
    if features is None:
        return Attended((), _NOT_LOOKED)
    if not given.weights:
        return Attended((), given.why)
    side = square(features.local)
    if side is None:
        return Attended((), _NO_SQUARE)
    named = {"each word": heard}
    found = [_attention(of, weights[0], named.get(of)) for of, weights in given.weights.items()]
    return Attended(tuple(Attention(a.of, a.heads, a.weights.reshape(-1, side, side)) for a in found))


def _on_words(given: Given, reading: Reading) -> Attended:
    if not given.weights:
        return Attended((), given.why)
    if reading.tokens is None:
        return Attended((), _PIECES)
    found = [_attention(of, weights[0]) for of, weights in given.weights.items()]
    return Attended(tuple(Attention(a.of, a.heads, reading.gathered(a.weights)) for a in found))


def _attention(of: str, weights: Tensor, heads: Sequence[str] | None = None) -> Attention:
    """weights (heads, cells)."""
    count = len(weights)
    names = tuple(heads) if heads and len(heads) == count else tuple(str(n + 1) for n in range(count))
    array: FloatArray = weights.double().cpu().numpy()
    return Attention(of, ("",) if count == 1 and not heads else names, array)
