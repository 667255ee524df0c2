"""`RelevantRanks`: the ranks of the relevant items, which metrics of yes-or-no relevance read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from halation._arrays import Array, BoolArray, IntArray, as_relevant, as_scores
from halation._errors import InputError
from halation._parallel import kernel, over_rows
from halation.metrics._blocks import contiguous, row_blocks, task_rows
from halation.metrics._ranking import Ranking, rank

__all__ = ["RelevantRanks", "cutoff", "per_query", "relevant_ranks"]

Integers = npt.NDArray[np.int64]
Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True)
class RelevantRanks:
    """The ranks of the relevant items of every query.

    ranks (total,) int32: 1 = top, query after query, ascending within each; relevant items come last among equals.
    starts (q + 1,) int64: query i has ranks[starts[i]:starts[i + 1]], at least one rank.
    n: the number of items that were ranked.
    """

    ranks: npt.NDArray[np.int32]
    starts: Integers
    n: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> Integers:
        """The number of relevant items of each query, (q,)."""
        return np.diff(self.starts)

    @property
    def ordinals(self) -> Integers:
        """1, 2, … within each query: the number of relevant items at this rank or better, (total,)."""
        return np.arange(1, len(self.ranks) + 1) - np.repeat(self.starts[:-1], self.counts)

    def within(self, limit: int | Integers) -> Integers:
        """The number of relevant items at rank `limit` (one, or one per query) or better, (q,)."""
        limits = np.repeat(np.broadcast_to(np.asarray(limit), len(self)), self.counts)
        return np.add.reduceat((self.ranks <= limits).astype(np.int64), self.starts[:-1])

    def with_missing(self, missing: IntArray) -> RelevantRanks:
        """These ranks and those of `missing` (q,) relevant items that are not in the gallery: n + 1, n + 2, …"""
        if not missing.any():
            return self
        per_row = np.split(self.ranks, self.starts[1:-1])
        padded = [
            np.append(ranks, np.arange(self.n + 1, self.n + 1 + more))
            for ranks, more in zip(per_row, missing, strict=True)
        ]
        starts = np.concatenate([[0], np.cumsum(self.counts + missing)])
        return RelevantRanks(np.concatenate(padded).astype(np.int32), starts, self.n)

    @staticmethod
    def cat(parts: Sequence[RelevantRanks]) -> RelevantRanks:
        """The queries of several blocks, one after the other."""
        starts = np.concatenate([[0], *(part.counts for part in parts)]).cumsum()
        return RelevantRanks(np.concatenate([part.ranks for part in parts]), starts, parts[0].n)


def relevant_ranks(ranking: Ranking, relevant: BoolArray, first_row: int = 0) -> RelevantRanks:
    """The ranks of the relevant items; relevant (q, n) bool.

    A query without a relevant item is an error that names its row, counted from `first_row`.

    >>> relevant_ranks(rank(np.array([[0.9, 0.5, 0.5, 0.1]])), np.array([[False, True, False, True]])).ranks
    array([3, 4], dtype=int32)
    """
    rows, n = ranking.shape
    assert relevant.shape == (rows, n)
    counts = np.count_nonzero(relevant, axis=1)
    if not counts.all():
        raise InputError(
            f"query {first_row + int(np.argmin(counts))} has no relevant item, so its score is undefined; "
            "leave such queries out (and say how many)"
        )
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    ranks = np.empty(starts[-1], np.int32)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _note_ranks(
            ranking.order[part], ranking.tied[part], contiguous(relevant[part]), starts[start : stop + 1], ranks
        )

    over_rows(rows, work, per_task=task_rows(n))
    return RelevantRanks(ranks, starts, n)


def per_query(
    scores: Array, relevant: Array, read: Callable[[RelevantRanks], npt.NDArray[Value]]
) -> npt.NDArray[Value]:
    """The metric `read` of every query, computed from the relevant ranks of a block of rows at a time."""
    scores = as_scores(scores)
    relevant = as_relevant(relevant, scores.shape)
    return np.concatenate(
        [read(relevant_ranks(rank(scores[rows]), relevant[rows], rows.start)) for rows in row_blocks(*scores.shape)]
    )


def cutoff(k: int) -> int:
    """k as an int; an InputError unless it is a whole number of 1 or more."""
    try:
        ranks = operator.index(k)
    except TypeError:
        raise InputError(f"k must be a whole number of ranks, not {k!r}") from None
    if ranks < 1:
        raise InputError(f"k must be 1 or more, not {ranks}")
    return ranks


@kernel
def _note_ranks(
    order: npt.NDArray[np.int32], tied: BoolArray, relevant: BoolArray, starts: Integers, ranks: npt.NDArray[np.int32]
) -> None:
    n = order.shape[1]
    for row in range(order.shape[0]):
        written, end = starts[row], starts[row + 1]
        equals = 0  # relevant items in the run of equal scores that is being read
        for position in range(n):
            if relevant[row, order[row, position]]:
                equals += 1
            if equals and (position + 1 == n or not tied[row, position + 1]):
                for rank_ in range(position + 2 - equals, position + 2):  # the last ranks of the run
                    ranks[written] = rank_
                    written += 1
                equals = 0
                if written == end:
                    break
