"""`Ranking`: a block of queries sorted once, with ties, for every metric to read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halation._arrays import BoolArray, FloatArray
from halation._parallel import kernel, over_rows
from halation._radix import sort_row, workspace
from halation.metrics._blocks import contiguous, task_rows

__all__ = ["Ranking", "group_end", "next_group", "rank", "rank_rows"]


@dataclass(frozen=True)
class Ranking:
    """The items of every query from best to worst.

    order (q, n) int32: the item (column) at each position, equal scores from left to right.
    tied (q, n) bool: whether the item at a position scores the same as the item before it.
    """

    order: npt.NDArray[np.int32]
    tied: BoolArray

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, items)."""
        rows, n = self.order.shape
        return rows, n

    def of_queries(self, kept: BoolArray) -> Ranking:
        """The rankings of the kept queries (q,)."""
        return self if kept.all() else Ranking(self.order[kept], self.tied[kept])

    def of_items(self, kept: BoolArray) -> Ranking:
        """The rankings of the kept items (n,) only, renumbered; nothing is sorted again.

        >>> rank(np.array([[0.1, 0.7, 0.1, 0.9]])).of_items(np.array([True, False, True, True])).order
        array([[2, 0, 1]], dtype=int32)
        """
        if kept.all():
            return self
        rows, left = len(self.order), int(np.count_nonzero(kept))
        result = Ranking(np.empty((rows, left), np.int32), np.empty((rows, left), np.bool_))
        number = (np.cumsum(kept) - 1).astype(np.int32)

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            _of_items(self.order[part], self.tied[part], kept, number, result.order[part], result.tied[part])

        over_rows(rows, work)
        return result


def rank(scores: FloatArray) -> Ranking:
    """The ranking of every row of finite float32 or float64 scores (q, n), bigger first.

    The scores may be a transposed view. It takes five bytes per score, so pass a big matrix in blocks of rows.

    >>> rank(np.array([[0.1, 0.7, 0.1, 0.9]])).order
    array([[3, 1, 0, 2]], dtype=int32)
    >>> rank(np.array([[0.1, 0.7, 0.1, 0.9]])).tied
    array([[False, False, False,  True]])
    """
    ranking = Ranking(np.empty(scores.shape, np.int32), np.empty(scores.shape, np.bool_))

    def work(start: int, stop: int) -> None:
        _rank(contiguous(scores[start:stop]), ranking.order[start:stop], ranking.tied[start:stop])

    over_rows(len(scores), work, per_task=task_rows(scores.shape[1]))
    return ranking


def rank_rows(scores: FloatArray) -> Ranking:
    """`rank` on the calling thread, for work that has its own threads."""
    ranking = Ranking(np.empty(scores.shape, np.int32), np.empty(scores.shape, np.bool_))
    _rank(contiguous(scores), ranking.order, ranking.tied)
    return ranking


@kernel
def _rank(scores: FloatArray, order: npt.NDArray[np.int32], tied: BoolArray) -> None:
    space = workspace(scores.shape[1])
    for row in range(scores.shape[0]):
        sort_row(scores[row], order[row], tied[row], space)


@kernel
def _of_items(
    order: npt.NDArray[np.int32], tied: BoolArray, kept: BoolArray, number: npt.NDArray[np.int32],
    order_left: npt.NDArray[np.int32], tied_left: BoolArray,
) -> None:  # fmt: skip
    for row in range(order.shape[0]):
        left, equal = 0, False  # equal: the item ties with the last kept one
        for position in range(order.shape[1]):
            equal = equal and tied[row, position]
            item = order[row, position]
            if kept[item]:
                order_left[row, left] = number[item]
                tied_left[row, left] = equal
                left += 1
                equal = True


@kernel
def group_end(tied: BoolArray, position: int) -> int:
    """The position after the last item that scores the same as the one at `position`."""
    end = int(min(position + 1, tied.shape[0]))
    while end < tied.shape[0] and tied[end]:
        end += 1
    return end


@kernel
def next_group(tied: BoolArray, position: int) -> int:
    """The first position, from `position` on, whose item scores the same as the next one; n if there is none."""
    while position + 1 < tied.shape[0] and not tied[position + 1]:
        position += 1
    return position if position + 1 < tied.shape[0] else tied.shape[0]
