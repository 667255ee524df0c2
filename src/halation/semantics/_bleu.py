"""BLEU-1 … BLEU-4 of a caption against a reference set, smoothed as captioning smooths it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel
from halation.semantics._inverted_index import InvertedIndex, Postings, count_in, merge, scratch
from halation.semantics._scorer import Float32, GramScorer, Rows
from halation.semantics._texts import Indices, ReducedSets

__all__ = ["Bleu"]

_TINY, _SMALL = 1e-15, 1e-9
_CELL_BITS = 11  # of the cache of values
_MIX = np.uint64(0x9E3779B97F4A7C15)


class _Captions(NamedTuple):
    """The captions of an index, by n-gram and by length."""

    postings: Postings
    length: Indices  # (columns,) in tokens
    lengths: Indices  # the different lengths, rising
    bucket: npt.NDArray[np.uint32]  # (columns,) the length of each caption, as a position in `lengths`


class Bleu(GramScorer):
    """BLEU-k as pycocoevalcap computes it for one sentence (Papineni et al., ACL 2002).

        (Π_{n≤k} (clipped_n + 1e-15)/(guess_n + 1e-9))^{1/k} · min(1, exp(1 − 1/ratio)),
        ratio = (length + 1e-15)/(closest reference length + 1e-9)

    k is the number of orders of the n-grams. Clipped counts are integers of at most 16 bits, so the four of them
    share one 64-bit sum. The formula is then evaluated in the oracle's order of operations, so that even values that
    are nothing but smoothing rank as they do there.
    """

    def rows(self, index: InvertedIndex) -> Rows:
        order = self.grams.order[index.gram]  # of each slot
        reference_length, length = self.grams.length[index.sentence], self.grams.length[index.captions]
        lengths, bucket = np.unique(length, return_inverse=True)
        captions = _Captions(index.postings, length, lengths, bucket.astype(np.uint32))

        def rows(sets: Indices, out: Float32) -> None:
            _rows(sets, index.references, reference_length, captions, order, self.grams.orders, out)

        return rows

    def pairs(self, sets: ReducedSets, out: Float32) -> None:
        grams = self.grams
        _pairs(sets, grams.counts, grams.order, grams.length, grams.orders, out)


@kernel
def _brevity(length: int, closest: int) -> float:
    ratio = (length + _TINY) / (closest + _SMALL)
    return math.exp(1 - 1 / ratio) if ratio < 1 else 1.0


@kernel
def _closer(length: int, one: int, other: int) -> int:
    """The closer of two reference lengths to `length`; the shorter if both are as close. `one` may be −1 for none."""
    if one < 0 or (abs(other - length), other) < (abs(one - length), one):
        return other
    return one


@kernel
def _bleu(clipped: Any, length: int, orders: int) -> float:
    """The smoothed geometric mean, from four 16-bit counts in one integer."""
    product = 1.0
    for n in range(orders):
        product *= (float(np.int64((clipped >> np.uint64(16 * n)) & np.uint64(65535))) + _TINY) / (
            float(max(0, length - n)) + _SMALL
        )
    if orders == 1:
        return product
    if orders == 2:
        return math.sqrt(product)
    if orders == 4:
        return math.sqrt(math.sqrt(product))
    return math.pow(product, 1.0 / orders)


@kernel
def _rows(sets: Any, references: Any, reference_length: Any, captions: Any, order: Any, orders: int, out: Any) -> None:
    at, slot, gram, count = scratch(references, sets)
    postings, length, lengths, bucket = captions
    clipped = np.empty(out.shape[1], dtype=np.uint64)
    brevity = np.empty(len(lengths))
    known, known_length = np.zeros(1 << _CELL_BITS, dtype=np.uint64), np.full(1 << _CELL_BITS, -1)
    value = np.empty(1 << _CELL_BITS)
    for i in range(len(sets)):
        first = references.set_start[sets[i]]
        size = references.set_start[sets[i] + 1] - first
        clipped[:] = 0
        for u in range(merge(references, sets[i], at, slot, gram, count)):
            most = count[u, :size].max()
            one = np.uint64(1) << np.uint64(16 * order[slot[u]])
            if most == 1:
                for p in range(postings.start[slot[u]], postings.start[slot[u] + 1]):
                    clipped[postings.column[p]] += one
            else:
                for p in range(postings.start[slot[u]], postings.start[slot[u] + 1]):
                    clipped[postings.column[p]] += one * np.uint64(min(most, np.int64(postings.times[p])))
        for b in range(len(lengths)):
            closest = -1
            for r in range(size):
                closest = _closer(lengths[b], closest, reference_length[references.set_item[first + r]])
            brevity[b] = _brevity(lengths[b], closest)
        for c in range(len(clipped)):
            # few combinations of counts and length occur, and often: keep the last of each cell
            cell = ((clipped[c] ^ (np.uint64(length[c]) << np.uint64(48))) * _MIX) >> np.uint64(64 - _CELL_BITS)
            if known[cell] != clipped[c] or known_length[cell] != length[c]:
                known[cell], known_length[cell] = clipped[c], length[c]
                value[cell] = _bleu(clipped[c], length[c], orders)
            out[i, c] = value[cell] * brevity[bucket[c]]


@kernel
def _pairs(sets: Any, counts: Any, order: Any, length: Any, orders: int, out: Any) -> None:
    for k in range(len(sets.caption)):
        caption, clipped, closest = sets.caption[k], np.uint64(0), -1
        references = sets.item[sets.start[k] : sets.start[k + 1]]
        for sentence in references:
            closest = _closer(length[caption], closest, length[sentence])
        for e in range(counts.start[caption], counts.start[caption + 1]):
            gram, most = counts.gram[e], 0
            for sentence in references:
                most = max(most, count_in(counts, sentence, gram))
            clipped += np.uint64(min(most, np.int64(counts.times[e]))) << np.uint64(16 * order[gram])
        out[k] = 0.0
        if closest >= 0:
            out[k] = _bleu(clipped, length[caption], orders) * _brevity(length[caption], closest)
