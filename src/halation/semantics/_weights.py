"""Weights of n-grams: inverse document frequencies, fitted on one corpus and looked up for another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel
from halation.semantics._grams import Grams
from halation.semantics._texts import Texts

__all__ = ["Weighting", "Weights"]

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """A weight for every n-gram of the fitted corpus, and one for all others."""

    grams: Grams
    weight: Float64  # (n-grams,)
    unseen: float

    @classmethod
    def by_caption(cls, texts: Texts, grams: Grams) -> Weights:
        """ln((1 + n) / (1 + df)) + 1 over the n captions, as scikit-learn smooths it; an unseen word weighs 0."""
        held = grams.gram[: grams.start[texts.n_captions]]
        df = np.bincount(held, minlength=int(grams.base[-1]))
        idf = np.log((1 + texts.n_captions) / (1 + df)) + 1
        return cls(grams, np.where(df > 0, idf, 0.0), 0.0)

    @classmethod
    def by_image(cls, texts: Texts, grams: Grams) -> Weights:
        """ln N − ln max(1, df), df the number of reference sets among N that hold the n-gram (0 if unseen)."""
        df = _sets_holding(texts.set_start, texts.set_item, grams.start, grams.gram, int(grams.base[-1]))
        whole = np.log(float(texts.n_images))
        return cls(grams, whole - np.log(np.maximum(1.0, df)), float(whole))

    def of(self, grams: Grams) -> Float64:
        """The weight of each n-gram of a corpus, the fitted one or another one."""
        if grams is self.grams:
            return self.weight
        number = grams.numbers_in(self.grams)
        known = np.append(self.weight, self.unseen)  # −1 reads the last
        return known[number]


class Weighting(NamedTuple):
    """The weights of a corpus's n-grams and the norms of its sentences, as a kernel reads them."""

    weight: Float64  # (n-grams,)
    order: npt.NDArray[np.uint8]  # (n-grams,) n − 1
    inverse: Float64  # (sentences, orders) 1 / ‖counts · weights‖; 0 where the norm is 0

    @classmethod
    def of(cls, grams: Grams, weights: Weights) -> Weighting:
        """The weighting of all sentences of a corpus."""
        weight = weights.of(grams)
        norms = np.zeros((len(grams.length), grams.orders))
        _norms(grams.counts, grams.order, weight, norms)
        return cls(weight, grams.order, np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0))

    def for_sentences(self, sentences: npt.NDArray[np.int64]) -> Weighting:
        """The same weights, with the norms of these sentences only."""
        return self._replace(inverse=self.inverse[sentences])


@kernel
def _sets_holding(set_start: Any, set_item: Any, start: Any, gram: Any, size: int) -> Any:
    df = np.zeros(size, dtype=np.int64)
    seen_by = np.full(size, -1, dtype=np.int64)
    for image in range(len(set_start) - 1):
        for sentence in set_item[set_start[image] : set_start[image + 1]]:
            for g in gram[start[sentence] : start[sentence + 1]]:
                if seen_by[g] != image:
                    seen_by[g] = image
                    df[g] += 1
    return df


@kernel
def _norms(counts: Any, order: Any, weight: Any, norms: Any) -> None:
    for s in range(len(counts.start) - 1):
        for e in range(counts.start[s], counts.start[s + 1]):
            gram = counts.gram[e]
            norms[s, order[gram]] += (counts.times[e] * weight[gram]) ** 2
        norms[s] = np.sqrt(norms[s])
