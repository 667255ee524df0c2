"""Graded relevances for ASP. Each is a `ScoreSource`, read in the same blocks as the scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import numpy as np

from halation._arrays import Array, FloatArray, IntArray, to_numpy
from halation.data import Truth
from halation.evaluation._sources import ScoreMatrix, ScoreSource, check_shape
from halation.semantics import MEAN_OF, Corpus, Semantics

__all__ = ["relevance_sources"]


class CaptionRelevance:
    """Relevance by captions, computed block by block, never as a whole matrix."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    @property
    def shape(self) -> tuple[int, int]:
        return self._corpus.n_images, self._corpus.n_captions

    def i2t(self, images: IntArray) -> FloatArray:
        if _consecutive(images):
            return self._corpus.rows(int(images[0]), int(images[-1]) + 1)
        return self._corpus.block(images, np.arange(self._corpus.n_captions))

    def t2i(self, captions: IntArray) -> FloatArray:
        return np.asarray(self._corpus.block(np.arange(self._corpus.n_images), captions).T)

    def subset(self, images: IntArray, captions: IntArray) -> ScoreSource:
        return ScoreMatrix(self._corpus.block(images, captions))


class MeanRelevance:
    """The mean of several relevances: matrices are averaged, not scores."""

    def __init__(self, parts: tuple[ScoreSource, ...]) -> None:
        self._parts = parts

    @property
    def shape(self) -> tuple[int, int]:
        return self._parts[0].shape

    def i2t(self, images: IntArray) -> FloatArray:
        return _mean([part.i2t(images) for part in self._parts])

    def t2i(self, captions: IntArray) -> FloatArray:
        return _mean([part.t2i(captions) for part in self._parts])

    def subset(self, images: IntArray, captions: IntArray) -> ScoreSource:
        return MeanRelevance(tuple(part.subset(images, captions) for part in self._parts))


class KeepLast:
    """Keeps the last block of each direction, so that `mean` and its parts compute it once."""

    def __init__(self, source: ScoreSource) -> None:
        self._source = source
        self._last: dict[str, tuple[IntArray, FloatArray]] = {}
        self._subsets: list[tuple[IntArray, IntArray, ScoreSource]] = []

    @property
    def shape(self) -> tuple[int, int]:
        return self._source.shape

    def i2t(self, images: IntArray) -> FloatArray:
        return self._cached("i2t", images, self._source.i2t)

    def t2i(self, captions: IntArray) -> FloatArray:
        return self._cached("t2i", captions, self._source.t2i)

    def subset(self, images: IntArray, captions: IntArray) -> ScoreSource:
        for old_images, old_captions, source in self._subsets:
            if np.array_equal(old_images, images) and np.array_equal(old_captions, captions):
                return source
        self._subsets = [(images, captions, KeepLast(self._source.subset(images, captions)))]
        return self._subsets[0][2]

    def _cached(self, direction: str, queries: IntArray, compute: Callable[[IntArray], FloatArray]) -> FloatArray:
        last = self._last.get(direction)
        if last is None or not np.array_equal(last[0], queries):
            last = self._last[direction] = (queries, compute(queries))
        return last[1]


def relevance_sources(
    names: list[str], truth: Truth, custom: Mapping[str, Array], tokenizer: str | None
) -> tuple[dict[str, ScoreSource], dict[str, str]]:
    """A source for each named relevance, and a description of each for the report."""
    sources: dict[str, ScoreSource] = {}
    descriptions: dict[str, str] = {}
    parts: dict[str, tuple[ScoreSource, str]] = {}

    def part(name: str) -> tuple[ScoreSource, str]:
        if name not in parts:
            assert truth.captions is not None
            semantics = Semantics.fit(truth.captions, truth.image_of, name, tokenizer=tokenizer)
            parts[name] = KeepLast(CaptionRelevance(semantics.corpus())), semantics.description
        return parts[name]

    for name in names:
        if name in custom:
            matrix = ScoreMatrix(custom[name], f"relevance {name!r}")
            check_shape(matrix, truth, f"relevance {name!r}: its scores")
            sources[name], descriptions[name] = matrix, f"{name} (your own, {_digest(custom[name])})"
        elif name == "mean":
            sources[name] = MeanRelevance(tuple(part(each)[0] for each in MEAN_OF))
            descriptions[name] = "mean of " + ", ".join(part(each)[1] for each in MEAN_OF)
        else:
            sources[name], descriptions[name] = part(name)
    return sources, descriptions


def _digest(matrix: Array) -> str:
    """A digest that tells two relevances of the same name apart when reports are compared."""
    return hashlib.blake2b(np.ascontiguousarray(to_numpy(matrix)).tobytes(), digest_size=8).hexdigest()


def _mean(blocks: list[FloatArray]) -> FloatArray:
    total = blocks[0].copy()  # in float32 and in this order, as `caption_relevance(metric="mean")` adds them
    for block in blocks[1:]:
        total += block
    total /= np.float32(len(blocks))
    return np.asarray(total)


def _consecutive(indices: IntArray) -> bool:
    return bool(len(indices)) and bool((np.diff(indices) == 1).all())
