"""Both rankings of a query, by score and by relevance, with the ranks that ASP compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation._progress import Progress
from halation.data import Direction
from halation.evaluation import DIRECTIONS
from halation.metrics import rank_ratio
from halation.report._facts import Gallery, Mark, Query, RankedItem
from halation.report._measured_run import MeasuredRun
from halation.semantics import Corpus

__all__ = ["Row", "all_rankings", "query_rankings", "ranked_items"]

_SHOWN = ("R@1", "R-P", "PMRP", "ASP(tfidf)")


@dataclass(frozen=True, eq=False)
class Row:
    """One query against every item, (n,) each: scores, relevance, which items are right, which were written for it."""

    scores: FloatArray
    relevance: FloatArray
    right: BoolArray
    written: BoolArray


def all_rankings(
    runs: list[MeasuredRun], corpus: Corpus, galleries: list[Gallery], most: int, seed: int, progress: Progress
) -> tuple[Query, ...]:
    """The queries of the galleries, then others drawn at random up to `most`, half of them in each direction.

    runs   the report's run, and the run it is compared with, if there is one
    """
    generator = np.random.default_rng(seed)
    queries: list[Query] = []
    for direction in DIRECTIONS:
        measured = runs[0].report.queries[direction].items
        shown = list(dict.fromkeys(item for one in galleries if one.direction == direction for item in one.queries))
        others = [item for item in generator.permutation(measured).tolist() if item not in set(shown)]
        items = shown + sorted(others[: max(0, most // 2 - len(shown))])
        position = {int(item): row for row, item in enumerate(measured)}
        for done, item in enumerate(items):
            queries.append(_rankings_of(runs, corpus, direction, item, position[item]))
            progress(f"rankings {direction}", done + 1, len(items))
    return tuple(queries)


def _rankings_of(runs: list[MeasuredRun], corpus: Corpus, direction: Direction, item: int, position: int) -> Query:
    run, dataset, columns = runs[0], runs[0].dataset, runs[0].report.per_query[direction]
    query, all_images = np.array([item]), np.arange(len(dataset))
    if direction == "i2t":
        relevance, written = corpus.block(query, np.arange(dataset.n_captions))[0], dataset.image_of == item
    else:
        relevance, written = corpus.block(all_images, query)[:, 0], all_images == dataset.image_of[item]
    right = dataset.truth.positives(direction, query)[0]
    values = {name: float(columns[name][position]) for name in _SHOWN if name in columns}
    kind = "images" if direction == "i2t" else "captions"
    return query_rankings(
        direction,
        item,
        Row(run.scores_of(direction, item), relevance, right, written),
        values | {"rank": float(columns["MedR"][position])},
        sigma=float(run.sigma[kind][item]) if run.sigma else None,
        other_scores=runs[1].scores_of(direction, item) if len(runs) > 1 else None,
    )


def query_rankings(
    direction: Direction,
    item: int,
    row: Row,
    values: Mapping[str, float],
    *,
    sigma: float | None = None,
    other_scores: FloatArray | None = None,
    depth: int = 10,
) -> Query:
    """A query with the first `depth` items of each ranking; other_scores (n,) are those of another run."""
    by_relevance = np.argsort(-row.relevance, kind="stable")[:depth]
    other = None if other_scores is None else Row(other_scores, row.relevance, row.right, row.written)
    return Query(
        direction,
        item,
        values,
        int(row.right.sum()),
        sigma,
        ranked_items(row, _best(row, depth)),
        ranked_items(row, by_relevance),
        () if other is None else ranked_items(other, _best(other, depth)),
    )


def ranked_items(row: Row, items: IntArray) -> tuple[RankedItem, ...]:
    """These items with both ranks. Ties share their ranks, and the ratio is the mean over all orders of ties.

    >>> row = Row(np.array([0.9, 0.1, 0.5]), np.array([0.2, 0.0, 0.0]), np.array([1, 0, 0]) > 0, np.zeros(3, bool))
    >>> [(i.score_ranks, i.relevance_ranks, round(i.ratio, 3)) for i in ranked_items(row, np.arange(3))]
    [((1, 1), (1, 1), 1.0), ((3, 3), (2, 3), 0.833), ((2, 2), (2, 3), 0.833)]
    """
    score_ranks, relevance_ranks = _ranges(row.scores, items), _ranges(row.relevance, items)
    ratios = rank_ratio(score_ranks, relevance_ranks)
    ranked = []
    for item, by_score, by_relevance, ratio in zip(items.tolist(), score_ranks, relevance_ranks, ratios, strict=True):
        mark: Mark = "written" if row.written[item] else "right" if row.right[item] else ""
        score, relevance = float(row.scores[item]), float(row.relevance[item])
        ranked.append(RankedItem(item, score, relevance, by_score, by_relevance, float(ratio), mark))
    return tuple(ranked)


def _best(row: Row, depth: int) -> IntArray:
    """The items with the biggest scores; among ties, right items come last, as in every metric."""
    return np.lexsort((row.right, -row.scores))[:depth]


def _ranges(values: FloatArray, items: IntArray) -> list[tuple[int, int]]:
    """The first and last rank of each of these items, 1 = the biggest value."""
    ascending = np.sort(values)
    above = len(values) - np.searchsorted(ascending, values[items], side="right")
    last = len(values) - np.searchsorted(ascending, values[items], side="left")
    return [(int(a) + 1, int(b)) for a, b in zip(above, last, strict=True)]
