"""Where the relevant items landed: all that a metric of yes-or-no relevance needs to know of a ranking."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from halation._arrays import Array, BoolArray, as_relevant, as_scores
from halation._errors import InputError
from halation._parallel import kernel, over_rows
from halation.metrics._blocks import contiguous, row_blocks, task_rows
from halation.metrics._ranking import Ranking, rank

__all__ = ["Hits", "cutoff", "hits_of", "per_query"]

Integers = npt.NDArray[np.int64]
Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True)
class Hits:
    """The ranks of the relevant items of every query.

    ranks (total,) int32: 1 = top, query after query, ascending within each; relevant items come last among equals.
    starts (q + 1,) int64: query i owns ranks[starts[i]:starts[i + 1]], one rank at least.
    n: how many items were ranked.
    """

    ranks: npt.NDArray[np.int32]
    starts: Integers
    n: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> Integers:
        """How many items are relevant to each query, (q,)."""
        return np.diff(self.starts)

    @property
    def ordinals(self) -> Integers:
        """1, 2, … within each query: how many relevant items are at this rank or above it, (total,)."""
        return np.arange(1, len(self.ranks) + 1) - np.repeat(self.starts[:-1], self.counts)

    def within(self, limit: int | Integers) -> Integers:
        """How many relevant items rank at `limit` (one, or one per query) or better, (q,)."""
        limits = np.repeat(np.broadcast_to(np.asarray(limit), len(self)), self.counts)
        return np.add.reduceat((self.ranks <= limits).astype(np.int64), self.starts[:-1])

    @staticmethod
    def cat(parts: Sequence[Hits]) -> Hits:
        """The queries of several blocks, one after the other."""
        starts = np.concatenate([[0], *(part.counts for part in parts)]).cumsum()
        return Hits(np.concatenate([part.ranks for part in parts]), starts, parts[0].n)


def hits_of(ranking: Ranking, relevant: BoolArray, first_row: int = 0) -> Hits:
    """The ranks of the relevant items (q, n) in a block's ranking.

    A query without any is an error that names its row, counted from `first_row`.

    >>> found = hits_of(rank(np.array([[0.9, 0.5, 0.5, 0.1]])), np.array([[False, True, False, True]]))
    >>> found.ranks
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
        own = slice(start, stop)
        _note_hits(ranking.order[own], ranking.tied[own], contiguous(relevant[own]), starts[start : stop + 1], ranks)

    over_rows(rows, work, per_task=task_rows(n))
    return Hits(ranks, starts, n)


def per_query(scores: Array, relevant: Array, read: Callable[[Hits], npt.NDArray[Value]]) -> npt.NDArray[Value]:
    """A metric of every query, some rows at a time; `read` takes it from the block's hits."""
    scores = as_scores(scores)
    relevant = as_relevant(relevant, scores.shape)
    return np.concatenate(
        [read(hits_of(rank(scores[rows]), relevant[rows], rows.start)) for rows in row_blocks(*scores.shape)]
    )


def cutoff(k: int) -> int:
    """A whole number of places, 1 or more."""
    try:
        places = operator.index(k)
    except TypeError:
        raise InputError(f"k must be a whole number of places, not {k!r}") from None
    if places < 1:
        raise InputError(f"k must be 1 or more, not {places}")
    return places


@kernel
def _note_hits(
    order: npt.NDArray[np.int32], tied: BoolArray, relevant: BoolArray, starts: Integers, ranks: npt.NDArray[np.int32]
) -> None:
    n = order.shape[1]
    for row in range(order.shape[0]):
        found, all_found = starts[row], starts[row + 1]
        equals = 0  # relevant items in the run of equal scores that is being read
        for place in range(n):
            if relevant[row, order[row, place]]:
                equals += 1
            if equals and (place + 1 == n or not tied[row, place + 1]):
                for rank_ in range(place + 2 - equals, place + 2):  # the run's last places
                    ranks[found] = rank_
                    found += 1
                equals = 0
                if found == all_found:
                    break
