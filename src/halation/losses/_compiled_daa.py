"""DAA of rows in the host's memory, value and gradient, in one compiled loop that never leaves the cache.

Sixteen rows at a time: ranks by relevance, ranks by score, how well they agree, and the gradient of that with respect
to the scores, of which only a common factor is left for the backward pass. No matrix is kept but the gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halation._parallel import kernel, over_rows
from halation._radix import sort_row, workspace
from halation.losses._compiled_sums import LANES, Polynomials, collect, exp, gaps, scatter, sums, turn, turn_back, walk
from halation.losses._sigmoid_sums import coefficients

__all__ = ["Agreement", "agreement_of_rows"]


class Agreement(NamedTuple):
    """How well each row of scores agrees with its row of relevance."""

    mean: npt.NDArray[np.float64]  # (q,): mean of min/max of the two ranks
    signal: npt.NDArray[np.bool_]  # (q,): the relevance is not constant
    slope: Tensor | None  # (q, n): gradient of Σ_q mean · signal


def agreement_of_rows(
    scores: Tensor, relevance: Tensor, temperature: float, tau: float, mask: Tensor | None, *, slope: bool
) -> Agreement:
    """Scores and relevance (q, n) float32 or float64, temperatures of both (tau = 0: mid-ranks), mask (q, n) bool."""
    s, c = _on_host(scores), _on_host(relevance)
    counts = np.empty((0, s.shape[1]), np.bool_) if mask is None else _on_host(mask)
    tail, bell = coefficients(scores.dtype)
    by_score = Polynomials.of([tail, bell] if slope else [tail])
    by_meaning = Polynomials.of([coefficients(relevance.dtype)[0]])
    backward = Polynomials.of([bell]).below
    sharpness = (1 / temperature, 0.0 if tau == 0 else 1 / tau)
    mean, signal = np.empty(len(s)), np.empty(len(s), np.bool_)
    grad = np.empty(s.shape if slope else (len(s), 0), s.dtype)

    def work(start: int, stop: int) -> None:
        r = slice(start, stop)
        _rows(s[r], c[r], counts[r], sharpness, by_score, by_meaning, backward, mean[r], signal[r], grad[r])

    over_rows(len(s), work, per_task=2 * LANES, at_most=torch.get_num_threads())
    return Agreement(mean, signal, torch.from_numpy(grad) if slope else None)


def _on_host(values: Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.ascontiguousarray(values.detach().numpy())
    return array


@kernel
def _rows(
    scores: Any,
    relevance: Any,
    counts: Any,
    sharpness: Any,
    by_score: Any,
    by_meaning: Any,
    backward: Any,
    mean: Any,
    signal: Any,
    grad: Any,
) -> None:
    rows, n = scores.shape
    along, ranks = np.zeros((LANES, n + 8)), np.zeros((LANES, n))  # + 8: rows a power of two apart share cache lines
    factor, weight, meaning = np.empty((n, LANES)), np.ones((n, LANES)), np.empty((n, LANES))
    total, slopes = np.empty((len(by_score.below), n, LANES)), np.empty((1, n, LANES))
    order, tied, spread = np.zeros((LANES, n), np.int32), np.empty((LANES, n), np.bool_), np.empty(LANES)
    space = workspace(n)
    for top in range(0, rows, LANES):
        here, lanes = slice(top, top + LANES), min(LANES, rows - top)
        _sort(relevance[here], counts[here], sharpness[1], space, order, tied, spread, along)
        for lane in range(lanes):
            signal[top + lane] = spread[lane] != 0.0
            if sharpness[1] == 0.0:
                _mid_ranks(order[lane], tied[lane], counts[here], lane, spread[lane], ranks[lane])
        if sharpness[1] != 0.0:
            turn(along, factor)
            _weigh(counts[here], order, along, weight)
            sums(factor, weight, by_meaning, True, slopes)
            turn_back(slopes[0], along)
            for lane in range(lanes):
                scatter(along[lane], order[lane], ranks[lane])
        _sort(scores[here], counts[here], sharpness[0], space, order, tied, spread, along)
        turn(along, factor)
        _weigh(counts[here], order, along, weight)
        sums(factor, weight, by_score, True, total)
        for lane in range(lanes):
            collect(ranks[lane], order[lane], along[lane])
        turn(along, meaning)
        _agree(total[0], meaning, weight, mean[here], signal[here])
        if grad.shape[1]:
            _gradient(factor, weight, meaning, backward, total[1], sharpness[0], slopes)
            turn_back(slopes[0], along)
            for lane in range(lanes):
                scatter(along[lane], order[lane], grad[top + lane])


@kernel
def _sort(
    values: Any, counts: Any, sharpness: float, space: Any, order: Any, tied: Any, spread: Any, along: Any
) -> None:
    """The order of each row, the distance of its ends (0 if they are equal), and how e^{−gap/τ} falls down the row."""
    n = values.shape[1]
    kept = np.empty(n, values.dtype)
    for lane in range(len(values)):
        _keep(values[lane], counts, lane, kept)
        sort_row(kept, order[lane], tied[lane], space)
        first, last = kept[order[lane, 0]], kept[order[lane, n - 1]]
        spread[lane] = 0.0 if first == last else first - last
        if sharpness != 0.0:
            gaps(kept, order[lane], sharpness, along[lane])
            exp(along[lane, :n])


@kernel
def _keep(values: Any, counts: Any, lane: int, out: Any) -> None:
    """What does not count takes the place of the lowest that does: no NaN or infinity of its own, and no signal."""
    n, whole, found = len(values), len(counts) == 0, False
    lowest = values[0]
    for i in range(n):
        if (whole or counts[lane, i]) and not (found and values[i] >= lowest):
            lowest, found = values[i], True
    for i in range(n):
        if whole or counts[lane, i]:
            out[i] = values[i]
        else:
            out[i] = lowest if found else 0.0


@kernel
def _mid_ranks(order: Any, tied: Any, counts: Any, lane: int, spread: float, out: Any) -> None:
    """The number of those above, and half of the others of equal value; NaN anywhere is NaN everywhere."""
    n, above, start = len(order), 0.0, 0
    while start < n:
        stop, size = start, 0.0
        while stop < n and (stop == start or tied[stop]):
            if len(counts) == 0 or counts[lane, order[stop]]:
                size += 1.0
            stop += 1
        for place in range(start, stop):
            out[order[place]] = above + 0.5 * (size - 1.0) if spread == spread else np.nan
        above += size
        start = stop


@kernel
def _weigh(counts: Any, order: Any, along: Any, weight: Any) -> None:
    if len(counts):
        for lane in range(len(counts)):
            collect(counts[lane], order[lane], along[lane])
        turn(along, weight)


@kernel
def _agree(by_score: Any, by_meaning: Any, weight: Any, mean: Any, signal: Any) -> None:
    """Mean of min/max of the ranks (given without their 1); `by_meaning` becomes its slope in the ranks by score."""
    total, count, share = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    for i in range(len(weight)):
        for lane in range(LANES):
            a, r, c = weight[i, lane], 1.0 + by_score[i, lane], 1.0 + by_meaning[i, lane]
            ratio = r / c if r < c else c / r  # NaN stays NaN
            total[lane] += a * ratio
            count[lane] += a
            by_meaning[i, lane] = a * ratio / (r if r < c else -r) if r != c else 0.0
    for lane in range(len(mean)):
        mean[lane] = total[lane] / max(count[lane], 1.0)
        share[lane] = signal[lane] / max(count[lane], 1.0)
    for i in range(len(weight)):
        for lane in range(LANES):
            by_meaning[i, lane] *= share[lane]


@kernel
def _gradient(factor: Any, weight: Any, grad: Any, bell: Any, slopes: Any, sharpness: float, result: Any) -> None:
    """∂/∂s_m = (a_m Σ_i w g_i − g_m Σ_i w a_i)/τ, with w = σ'((s_i − s_m)/τ) and Σ_i w a_i what `slopes` holds."""
    for i in range(len(weight)):
        for lane in range(LANES):
            result[0, i, lane] = 0.0
    walk(factor, grad, bell, True, result)
    walk(factor, grad, bell, False, result)
    for i in range(len(weight)):
        for lane in range(LANES):
            result[0, i, lane] = (weight[i, lane] * result[0, i, lane] - grad[i, lane] * slopes[i, lane]) * sharpness
