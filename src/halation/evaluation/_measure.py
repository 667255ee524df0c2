"""Measure one direction of a fold: each block of queries is sorted once, and every metric reads that ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from halation._arrays import FloatArray, IntArray
from halation.data import Direction, Truth
from halation.evaluation._report import CEILING
from halation.evaluation._sources import ScoreSource
from halation.evaluation._specs import Spec
from halation.metrics import ranked

__all__ = ["Fold", "measure"]

RELEVANT_FROM = 0.5  # of a probability

# each yes-or-no metric, from the ranks of the positives
_BINARY: dict[str, Callable[[ranked.RelevantRanks, Spec], FloatArray]] = {
    "R@": lambda ranks, spec: ranked.hit_at(ranks, spec.k),
    "Recall@": lambda ranks, spec: ranked.recall_at(ranks, spec.k),
    "P@": lambda ranks, spec: ranked.precision_at(ranks, spec.k),
    "MedR": lambda ranks, spec: ranked.best_rank(ranks).astype(np.float64),
    "R-P": lambda ranks, spec: ranked.r_precision(ranks),
    "mAP@R": lambda ranks, spec: ranked.map_at_r(ranks),
    "mAP": lambda ranks, spec: ranked.average_precision(ranks),
}


@dataclass(frozen=True)
class Fold:
    """Some images and their captions: the gallery of one measurement."""

    truth: Truth
    source: ScoreSource
    relevances: Mapping[str, ScoreSource]
    images: IntArray  # indices in the whole truth
    captions: IntArray

    @classmethod
    def whole(cls, truth: Truth, source: ScoreSource, relevances: Mapping[str, ScoreSource]) -> Fold:
        """All images and captions as one fold."""
        return cls(truth, source, relevances, np.arange(truth.n_images), np.arange(truth.n_captions))

    def subset(self, images: IntArray) -> Fold:
        """A fold of these images and their captions; relevances keep the idf of the whole."""
        captions = self.truth.captions_of(images)
        relevances = {name: relevance.subset(images, captions) for name, relevance in self.relevances.items()}
        return Fold(self.truth.subset(images), self.source.subset(images, captions), relevances, images, captions)

    def clusters(self, direction: Direction) -> IntArray:
        """The image that each image or caption is resampled with."""
        if direction == "i2t":
            return self.images
        if self.truth.image_of is None:  # captions without an image are resampled one by one
            return self.captions
        return self.images[self.truth.image_of]


def measure(fold: Fold, direction: Direction, specs: list[Spec], step: Callable[[int], None]) -> dict[str, FloatArray]:
    """Per-query values of every metric, in the order of `fold.truth.queries(direction)`."""
    truth = fold.truth
    queries = truth.queries(direction)
    gallery = truth.n_captions if direction == "i2t" else truth.n_images
    columns = {name: np.full(len(queries), np.nan) for spec in specs for name in _columns(spec)}
    for block in ranked.row_blocks(len(queries), gallery):
        rows = queries[block]
        ranking = ranked.rank(_read(fold.source, direction, rows))
        positives = ranked.relevant_ranks(ranking, truth.positives(direction, rows))
        positives = positives.with_missing(truth.lost(direction)[rows])  # annotated, but not in the gallery
        for spec in specs:
            if spec.relevance:
                continue
            if spec.family in _BINARY:
                columns[spec.name][block] = _BINARY[spec.family](positives, spec)
            elif spec.family == "nDCG@":
                columns[spec.name][block] = ranked.ndcg_at(ranking, truth.gains(direction, rows), spec.k)
            elif spec.family == "PMRP":
                columns[spec.name][block] = _plausible(ranking, truth, direction, rows, spec.zetas)
        for name, relevance in fold.relevances.items():
            values = _by_relevance(
                ranking, _read(relevance, direction, rows), [s for s in specs if s.relevance == name]
            )
            for column, part in values.items():
                columns[column][block] = part
        step(block.stop)
    return columns


def _by_relevance(ranking: ranked.Ranking, relevance: FloatArray, specs: list[Spec]) -> dict[str, FloatArray]:
    """The metrics of a block (q, n) that compare it with a relevance of the same shape.

    Of a probability, an item is relevant from one half on; a query without such an item has no R-P and mAP@R (NaN).
    """
    values: dict[str, FloatArray] = {}
    relevant = relevance >= RELEVANT_FROM
    answered = np.asarray(relevant.any(axis=1))
    positives: ranked.RelevantRanks | None = None
    for spec in specs:
        if spec.family == "ASP":
            ideal = ranked.rank(relevance)
            values[spec.name], values[spec.name + CEILING] = ranked.asp(ranking, ideal), ranked.asp_ceiling(ideal)
        elif spec.family == "nDCG@":
            values[spec.name] = ranked.ndcg_at(ranking, relevance, spec.k)
        else:
            if positives is None:
                positives = ranked.relevant_ranks(ranking.of_queries(answered), relevant[answered])
            values[spec.name] = np.full(len(relevance), np.nan)
            values[spec.name][answered] = _BINARY[spec.family](positives, spec)
    return values


def _columns(spec: Spec) -> tuple[str, ...]:
    return (spec.name, spec.name + CEILING) if spec.family == "ASP" else (spec.name,)


def _read(source: ScoreSource, direction: Direction, rows: IntArray) -> FloatArray:
    return source.i2t(rows) if direction == "i2t" else source.t2i(rows)


def _plausible(
    ranking: ranked.Ranking, truth: Truth, direction: Direction, rows: IntArray, zetas: tuple[int, ...]
) -> FloatArray:
    """PMRP of a block; images without classes, and their captions, leave queries (NaN) and gallery."""
    assert truth.classes is not None and truth.annotated is not None and truth.image_of is not None
    images, captions = np.arange(truth.n_images), truth.image_of  # whose classes each item has
    query_image, item_image = (images[rows], captions) if direction == "i2t" else (captions[rows], images)
    queries, items = truth.annotated[query_image], truth.annotated[item_image]
    values = np.full(len(rows), np.nan)
    if queries.any():
        codes = truth.classes.astype(np.float32)
        part = ranking.of_queries(queries).of_items(items)
        values[queries] = ranked.pmrp(part, codes[query_image[queries]], codes[item_image[items]], zetas)
    return values
