"""Choose the queries to look at: the best, the worst, and those on which the measures disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.data import Dataset, Direction
from halation.report._facts import Gallery, Histogram, Mark, TruthCoverage

__all__ = ["DISAGREEMENTS", "asp_histograms", "choose_galleries", "mark_words", "truth_coverage"]

Columns = Mapping[str, FloatArray]
"""Per-query values by metric, as a report has them."""

DISAGREEMENTS = ("hit_low_asp", "miss_high_asp", "miss_high_rp", "hit_low_pmrp", "miss_high_pmrp")
_BINS = 40


class _Rule(NamedTuple):
    """How a gallery is chosen: from R@1's hits (or misses, or all), sorted by these metrics, biggest first.

    A later metric breaks ties of an earlier one; a minus sorts the smallest first.
    """

    key: str
    title: str
    why: str
    hit: bool | None
    order: tuple[str, ...]


_RULES = (
    _Rule(
        "hit_low_asp",
        "R@1 hit, low ASP",
        "The first answer is right, so R@1 counts a full success. Among these queries, the ones shown have the lowest "
        "ASP: the whole ranking agrees least with relevance (tf-idf).",
        True,
        ("-ASP(tfidf)",),
    ),
    _Rule(
        "miss_high_asp",
        "R@1 miss, high ASP",
        "The first answer does not count as right, so R@1 counts a failure. Among these queries, the ones shown have "
        "the highest ASP: the whole ranking agrees best with relevance (tf-idf). {first}",
        False,
        ("ASP(tfidf)",),
    ),
    _Rule(
        "miss_high_rp",
        "R@1 miss, high R-Precision",
        "The first answer does not count as right, but many right answers follow directly. {first}",
        False,
        ("R-P", "ASP(tfidf)"),
    ),
    _Rule(
        "hit_low_pmrp",
        "R@1 hit, low PMRP",
        "The first answer is right, but few of the next ones show the same classes.",
        True,
        ("-PMRP", "-ASP(tfidf)"),
    ),
    _Rule(
        "miss_high_pmrp",
        "R@1 miss, high PMRP",
        "The first answer does not count as right, but the first answers show the same classes as the query.",
        False,
        ("PMRP", "ASP(tfidf)"),
    ),
    _Rule(
        "best",
        "Best",
        "A right answer comes first. Sorted by R-Precision, and ties by ASP (tf-idf).",
        None,
        ("R@1", "R-P", "ASP(tfidf)"),
    ),
    _Rule("worst", "Worst", "The first right answer has the lowest rank.", None, ("MedR", "-ASP(tfidf)")),
)

_FIRST_ANSWER: dict[TruthCoverage, str] = {
    "written": "Check whether the first answer is really wrong: a caption written for another image may match too.",
    "judged": "Check whether the first answer is really wrong: not every pair was judged.",
    "classes": "Check whether the first answer is really wrong: only answers of the same class count as right.",
    "all": "Every pair of this data is known, so the first answer is wrong.",
}
_UNMARKED: dict[TruthCoverage, tuple[str, str]] = {
    "written": ("not marked", "No annotator marked this pair, but it may match."),
    "judged": ("not marked", "This pair was not judged a match. Not every pair was judged, so it may match."),
    "classes": ("another class", "Only items of the same class count as right, but this one may fit."),
    "all": ("no match", "Every pair of this data is known: this caption is not true of this image."),
}


def truth_coverage(dataset: Dataset) -> TruthCoverage:
    """How much the truth of a dataset knows about the pairs that it does not call right."""
    kind = dataset.truth.kind
    if kind == "pairs" and dataset.name.startswith("scenes-"):
        return "all"
    return "written" if kind == "captions" else "classes" if kind == "classes" else "judged"


def mark_words(coverage: TruthCoverage) -> dict[Mark, tuple[str, str, str]]:
    """For every mark: a sign, a few words, and a sentence for the tooltip."""
    return {
        "written": ("✓", "written for it", "An annotator wrote this caption for this image."),
        "right": ("✓", "also right", "This pair is a match, although the caption was not written for this image."),
        "": ("", *_UNMARKED[coverage]),
    }


def choose_galleries(
    direction: Direction,
    items: IntArray,
    columns: Columns,
    other: Columns | None = None,
    *,
    count: int = 6,
    coverage: TruthCoverage = "written",
    texts: Sequence[str] | None = None,
) -> list[Gallery]:
    """The galleries of one direction, with at most `count` queries each.

    items      (q,) the images or captions that are the queries
    columns    their values; `other` has those of the run it is compared with
    texts      (q,) the queries' texts, if they are captions: of equal texts only the first is chosen

    A gallery without queries is kept, so that the page can say so (with one right answer, R-Precision is R@1).
    """
    hit = columns["R@1"] > 0
    galleries = []
    for rule in _RULES:
        names = [name.removeprefix("-") for name in rule.order]
        if not all(name in columns for name in names):
            continue
        candidates = np.ones(len(items), np.bool_) if rule.hit is None else hit == rule.hit
        candidates &= np.all([~np.isnan(columns[name]) for name in names], axis=0)
        if rule.hit is False and rule.order[0] in ("R-P", "PMRP"):
            candidates &= columns[rule.order[0]] > 0  # 0 is not "high"
        rows = _best_rows(candidates, [_sort_key(columns, name) for name in rule.order], count, texts)
        why = rule.why.format(first=_FIRST_ANSWER[coverage])
        galleries.append(Gallery(rule.key, rule.title, why, direction, _ints(items[rows]), int(candidates.sum())))
    return galleries if other is None else galleries + _changed(direction, items, columns, other, count, texts)


def _changed(
    direction: Direction, items: IntArray, ours: Columns, theirs: Columns, count: int, texts: Sequence[str] | None
) -> list[Gallery]:
    """Queries that one run hits and the other misses; first those that the other ranks worst."""
    hit, their_hit = ours["R@1"] > 0, theirs["R@1"] > 0
    rules = (
        ("won", "Won", "Only this run puts a right answer first.", hit & ~their_hit, theirs["MedR"]),
        ("lost", "Lost", "Only the other run puts a right answer first.", their_hit & ~hit, ours["MedR"]),
    )
    return [
        Gallery(key, title, why, direction, _ints(items[_best_rows(pool, [by], count, texts)]), int(pool.sum()))
        for key, title, why, pool, by in rules
    ]


def _sort_key(columns: Columns, name: str) -> FloatArray:
    return -columns[name[1:]] if name.startswith("-") else columns[name]


def _best_rows(candidates: BoolArray, keys: list[FloatArray], count: int, texts: Sequence[str] | None) -> IntArray:
    """The first `count` rows by these keys, biggest first; each text once."""
    rows = np.flatnonzero(candidates)
    rows = rows[np.lexsort([-key[rows] for key in reversed(keys)])]
    if texts is not None:
        first: dict[str, int] = {}
        for row in rows.tolist():
            first.setdefault(texts[row], row)
            if len(first) == count:
                break
        rows = np.array(list(first.values()), dtype=np.int64)
    return rows[:count]


def _ints(values: IntArray) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def asp_histograms(columns: Columns) -> tuple[Histogram, ...]:
    """Histograms of ASP over R@1's hits and over its misses, with common bins: do the two measures agree?"""
    asp, hit = 100 * columns["ASP(tfidf)"], columns["R@1"] > 0
    edges = np.linspace(np.floor(asp.min()), np.ceil(asp.max()) + (asp.min() == asp.max()), _BINS + 1)
    return tuple(
        Histogram(name, tuple(edges.tolist()), _ints(np.histogram(asp[rows], edges)[0]))
        for name, rows in (("R@1 hits", hit), ("R@1 misses", ~hit))
    )
