"""Which queries to look at: the best, the worst, and above all those of which the measures say different things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.data import Direction
from halation.report._facts import Gallery, Histogram, Knows
from halation.report._marks import first_answer

__all__ = ["DISAGREE", "agreement", "galleries"]

Columns = Mapping[str, FloatArray]
DISAGREE = ("hit_low_asp", "miss_high_asp", "miss_high_rp", "hit_low_pmrp", "miss_high_pmrp")
_BINS = 40


class _Pick(NamedTuple):
    """What is chosen from, and by which keys: biggest first, the earlier key first; a minus turns one round."""

    key: str
    title: str
    why: str
    hit: bool | None
    order: tuple[str, ...]


_PICKS = (
    _Pick(
        "hit_low_asp",
        "R@1 hit, low ASP",
        "The first answer is right, so R@1 counts a full success. Of all such queries these have the lowest ASP: the "
        "order of the whole ranking agrees least with relevance by tf-idf, the words that captions share.",
        True,
        ("-ASP(tfidf)",),
    ),
    _Pick(
        "miss_high_asp",
        "R@1 miss, high ASP",
        "The first answer is not one of those counted right, so R@1 counts a failure. Of all such queries these have "
        "the highest ASP: the order of the whole ranking agrees most with relevance by tf-idf. {first}",
        False,
        ("ASP(tfidf)",),
    ),
    _Pick(
        "miss_high_rp",
        "R@1 miss, high R-Precision",
        "The first answer is not one of those counted right, and yet many of them follow at once. {first}",
        False,
        ("R-P", "ASP(tfidf)"),
    ),
    _Pick(
        "hit_low_pmrp",
        "R@1 hit, low PMRP",
        "The first answer is right, and few of those that follow show the same classes.",
        True,
        ("-PMRP", "-ASP(tfidf)"),
    ),
    _Pick(
        "miss_high_pmrp",
        "R@1 miss, high PMRP",
        "The first answer is not one of those counted right, but what was found shows the same classes.",
        False,
        ("PMRP", "ASP(tfidf)"),
    ),
    _Pick(
        "best",
        "Best",
        "A right answer comes first; then those with the highest R-Precision, and of equals the highest ASP (tf-idf).",
        None,
        ("R@1", "R-P", "ASP(tfidf)"),
    ),
    _Pick("worst", "Worst", "The first right answer is the furthest down.", None, ("MedR", "-ASP(tfidf)")),
)


def galleries(
    direction: Direction,
    items: IntArray,
    columns: Columns,
    other: Columns | None = None,
    *,
    count: int = 6,
    knows: Knows = "written",
    words: Sequence[str] | None = None,
) -> list[Gallery]:
    """At most `count` queries for every kind that there is, (q,) items and per-query values in their order.

    words (q,): what is asked, where that is a text; of queries in the same words only the first is chosen.

    A gallery that the measures leave empty (R-Precision of one right answer is R@1) is kept with no query: to say so.
    """
    hit = columns["R@1"] > 0
    found = []
    for pick in _PICKS:
        names = [name.removeprefix("-") for name in pick.order]
        if not all(name in columns for name in names):
            continue
        pool = np.ones(len(items), np.bool_) if pick.hit is None else hit == pick.hit
        pool &= np.all([~np.isnan(columns[name]) for name in names], axis=0)
        if pick.hit is False and pick.order[0] in ("R-P", "PMRP"):
            pool &= columns[pick.order[0]] > 0  # nothing found is not "high"
        chosen = _first(pool, [_key(columns, name) for name in pick.order], count, words)
        why = pick.why.format(first=first_answer(knows))
        found.append(Gallery(pick.key, pick.title, why, direction, _ints(items[chosen]), int(pool.sum())))
    return found if other is None else found + _changed(direction, items, columns, other, count, words)


def _changed(
    direction: Direction, items: IntArray, ours: Columns, theirs: Columns, count: int, words: Sequence[str] | None
) -> list[Gallery]:
    """Queries that one run hits and the other misses, the furthest missed first."""
    hit, theirs_hit = ours["R@1"] > 0, theirs["R@1"] > 0
    won, lost = hit & ~theirs_hit, theirs_hit & ~hit
    told = (
        ("won", "Won", "This run has a right answer first, the other has not.", won, theirs["MedR"]),
        ("lost", "Lost", "The other run has a right answer first, this one has not.", lost, ours["MedR"]),
    )
    return [
        Gallery(key, title, why, direction, _ints(items[_first(pool, [by], count, words)]), int(pool.sum()))
        for key, title, why, pool, by in told
    ]


def _key(columns: Columns, name: str) -> FloatArray:
    return -columns[name[1:]] if name.startswith("-") else columns[name]


def _first(pool: BoolArray, keys: list[FloatArray], count: int, words: Sequence[str] | None) -> IntArray:
    """Rows of the pool by the first key, biggest first, equals by the next, then as they come; none in equal words."""
    rows = np.flatnonzero(pool)
    rows = rows[np.lexsort([-key[rows] for key in reversed(keys)])]
    if words is not None:
        first: dict[str, int] = {}
        for row in rows.tolist():
            first.setdefault(words[row], row)
            if len(first) == count:
                break
        rows = np.array(list(first.values()), dtype=np.int64)
    return rows[:count]


def _ints(values: IntArray) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def agreement(columns: Columns) -> tuple[Histogram, ...]:
    """ASP of R@1's hits and of its misses, over common edges: how far the two measures see the same thing."""
    asp, hit = 100 * columns["ASP(tfidf)"], columns["R@1"] > 0
    edges = np.linspace(np.floor(asp.min()), np.ceil(asp.max()) + (asp.min() == asp.max()), _BINS + 1)
    return tuple(
        Histogram(name, tuple(edges.tolist()), _ints(np.histogram(asp[which], edges)[0]))
        for name, which in (("R@1 hits", hit), ("R@1 misses", ~hit))
    )
