"""The interface of every metric, the common part of the n-gram metrics, and the mean of several metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from halation._parallel import over_rows
from halation.semantics._grams import Grams
from halation.semantics._inverted_index import InvertedIndex
from halation.semantics._texts import Indices, ReducedSets, Texts

__all__ = ["Float32", "GramScorer", "Mean", "Rows", "Scorer"]

_SMALL = 1 << 14  # cells: one thread fills a block of this size, a training step at B = 128, faster than several

Float32 = npt.NDArray[np.float32]
Rows = Callable[[Indices, Float32], None]
"""Called as rows(sets, out): scores of every column against each of the sets, (len(sets), columns)."""


class Scorer(Protocol):
    """Scores the captions of one corpus against its images."""

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        """Write the relevance (images, captions) to `out`; None = all captions in order."""

    def to_own_image(self, captions: Indices) -> Float32:
        """The relevance (captions,) of each caption to its image, itself left out; 0 without another reference."""


class GramScorer(ABC):
    """A scorer that walks an inverted index of n-grams."""

    def __init__(self, texts: Texts, grams: Grams) -> None:
        self.texts = texts
        self.grams = grams
        self._whole: tuple[InvertedIndex, Rows] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_whole": None}  # rebuilt on first use

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        if captions is None:
            _, score = self._of_all_captions()
            sets = images
        else:
            index = InvertedIndex.local(self.texts, self.grams, images, captions)
            score = self.rows(index)
            sets = np.arange(len(images))
        alone = 1 if out.size <= _SMALL else None
        over_rows(len(sets), lambda start, stop: score(sets[start:stop], out[start:stop]), at_most=alone)

    def to_own_image(self, captions: Indices) -> Float32:
        out = np.empty(len(captions), dtype=np.float32)
        self.pairs(self.texts.reduced_sets(captions), out)
        return out

    @abstractmethod
    def rows(self, index: InvertedIndex) -> Rows:
        """The kernel over this index, ready to be called on ranges of its sets."""

    @abstractmethod
    def pairs(self, sets: ReducedSets, out: Float32) -> None:
        """Write the score of each caption against its own set of sentences to `out`."""

    def _of_all_captions(self) -> tuple[InvertedIndex, Rows]:
        if self._whole is None:
            index = InvertedIndex.whole(self.texts, self.grams)
            self._whole = index, self.rows(index)
        return self._whole


class Mean:
    """The mean of the parts' matrices, each on 0 … 1 (Li et al., NeurIPS 2022: `tfidf`, `bleu4`, `rouge-l`)."""

    def __init__(self, parts: Sequence[Scorer]) -> None:
        self.parts = parts

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        self.parts[0].block(images, captions, out)
        more = np.empty_like(out)
        for part in self.parts[1:]:
            part.block(images, captions, more)
            out += more
        out /= np.float32(len(self.parts))

    def to_own_image(self, captions: Indices) -> Float32:
        total = self.parts[0].to_own_image(captions)
        for part in self.parts[1:]:
            total += part.to_own_image(captions)
        total /= np.float32(len(self.parts))
        return total
