"""One fold, one direction: a block of queries is read and sorted once, and every metric is taken from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from halation._arrays import FloatArray, IntArray
from halation.data import Direction, Truth
from halation.evaluation._report import CEILING
from halation.evaluation._sources import Source
from halation.evaluation._specs import Spec
from halation.metrics._asp import asp_of, ceiling_of
from halation.metrics._average_precision import average_precision_of, map_at_r_of
from halation.metrics._best_rank import best_rank_of, hit_at_of
from halation.metrics._blocks import row_blocks
from halation.metrics._hits import Hits, hits_of
from halation.metrics._ndcg import ndcg_at_of
from halation.metrics._pmrp import as_codes, pmrp_of
from halation.metrics._precision import precision_at_of, r_precision_of, recall_at_of
from halation.metrics._ranking import Ranking, rank, restrict

__all__ = ["Fold", "measure"]

# how each yes-or-no metric is read from the ranks of the positives
_READ: dict[str, Callable[[Hits, Spec], FloatArray]] = {
    "R@": lambda hits, spec: hit_at_of(hits, spec.k),
    "Recall@": lambda hits, spec: recall_at_of(hits, spec.k),
    "P@": lambda hits, spec: precision_at_of(hits, spec.k),
    "MedR": lambda hits, spec: best_rank_of(hits).astype(np.float64),
    "R-P": lambda hits, spec: r_precision_of(hits),
    "mAP@R": lambda hits, spec: map_at_r_of(hits),
    "mAP": lambda hits, spec: average_precision_of(hits),
}


@dataclass(frozen=True)
class Fold:
    """Some images and their captions: the gallery of one measurement."""

    truth: Truth
    source: Source
    relevances: Mapping[str, Source]
    images: IntArray  # indices in the whole truth
    captions: IntArray

    @classmethod
    def whole(cls, truth: Truth, source: Source, relevances: Mapping[str, Source]) -> Fold:
        """Everything at once."""
        return cls(truth, source, relevances, np.arange(truth.n_images), np.arange(truth.n_captions))

    def subset(self, images: IntArray) -> Fold:
        """These images and their captions; relevances keep the idf of the whole."""
        captions = self.truth.captions_of(images)
        relevances = {name: relevance.subset(images, captions) for name, relevance in self.relevances.items()}
        return Fold(self.truth.subset(images), self.source.subset(images, captions), relevances, images, captions)

    def clusters(self, direction: Direction) -> IntArray:
        """For every image or caption, the image it moves with when images are resampled."""
        if direction == "i2t":
            return self.images
        if self.truth.image_of is None:  # captions that belong to no image are on their own
            return self.captions
        return self.images[self.truth.image_of]


def measure(fold: Fold, direction: Direction, specs: list[Spec], step: Callable[[int], None]) -> dict[str, FloatArray]:
    """Per-query values of every metric, in the order of `fold.truth.queries(direction)`."""
    truth = fold.truth
    queries = truth.queries(direction)
    gallery = truth.n_captions if direction == "i2t" else truth.n_images
    columns = {name: np.full(len(queries), np.nan) for spec in specs for name in _columns(spec)}
    for block in row_blocks(len(queries), gallery):
        rows = queries[block]
        ranking = rank(_read(fold.source, direction, rows))
        hits = _hits(ranking, truth, direction, rows)
        for spec in specs:
            if spec.family in _READ:
                columns[spec.name][block] = _READ[spec.family](hits, spec)
            elif spec.family == "nDCG@":
                columns[spec.name][block] = ndcg_at_of(ranking, truth.gains(direction, rows), spec.k)
            elif spec.family == "PMRP":
                columns[spec.name][block] = _plausible(ranking, truth, direction, rows, spec.zetas)
        for name, relevance in fold.relevances.items():
            by_meaning = rank(_read(relevance, direction, rows))
            columns[f"ASP({name})"][block] = asp_of(ranking, by_meaning)
            columns[f"ASP({name}){CEILING}"][block] = ceiling_of(by_meaning)
        step(block.stop)
    return columns


def _columns(spec: Spec) -> tuple[str, ...]:
    return (spec.name, spec.name + CEILING) if spec.family == "ASP" else (spec.name,)


def _read(source: Source, direction: Direction, rows: IntArray) -> FloatArray:
    return source.i2t(rows) if direction == "i2t" else source.t2i(rows)


def _hits(ranking: Ranking, truth: Truth, direction: Direction, rows: IntArray) -> Hits:
    """Ranks of the positives; those that the source names but the gallery lacks come after everything else."""
    hits = hits_of(ranking, truth.positives(direction, rows))
    lost = truth.lost(direction)[rows]
    if not lost.any():
        return hits
    ranks = np.split(hits.ranks, hits.starts[1:-1])
    padded = [np.append(own, np.arange(hits.n + 1, hits.n + 1 + more)) for own, more in zip(ranks, lost, strict=True)]
    starts = np.concatenate([[0], np.cumsum(hits.counts + lost)])
    return Hits(np.concatenate(padded).astype(np.int32), starts, hits.n)


def _plausible(
    ranking: Ranking, truth: Truth, direction: Direction, rows: IntArray, zetas: tuple[int, ...]
) -> FloatArray:
    """PMRP of a block; images without classes, and their captions, leave queries (NaN) and gallery."""
    assert truth.classes is not None and truth.annotated is not None and truth.image_of is not None
    images, captions = np.arange(truth.n_images), truth.image_of  # whose classes each item has
    own, other = (images, captions) if direction == "i2t" else (captions, images)
    kept = truth.annotated[other]
    here = truth.annotated[own[rows]]
    values = np.full(len(rows), np.nan)
    if here.any():
        part = ranking if here.all() else Ranking(ranking.order[here], ranking.tied[here])
        part = part if kept.all() else restrict(part, kept)
        codes = as_codes(truth.classes)
        values[here] = pmrp_of(part, codes[own[rows[here]]], codes[other[kept]], zetas)
    return values
