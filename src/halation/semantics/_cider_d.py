"""CIDEr-D: n-gram cosines with clipped counts and a penalty on the difference of lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from halation._parallel import kernel
from halation.semantics._grams import Grams
from halation.semantics._inverted_index import InvertedIndex, count_in, merge, scratch
from halation.semantics._scorer import Float32, GramScorer, Rows
from halation.semantics._texts import Indices, Texts
from halation.semantics._weights import Weights, inverse_norms

__all__ = ["CiderD"]

_SIGMA = 6.0


class CiderD(GramScorer):
    """What pycocoevalcap's `Cider` computes (Vedantam et al., CVPR 2015), with fixed document frequencies.

        10 · mean_n mean_r exp(−Δ²/(2·6²)) · Σ_g min(h_g, r_g) · r_g / (‖h‖ ‖r‖)

    over the n-grams g of caption h and reference r (counts times weights), n = 1 … 4, Δ the difference of their
    numbers of bigrams. Given an image and an n-gram, what a caption gains depends on how often it has the n-gram and on
    its length alone, times 1/‖h‖: so each n-gram of an image makes a small table, and its captions read from it.
    """

    def __init__(self, texts: Texts, grams: Grams, weights: Weights) -> None:
        super().__init__(texts, grams)
        self.weight = weights.of(grams)
        self.inverse = inverse_norms(grams, self.weight)
        self.bigrams = np.maximum(grams.length - 1, 0)  # the oracle's notion of length
        longest = int(self.bigrams.max(initial=0))
        self.penalty = np.e ** (-(np.arange(longest + 1, dtype=np.float64) ** 2) / (2 * _SIGMA**2))

    def rows(self, index: InvertedIndex) -> Rows:
        postings, order = index.postings, self.grams.order
        gram = np.repeat(index.gram, np.diff(postings.start))  # of each posting
        unit = self.inverse[index.captions[postings.column], order[gram]]
        lengths, bucket = np.unique(self.bigrams[index.captions], return_inverse=True)
        bucket = bucket.astype(np.uint32)
        inverse, length = self.inverse[index.sentence], self.bigrams[index.sentence]

        def rows(sets: Indices, out: Float32) -> None:
            _rows(
                sets, index.references, inverse, length, self.weight, order, postings, unit, bucket, lengths,
                self.penalty, out,
            )  # fmt: skip

        return rows

    def pairs(self, captions: Indices, start: Indices, item: Indices, out: Float32) -> None:
        grams = self.grams
        _pairs(
            captions, start, item, grams.start, grams.gram, grams.count, grams.order, self.weight, self.inverse,
            self.bigrams, self.penalty, out,
        )  # fmt: skip


@kernel
def _gain(counts: Any, worth: Any, size: int, held: int, penalty: Any, bucket: int) -> float:
    """Σ_r min(h, r) · r · weight² / ‖r‖ · penalty for a caption of this length that holds the n-gram so often."""
    gain = 0.0
    for r in range(size):
        gain += min(held, counts[r]) * worth[r] * penalty[r, bucket]
    return gain


@kernel
def _spread(
    counts: Any, worth: Any, size: int, penalty: Any, postings: Any, slot: int, bucket: Any, unit: Any, table: Any,
    total: Any,
) -> None:  # fmt: skip
    """Add what the captions that hold one n-gram gain by it, from a table where they are more than its cells."""
    begin, end, lengths = postings.start[slot], postings.start[slot + 1], penalty.shape[1]
    most = counts[:size].max()
    if end - begin <= most * lengths:
        for p in range(begin, end):
            column = postings.column[p]
            held = np.int64(postings.times[p])
            total[column] += _gain(counts, worth, size, held, penalty, bucket[column]) * unit[p]
        return
    for held in range(most):
        for b in range(lengths):
            table[held * lengths + b] = _gain(counts, worth, size, held + 1, penalty, b)
    for p in range(begin, end):
        column = postings.column[p]
        held = min(most, np.int64(postings.times[p])) - 1
        total[column] += table[held * lengths + bucket[column]] * unit[p]


@kernel
def _rows(
    sets: Any, references: Any, inverse: Any, length: Any, weight: Any, order: Any, postings: Any, unit: Any,
    bucket: Any, lengths: Any, penalty: Any, out: Any,
) -> None:  # fmt: skip
    at, slot, gram, count = scratch(references, sets)
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
            g = gram[u]
            if weight[g] > 0.0:
                for r in range(size):
                    worth[r] = count[u, r] * weight[g] ** 2 * inverse[references.set_item[first + r], order[g]]
                _spread(count[u], worth, size, penalties, postings, slot[u], bucket, unit, table, total)
        for c in range(len(total)):
            out[i, c] = total[c] / 4 / size * 10.0


@kernel
def _pairs(
    captions: Any, begin: Any, item: Any, start: Any, gram: Any, count: Any, order: Any, weight: Any, inverse: Any,
    bigrams: Any, penalty: Any, out: Any,
) -> None:  # fmt: skip
    for k in range(len(captions)):
        caption, total = captions[k], 0.0
        for e in range(start[caption], start[caption + 1]):
            g, gain = gram[e], 0.0
            for r in range(begin[k], begin[k + 1]):
                counted = count_in(start, gram, count, item[r], g)
                worth = counted * weight[g] ** 2 * inverse[item[r], order[g]]
                gain += min(counted, np.int64(count[e])) * worth * penalty[abs(bigrams[caption] - bigrams[item[r]])]
            total += gain * inverse[caption, order[g]]
        out[k] = total / 4 / max(1, begin[k + 1] - begin[k]) * 10.0
