"""The best candidates of every query: what a person is shown, and what probabilities are fitted on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halation._arrays import Array, BoolArray, FloatArray, IntArray, as_relevant, as_scores
from halation._errors import InputError

__all__ = ["Candidates", "best_first", "top_candidates"]


class Candidates(NamedTuple):
    """The top candidates of all queries, one after the other, best first."""

    scores: FloatArray  # (q · top,)
    is_match: BoolArray  # (q · top,)
    query: IntArray  # (q · top,) the row each belongs to


def top_candidates(scores: Array, matches: Array, top: int) -> Candidates:
    """The `top` best of each row, flat. Among equal scores what does not match comes first: ties never help.

    scores (q, n), matches (q, n). A gallery with fewer items gives them all.

    >>> top_candidates([[0.1, 0.9, 0.5], [0.7, 0.7, 0.2]], [[1, 0, 1], [1, 0, 0]], top=1)
    Candidates(scores=array([0.9, 0.7]), is_match=array([False, False]), query=array([0, 1]))
    """
    rows = as_scores(scores)
    relevant = as_relevant(matches, (len(rows), rows.shape[1]), "matches")
    order = best_first(rows, top, relevant)
    query = np.repeat(np.arange(len(rows)), order.shape[1])
    return Candidates(
        np.take_along_axis(rows, order, axis=1).ravel(), np.take_along_axis(relevant, order, axis=1).ravel(), query
    )


def best_first(scores: FloatArray, top: int, matches: BoolArray | None = None) -> IntArray:
    """Columns of the `top` biggest of each row, biggest first, (q, min(top, n)); matches last among equal scores."""
    if top < 1:
        raise InputError(f"top is {top}; it must be 1 or more")
    top = min(top, scores.shape[1])
    late = np.zeros(1, dtype=np.bool_) if matches is None else matches
    order = np.argpartition(-scores, top - 1, axis=1)[:, :top]
    lowest = np.take_along_axis(scores, order, axis=1).min(axis=1, keepdims=True)
    crowded = np.flatnonzero((scores >= lowest).sum(axis=1) > top) if matches is not None else ()
    for row in crowded:  # more equal scores than places: those that do not match take them
        order[row] = np.lexsort((late[row], -scores[row]))[:top]
    found = np.take_along_axis(scores, order, axis=1)
    marks = np.broadcast_to(late, found.shape) if matches is None else np.take_along_axis(late, order, axis=1)
    within = np.lexsort((marks, -found), axis=1)
    return np.take_along_axis(order, within, axis=1)
