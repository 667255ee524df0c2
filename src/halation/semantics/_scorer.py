"""What every metric offers a corpus, and what the metrics on n-grams share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from halation._parallel import over_rows
from halation.semantics._grams import Grams
from halation.semantics._index import Index
from halation.semantics._texts import Indices, Texts

__all__ = ["Float32", "GramScorer", "Scorer"]

_SMALL = 1 << 14  # cells of a block that one thread fills sooner than it wakes others: a step's at B = 128

Float32 = npt.NDArray[np.float32]
Rows = Callable[[Indices, Float32], None]
"""Called as rows(sets, out): scores of every column against each of the sets, (len(sets), columns)."""


class Scorer(Protocol):
    """Scores the captions of one corpus against its images."""

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        """Write the relevance (images, captions) to `out`; None = all captions in order."""

    def own(self, captions: Indices) -> Float32:
        """(captions,) relevance of each to its own image when it is not its own reference; 0 if no other is left."""


class GramScorer(ABC):
    """A scorer that walks an inverted index of n-grams."""

    def __init__(self, texts: Texts, grams: Grams) -> None:
        self.texts = texts
        self.grams = grams
        self._whole: tuple[Index, Rows] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_whole": None}  # made again where it is needed

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        if captions is None:
            _, score = self._of_all_captions()
            sets = images
        else:
            index = Index.local(self.texts, self.grams, images, captions)
            score = self.rows(index)
            sets = np.arange(len(images))
        alone = 1 if out.size <= _SMALL else None
        over_rows(len(sets), lambda start, stop: score(sets[start:stop], out[start:stop]), at_most=alone)

    def own(self, captions: Indices) -> Float32:
        start, item = self.texts.reduced_sets(captions)
        out = np.empty(len(captions), dtype=np.float32)
        self.pairs(captions, start, item, out)
        return out

    @abstractmethod
    def rows(self, index: Index) -> Rows:
        """The kernel over this index, ready to be called on ranges of its sets."""

    @abstractmethod
    def pairs(self, captions: Indices, start: Indices, item: Indices, out: Float32) -> None:
        """Each caption against its own set of sentences, item[start[k] : start[k + 1]]."""

    def _of_all_captions(self) -> tuple[Index, Rows]:
        if self._whole is None:
            index = Index.whole(self.texts, self.grams)
            self._whole = index, self.rows(index)
        return self._whole
