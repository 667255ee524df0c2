"""CIDEr-D: n-gram cosines with clipped counts and a penalty on the difference of lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel
from halation.semantics._grams import Grams
from halation.semantics._inverted_index import InvertedIndex, Postings, count_in, merge, scratch
from halation.semantics._scorer import Float32, GramScorer, Rows
from halation.semantics._texts import Indices, ReducedSets, Texts
from halation.semantics._weights import Weighting, Weights

__all__ = ["CiderD"]

_SIGMA = 6.0


class _Captions(NamedTuple):
    """The captions of an index, by n-gram and by length."""

    postings: Postings
    unit: npt.NDArray[np.float64]  # (postings,) 1 / ‖h‖ of the caption, at the order of the n-gram
    lengths: Indices  # the different lengths, rising
    bucket: npt.NDArray[np.uint32]  # (columns,) the length of each caption, as a position in `lengths`


class CiderD(GramScorer):
    """CIDEr-D as pycocoevalcap's `Cider` computes it (Vedantam et al., CVPR 2015), with fixed document frequencies.

        10 · mean_n mean_r exp(−Δ²/(2·6²)) · Σ_g min(h_g, r_g) · r_g / (‖h‖ ‖r‖)

    over the n-grams g of caption h and reference r (counts times weights), n = 1 … 4, Δ the difference of their
    numbers of bigrams. Given an image and an n-gram, the gain of a caption depends only on its length and on how often
    it has the n-gram, times 1/‖h‖. So each n-gram of an image makes a small table, and the captions read from it.
    """

    def __init__(self, texts: Texts, grams: Grams, weights: Weights) -> None:
        super().__init__(texts, grams)
        self.weighting = Weighting.of(grams, weights)
        self.bigrams = np.maximum(grams.length - 1, 0)  # the length, as the oracle counts it
        longest = int(self.bigrams.max(initial=0))
        self.penalty = np.e ** (-(np.arange(longest + 1, dtype=np.float64) ** 2) / (2 * _SIGMA**2))

    def rows(self, index: InvertedIndex) -> Rows:
        postings = index.postings
        gram = np.repeat(index.gram, np.diff(postings.start))  # of each posting
        unit = self.weighting.inverse[index.captions[postings.column], self.weighting.order[gram]]
        lengths, bucket = np.unique(self.bigrams[index.captions], return_inverse=True)
        captions = _Captions(postings, unit, lengths, bucket.astype(np.uint32))
        weighting, length = self.weighting.for_sentences(index.sentence), self.bigrams[index.sentence]

        def rows(sets: Indices, out: Float32) -> None:
            _rows(sets, index.references, weighting, length, captions, self.penalty, out)

        return rows

    def pairs(self, sets: ReducedSets, out: Float32) -> None:
        _pairs(sets, self.grams.counts, self.weighting, self.bigrams, self.penalty, out)


@kernel
def _gain(counts: Any, worth: Any, size: int, held: int, penalty: Any, bucket: int) -> float:
    """Σ_r min(h, r) · r · weight² / ‖r‖ · penalty, for a caption of this length that holds the n-gram `held` times."""
    gain = 0.0
    for r in range(size):
        gain += min(held, counts[r]) * worth[r] * penalty[r, bucket]
    return gain


@kernel
def _rows(sets: Any, references: Any, weighting: Any, length: Any, captions: Any, penalty: Any, out: Any) -> None:
    at, slot, gram, count = scratch(references, sets)
    postings, unit, lengths, bucket = captions
    total, table = np.empty(out.shape[1]), np.empty(out.shape[1])
    worth, penalties = np.empty(len(at)), np.empty((len(at), len(lengths)))
    for i in range(len(sets)):
        first = references.set_start[sets[i]]
        size = references.set_start[sets[i] + 1] - first
        for r in range(size):
            for b in range(len(lengths)):
                penalties[r, b] = penalty[abs(lengths[b] - length[references.set_item[first + r]])]
        total[:] = 0.0
        for u in range(merge(references, sets[i], at, slot, gram, count)):
            weight, n = weighting.weight[gram[u]], weighting.order[gram[u]]
            if weight <= 0.0:
                continue
            for r in range(size):
                worth[r] = count[u, r] * weight**2 * weighting.inverse[references.set_item[first + r], n]
            begin, end = postings.start[slot[u]], postings.start[slot[u] + 1]
            most = count[u, :size].max()
            tabulated = end - begin > most * len(lengths)  # the table has fewer cells than there are captions
            if tabulated:
                for held in range(most):
                    for b in range(len(lengths)):
                        table[held * len(lengths) + b] = _gain(count[u], worth, size, held + 1, penalties, b)
            for p in range(begin, end):
                column, held = postings.column[p], min(most, np.int64(postings.times[p]))
                if tabulated:
                    total[column] += table[(held - 1) * len(lengths) + bucket[column]] * unit[p]
                else:
                    total[column] += _gain(count[u], worth, size, held, penalties, bucket[column]) * unit[p]
        for c in range(len(total)):
            out[i, c] = total[c] / 4 / size * 10.0


@kernel
def _pairs(sets: Any, counts: Any, weighting: Any, bigrams: Any, penalty: Any, out: Any) -> None:
    for k in range(len(sets.caption)):
        caption, total = sets.caption[k], 0.0
        for e in range(counts.start[caption], counts.start[caption + 1]):
            gram, held, gain = counts.gram[e], np.int64(counts.times[e]), 0.0
            n = weighting.order[gram]
            for sentence in sets.item[sets.start[k] : sets.start[k + 1]]:
                counted = count_in(counts, sentence, gram)
                worth = counted * weighting.weight[gram] ** 2 * weighting.inverse[sentence, n]
                gain += min(counted, held) * worth * penalty[abs(bigrams[caption] - bigrams[sentence])]
            total += gain * weighting.inverse[caption, n]
        out[k] = total / 4 / max(1, sets.start[k + 1] - sets.start[k]) * 10.0
