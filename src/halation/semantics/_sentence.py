"""Relevance by sentence embeddings: the cosine with each reference, averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from halation._arrays import Array, to_numpy
from halation._errors import InputError
from halation.semantics._scorer import Float32
from halation.semantics._texts import Indices, Texts

__all__ = ["Encoder", "Sentence"]

Encoder = Callable[[list[str]], Array]
"""From n sentences to (n, d) embeddings. `Sentence` normalises them."""


class Sentence:
    """mean over references r of cos(e(c), e(r)), e a sentence encoder; an embedding of zeros has cosine 0."""

    def __init__(self, texts: Texts, encoder: Encoder) -> None:
        self.texts = texts
        self.unit = _unit_vectors(texts.sentences, encoder)  # (sentences, d)
        sums = np.add.reduceat(self.unit[texts.set_item], texts.set_start[:-1], axis=0, dtype=np.float64)
        self.mean = (sums / np.diff(texts.set_start)[:, None]).astype(np.float32)  # (images, d)

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        columns = self.unit[: self.texts.n_captions] if captions is None else self.unit[captions]
        np.matmul(self.mean[images], columns.T, out=out)

    def to_own_image(self, captions: Indices) -> Float32:
        sets = self.texts.reduced_sets(captions)
        size = np.diff(sets.start)
        cosines = np.einsum("rd,rd->r", self.unit[np.repeat(captions, size)], self.unit[sets.item], dtype=np.float64)
        sums = np.diff(np.concatenate([[0.0], np.cumsum(cosines)])[sets.start])
        return (sums / np.maximum(size, 1)).astype(np.float32)


def _unit_vectors(sentences: Sequence[str], encoder: Encoder) -> Float32:
    """The normalised embedding of each sentence, (sentences, d); each different sentence is encoded once."""
    number: dict[str, int] = {}
    positions = np.array([number.setdefault(sentence, len(number)) for sentence in sentences])
    vectors = to_numpy(encoder(list(number))).astype(np.float32)
    if vectors.ndim != 2 or len(vectors) != len(number):
        problem = f"the encoder gave an array of shape {vectors.shape} for {len(number)} sentences"
        raise InputError(problem, remedy=f"return ({len(number)}, d)")
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        bad = int(np.argmin(np.isfinite(norms)))
        raise InputError(f"the encoder gave an embedding that is not finite for {list(number)[bad]!r}")
    units: Float32 = (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)[positions]
    return units
