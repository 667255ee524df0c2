"""Cosines of weighted n-gram counts, averaged over references: `tfidf` and `cider`."""

from __future__ import annotations

from typing import Any

import numpy as np

from halation._parallel import kernel
from halation.semantics._grams import Grams
from halation.semantics._inverted_index import InvertedIndex, count_in, merge, scratch
from halation.semantics._scorer import Float32, GramScorer, Rows
from halation.semantics._texts import Indices, Texts
from halation.semantics._weights import Weights, inverse_norms

__all__ = ["Cosine"]


class Cosine(GramScorer):
    """scale · mean over references r and orders n of cos(c_n, r_n), each the counts times their weights.

    The cosine is linear in the unit vector of r, so an image's references are averaged first and each n-gram is walked
    once per image. `tfidf` is the case of single words and scale 1 (Li et al., NeurIPS 2022, call it CIDEr), `cider`
    that of n = 1 … 4 and scale 10 (Vedantam et al., CVPR 2015).
    """

    def __init__(self, texts: Texts, grams: Grams, weights: Weights, scale: float) -> None:
        super().__init__(texts, grams)
        self.weight = weights.of(grams)
        self.inverse = inverse_norms(grams, self.weight)
        self.scale = scale / grams.orders

    def rows(self, index: InvertedIndex) -> Rows:
        postings, order = index.postings, self.grams.order
        gram = np.repeat(index.gram, np.diff(postings.start))  # of each posting
        unit = postings.times * self.weight[gram] * self.inverse[index.captions[postings.column], order[gram]]
        inverse = self.inverse[index.sentence]

        def rows(sets: Indices, out: Float32) -> None:
            _rows(sets, index.references, inverse, self.weight, order, postings, unit, self.scale, out)

        return rows

    def pairs(self, captions: Indices, start: Indices, item: Indices, out: Float32) -> None:
        grams = self.grams
        _pairs(
            captions, start, item, grams.start, grams.gram, grams.count, grams.order, self.weight, self.inverse,
            self.scale, out,
        )  # fmt: skip


@kernel
def _rows(
    sets: Any, references: Any, inverse: Any, weight: Any, order: Any, postings: Any, unit: Any, scale: float, out: Any
) -> None:
    at, slot, gram, count = scratch(references, sets)
    total = np.empty(out.shape[1])
    for i in range(len(sets)):
        first = references.set_start[sets[i]]
        size = references.set_start[sets[i] + 1] - first
        total[:] = 0.0
        for u in range(merge(references, sets[i], at, slot, gram, count)):
            mean = 0.0  # the n-gram's place in the mean of the references' unit vectors
            for r in range(size):
                mean += count[u, r] * inverse[references.set_item[first + r], order[gram[u]]]
            mean *= weight[gram[u]] / size
            if mean > 0.0:
                for p in range(postings.start[slot[u]], postings.start[slot[u] + 1]):
                    total[postings.column[p]] += mean * unit[p]
        for c in range(len(total)):
            out[i, c] = total[c] * scale


@kernel
def _pairs(
    captions: Any, begin: Any, item: Any, start: Any, gram: Any, count: Any, order: Any, weight: Any, inverse: Any,
    scale: float, out: Any,
) -> None:  # fmt: skip
    for k in range(len(captions)):
        caption, total = captions[k], 0.0
        for e in range(start[caption], start[caption + 1]):
            n, mean = order[gram[e]], 0.0
            for r in range(begin[k], begin[k + 1]):
                mean += count_in(start, gram, count, item[r], gram[e]) * inverse[item[r], n]
            total += mean * weight[gram[e]] ** 2 * count[e] * inverse[caption, n]
        out[k] = total * scale / max(1, begin[k + 1] - begin[k])
