"""Average Semantic Precision: how close the ranking by score is to that by relevance (Li et al., NeurIPS 2022)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._arrays import Array, BoolArray, as_relevance, as_scores
from halation._errors import InputError, one_of
from halation._parallel import kernel, over_rows
from halation.metrics._blocks import row_blocks, task_rows
from halation.metrics._rank_ratio import expected_ratio, harmonic_numbers, own_square
from halation.metrics._ranking import Ranking, group_end, next_group, rank, rank_rows

__all__ = ["adjusted_asp", "asp", "asp_ceiling", "asp_of", "ceiling_of", "chance_asp"]

TIES = ("expected", "average", "first")
_AVERAGE, _FIRST = 1, 2

Floats = npt.NDArray[np.float64]
Order = npt.NDArray[np.int32]


def asp(scores: Array, relevance: Array, ties: str = "expected") -> Floats:
    """Average Semantic Precision of every query: the mean ratio of each item's two ranks.

        ASP_q = 1/n Σ_i min(R(i, C), R(i, S)) / max(R(i, C), R(i, S))

    where R(i, S) is the rank of item i by score and R(i, C) its rank by relevance, 1 = best. Chance is `chance_asp(n)`,
    about one half. (Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for
    Cross-Modal Retrieval", NeurIPS 2022.)

    scores (q, n), bigger = closer; relevance (q, n) graded, bigger = more relevant. Returns (q,) in 0…1. The other
    direction is `asp(scores.T, relevance.T)`: the views are read in blocks, not copied whole.

    ties: "expected" gives the exact mean over independent, uniformly random orders within equal scores and within
    equal relevance; "average" gives equal items their mean rank; "first" ranks the earlier column first.

    >>> asp([[5, 4, 3, 2, 1]], [[5, 4, 3, 2, 1]])
    array([1.])
    >>> asp([[1, 2, 3]], [[0.2, 0.0, 0.0]]).round(4)
    array([0.5278])
    """
    tie_rule = _tie_rule(ties)
    scores = as_scores(scores)
    relevance = as_relevance(relevance, scores.shape)
    harmonic = harmonic_numbers(scores.shape[1])
    out = np.empty(len(scores))

    def work(start: int, stop: int) -> None:
        by_score, by_relevance = rank_rows(scores[start:stop]), rank_rows(relevance[start:stop])
        _compare(
            by_score.order, by_score.tied, by_relevance.order, by_relevance.tied, tie_rule, harmonic, out[start:stop]
        )

    over_rows(len(scores), work, per_task=task_rows(scores.shape[1]))
    return out


def asp_ceiling(relevance: Array, ties: str = "expected") -> Floats:
    """The ASP of the relevance's own order: 1 without ties, less with ties.

    Equal items are ordered at random twice, independently (as `asp` does when the scores tie where the relevance does),
    so this is a reference point, not a strict bound: another order can exceed it in the fourth digit.

    relevance (q, n) graded. Returns (q,) in 0…1; with ties="average" or "first" every value is 1.

    >>> asp_ceiling([[3, 2, 1], [3, 0, 0]]).round(4)
    array([1.    , 0.8889])
    """
    _tie_rule(ties)
    relevance = as_scores(relevance, "relevance")
    return np.concatenate([ceiling_of(rank(relevance[rows]), ties) for rows in row_blocks(*relevance.shape)])


def chance_asp(n: int) -> float:
    """Expected ASP of a random ranking of n items, (n + 1) / 2n.

    >>> chance_asp(5)
    0.6
    """
    if n < 1:
        raise InputError(f"n is {n}; a gallery has at least one item")
    return (n + 1) / (2 * n)


def adjusted_asp(value: Array, n: int, ceiling: Array) -> Floats:
    """ASP on the scale where chance is 0 and the relevance's own order is 1: (ASP − chance) / (ceiling − chance).

    value and ceiling: fractions from `asp` and `asp_ceiling`, single or (q,); n: size of the gallery. Where the
    relevance is constant every ranking is as good as chance, and the result is 0.

    >>> float(adjusted_asp(0.8, 5, 1.0).round(3))
    0.5
    """
    chance = chance_asp(n)
    most = np.asarray(ceiling, dtype=np.float64) - chance
    gained = np.asarray(value, dtype=np.float64) - chance
    constant = np.abs(most) < 1e-12  # constant relevance: the ceiling is chance, up to rounding
    return np.where(constant, 0.0, gained / np.where(constant, 1.0, most))


def asp_of(by_score: Ranking, by_relevance: Ranking, ties: str = "expected") -> Floats:
    """The ASP of every query from two rankings of a block: one sort of the scores serves several relevances."""
    tie_rule = _tie_rule(ties)
    assert by_score.shape == by_relevance.shape
    rows, n = by_score.shape
    harmonic = harmonic_numbers(n)
    out = np.empty(rows)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _compare(
            by_score.order[part], by_score.tied[part], by_relevance.order[part], by_relevance.tied[part],
            tie_rule, harmonic, out[part],
        )  # fmt: skip

    over_rows(rows, work, per_task=task_rows(n))
    return out


def ceiling_of(by_relevance: Ranking, ties: str = "expected") -> Floats:
    """`asp_ceiling` of a ranked block.

    A run of L equal items at ranks p…q contributes Σ_r Σ_s min(r, s)/max(r, s) / L in all, so the only cost is to find
    the runs.
    """
    rows, n = by_relevance.shape
    if _tie_rule(ties):
        return np.ones(rows)
    harmonic = harmonic_numbers(n)
    out = np.empty(rows)
    over_rows(rows, lambda start, stop: _ceiling(by_relevance.tied[start:stop], harmonic, out[start:stop]))
    return out


def _tie_rule(ties: str) -> int:
    return TIES.index(one_of(ties, TIES, "ties"))


@kernel
def _ceiling(tied: BoolArray, harmonic: Floats, out: Floats) -> None:
    n = tied.shape[1]
    for row in range(tied.shape[0]):
        total, position = 0.0, 0
        while position < n:
            run = next_group(tied[row], position)
            total += run - position  # items without ties score 1
            position = run
            if position < n:
                end = group_end(tied[row], position)
                total += own_square(position + 1, end, harmonic) / (end - position)
                position = end
        out[row] = total / n


@kernel
def _compare(
    order: Order, tied: BoolArray, order_c: Order, tied_c: BoolArray, tie_rule: int, harmonic: Floats, out: Floats
) -> None:
    ranges = np.empty((order.shape[1], 2), np.int32)
    for row in range(order.shape[0]):
        _write_ranges(order[row], tied[row], tie_rule, ranges)
        out[row] = _mean_ratio(order_c[row], tied_c[row], tie_rule, ranges, harmonic)


@kernel
def _write_ranges(order: Order, tied: BoolArray, tie_rule: int, ranges: Order) -> None:
    """Write the first and the last rank that every item (column) can take."""
    for position in range(order.shape[0]):
        item = order[position]
        ranges[item, 0] = ranges[item, 1] = position + 1
    position = next_group(tied, 0) if tie_rule != _FIRST else order.shape[0]
    while position < order.shape[0]:
        end = group_end(tied, position)
        for member in range(position, end):
            item = order[member]
            ranges[item, 0] = position + 1
            ranges[item, 1] = end
        position = next_group(tied, end)


@kernel
def _mean_ratio(order: Order, tied: BoolArray, tie_rule: int, ranges: Order, harmonic: Floats) -> float:
    """Mean over items of min/max of the rank in `ranges` and the rank in `order`.

    The relevance is read in order and the ranks by score are looked up, because the relevance has long runs of equal
    items: read in one go, they need no branch that the processor could guess wrong.
    """
    n = order.shape[0]
    total = 0.0
    position = 0
    while position < n:
        group = next_group(tied, position) if tie_rule != _FIRST else n
        for single in range(position, group):
            item = order[single]
            low, high = ranges[item, 0], ranges[item, 1]
            if low == high or tie_rule == _AVERAGE:
                total += _ratio(2 * single + 2, low + high)
            else:
                total += expected_ratio(single + 1, single + 1, low, high, harmonic)
        end = group_end(tied, group)
        for member in range(group, end):
            item = order[member]
            low, high = ranges[item, 0], ranges[item, 1]
            if tie_rule == _AVERAGE:
                total += _ratio(group + 1 + end, low + high)
            else:
                total += expected_ratio(group + 1, end, low, high, harmonic)
        position = end
    return float(total / n)


@kernel
def _ratio(mine: int, other: int) -> float:
    """min/max of two ranks, both doubled, so that mean ranks are whole numbers."""
    # as floats, because min and max of integers become branches, which are guessed wrong half the time
    x, y = float(mine), float(other)
    return (x if x < y else y) / (y if x < y else x)
