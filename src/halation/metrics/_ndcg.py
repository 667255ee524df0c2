"""Normalised discounted cumulative gain: graded relevance, discounted by rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._arrays import Array, BoolArray, FloatArray, as_relevance, as_scores
from halation._errors import InputError, one_of
from halation._parallel import kernel, over_rows
from halation.metrics._blocks import contiguous, row_blocks, task_rows
from halation.metrics._ranking import Ranking, group_end, rank
from halation.metrics._relevant_ranks import cutoff

__all__ = ["ndcg_at", "ndcg_at_of"]

Floats = npt.NDArray[np.float64]

_GAINS = ("linear", "exponential")


def ndcg_at(scores: Array, gains: Array, k: int, gain: str = "linear") -> Floats:
    """Normalised discounted cumulative gain of the k best (Järvelin & Kekäläinen, TOIS 2002).

        DCG@k = Σ_{r ≤ k} g(item at rank r) / log2(r + 1),    nDCG@k = DCG@k / DCG@k of the best possible order

    gain: "linear" takes g as given, "exponential" takes 2^g − 1. Among equal scores the lowest gains go first.

    scores (q, n), bigger = closer; gains (q, n), 0 or more, with something above 0 in every row. Returns (q,) in 0…1.

    >>> ndcg_at([[0.9, 0.7, 0.5]], [[0, 2, 1]], k=2).round(4)
    array([0.4796])
    """
    k = cutoff(k)
    one_of(gain, _GAINS, "gain")
    scores = as_scores(scores)
    gains = as_relevance(gains, scores.shape, "gains")
    blocks = row_blocks(*scores.shape)
    return np.concatenate([ndcg_at_of(rank(scores[rows]), gains[rows], k, gain, rows.start) for rows in blocks])


def ndcg_at_of(ranking: Ranking, gains: FloatArray, k: int, gain: str = "linear", first_row: int = 0) -> Floats:
    """`ndcg_at` of a ranked block; errors count rows from `first_row`."""
    gained = _top_gains(ranking, gains, k)  # (q, k)
    best = np.take_along_axis(gains, rank(gains).order[:, :k], axis=1).astype(np.float64)
    if gain == "exponential":
        with np.errstate(over="ignore"):
            gained, best = np.expm1(gained * np.log(2)), np.expm1(best * np.log(2))
    _check_gains(gains, best, first_row)
    discounts = 1 / np.log2(np.arange(2, best.shape[1] + 2))  # (k,)
    values: Floats = (gained @ discounts) / (best @ discounts)
    return np.minimum(values, 1.0)  # the two products may round differently


def _check_gains(gains: FloatArray, best: Floats, first_row: int) -> None:
    lowest = gains.min(axis=1)
    if lowest.min() < 0:
        row = int(np.argmin(lowest))
        raise InputError(
            f"gains of query {first_row + row} go down to {lowest[row]}; "
            "nDCG needs gains of 0 or more (shift or clip them)"
        )
    if not best[:, 0].all():
        raise InputError(
            f"query {first_row + int(np.argmin(best[:, 0]))} has no gain above 0, so its nDCG is undefined; "
            "leave such queries out (and say how many)"
        )
    if not np.isfinite(best[:, 0]).all():
        row = int(np.argmax(best[:, 0]))
        raise InputError(f"2^gain of query {first_row + row} overflows; use gain='linear' or smaller gains")


def _top_gains(ranking: Ranking, gains: FloatArray, k: int) -> Floats:
    """Gains of the k best items, (q, min(k, n)); among equal scores the lowest first."""
    rows, n = ranking.shape
    top = np.empty((rows, min(k, n)))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        values = contiguous(gains[part]).astype(np.float64, copy=False)
        _write_gains(ranking.order[part], ranking.tied[part], values, top[part])

    over_rows(rows, work, per_task=task_rows(n))
    return top


@kernel
def _write_gains(order: npt.NDArray[np.int32], tied: BoolArray, gains: Floats, top: Floats) -> None:
    k = top.shape[1]
    for row in range(order.shape[0]):
        position = 0
        while position < k:
            end = group_end(tied[row], position)
            if end == position + 1:
                top[row, position] = gains[row, order[row, position]]
            else:
                equals = np.sort(gains[row][order[row, position:end]])
                stop = min(end, k)
                top[row, position:stop] = equals[: stop - position]
            position = end
