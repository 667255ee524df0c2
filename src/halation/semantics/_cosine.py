"""Cosines of weighted n-gram counts, averaged over references: `tfidf` and `cider`."""

from __future__ import annotations

from typing import Any

import numpy as np

from halation._parallel import kernel
from halation.semantics._grams import Grams
from halation.semantics._inverted_index import InvertedIndex, count_in, merge, scratch
from halation.semantics._scorer import Float32, GramScorer, Rows
from halation.semantics._texts import Indices, ReducedSets, Texts
from halation.semantics._weights import Weighting, Weights

__all__ = ["Cosine"]


class Cosine(GramScorer):
    """scale · mean over references r and orders n of cos(c_n, r_n), each the counts times their weights.

    The cosine is linear in the unit vector of r, so an image's references are averaged first and each n-gram is walked
    once per image. `tfidf` is the case of single words and scale 1 (Li et al., NeurIPS 2022, call it CIDEr), `cider`
    that of n = 1 … 4 and scale 10 (Vedantam et al., CVPR 2015).
    """

    def __init__(self, texts: Texts, grams: Grams, weights: Weights, scale: float) -> None:
        super().__init__(texts, grams)
        self.weighting = Weighting.of(grams, weights)
        self.scale = scale / grams.orders

    def rows(self, index: InvertedIndex) -> Rows:
        postings, (weight, order, inverse) = index.postings, self.weighting
        gram = np.repeat(index.gram, np.diff(postings.start))  # of each posting
        unit = postings.times * weight[gram] * inverse[index.captions[postings.column], order[gram]]
        weighting = self.weighting.for_sentences(index.sentence)

        def rows(sets: Indices, out: Float32) -> None:
            _rows(sets, index.references, weighting, postings, unit, self.scale, out)

        return rows

    def pairs(self, sets: ReducedSets, out: Float32) -> None:
        _pairs(sets, self.grams.counts, self.weighting, self.scale, out)


@kernel
def _rows(sets: Any, references: Any, weighting: Any, postings: Any, unit: Any, scale: float, out: Any) -> None:
    at, slot, gram, count = scratch(references, sets)
    total = np.empty(out.shape[1])
    for i in range(len(sets)):
        first = references.set_start[sets[i]]
        size = references.set_start[sets[i] + 1] - first
        total[:] = 0.0
        for u in range(merge(references, sets[i], at, slot, gram, count)):
            mean = 0.0  # of the references' unit vectors, at this n-gram
            for r in range(size):
                mean += count[u, r] * weighting.inverse[references.set_item[first + r], weighting.order[gram[u]]]
            mean *= weighting.weight[gram[u]] / size
            if mean > 0.0:
                for p in range(postings.start[slot[u]], postings.start[slot[u] + 1]):
                    total[postings.column[p]] += mean * unit[p]
        for c in range(len(total)):
            out[i, c] = total[c] * scale


@kernel
def _pairs(sets: Any, counts: Any, weighting: Any, scale: float, out: Any) -> None:
    for k in range(len(sets.caption)):
        caption, total = sets.caption[k], 0.0
        for e in range(counts.start[caption], counts.start[caption + 1]):
            gram = counts.gram[e]
            n, mean = weighting.order[gram], 0.0
            for sentence in sets.item[sets.start[k] : sets.start[k + 1]]:
                mean += count_in(counts, sentence, gram) * weighting.inverse[sentence, n]
            total += mean * weighting.weight[gram] ** 2 * counts.times[e] * weighting.inverse[caption, n]
        out[k] = total * scale / max(1, sets.start[k + 1] - sets.start[k])
