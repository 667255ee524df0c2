"""DAA: train the semantic ranking itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import Variant, as_variant, first_derivative_only, widen
from halation.losses._checks import as_mask, as_relevance, as_temperature, check_finite, check_matrix
from halation.losses._soft_rank import mid_rank, outside_graphs, sigmoid_sums, soft_rank

__all__ = ["DAA", "daa"]


def daa(
    scores: Tensor,
    relevance: Array,
    temperature: float = 1e-3,
    variant: Variant = "paper",
    relevance_temperature: float | None = None,
    mask: Array | None = None,
    *,
    check: bool = False,
) -> Tensor:
    """1 − soft ASP over rows: how far the ranking by scores is from the ranking by relevance; 0 = equal.

        DAA = 1 − mean_{q,i} min(R_S, R_C) / max(R_S, R_C),   R = soft_rank(·, τ)

    Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for Cross-Modal Retrieval",
    NeurIPS 2022; its weight is 25 (COCO) or 10 (Flickr30K) per direction, where this function has 1.

    scores (q, n), a tensor; relevance (q, n), a tensor or array of any real type; mask (q, n) or (n,) bool, True =
    counts. Only the scores get a gradient, and it cannot be differentiated again. A row of constant relevance carries
    no signal and is left out of the mean. `relevance_temperature` is the temperature of the ranks by relevance: 0 =
    exact mid-ranks, None = that of the scores.

    `variant="released"` reproduces the authors' code: entries of row b are ranked among *column* b (a missing
    transpose), only square matrices are allowed, and constant rows count.

    >>> relevance = torch.tensor([[0.1, 0.7, 0.3], [0.9, 0.2, 0.4]])
    >>> daa(10 * relevance - 5, relevance, temperature=1e-3)
    tensor(0.)
    >>> daa(-relevance, relevance, temperature=0.01)
    tensor(0.4444)
    """
    check_matrix("scores", scores)
    relevance = as_relevance(relevance, tuple(scores.shape)).to(scores.device)
    mask = None if mask is None else as_mask(mask, scores)
    if check:
        check_finite("scores", scores, mask)
        check_finite("relevance", relevance, mask)
    variant, temperature = as_variant(variant), as_temperature(temperature)
    tau = temperature if relevance_temperature is None else _relevance_temperature(relevance_temperature)
    if variant == "released":
        return _released(scores, relevance, temperature, tau, mask)
    return _rows(scores, relevance, temperature, tau, mask)


class DAA(nn.Module):
    """`daa` of the scores plus `daa` of their transpose; with `symmetric=False` only the first.

    >>> loss = DAA(temperature=0.01)
    >>> scores = torch.tensor([[0.9, 0.1], [0.2, 0.8]], requires_grad=True)
    >>> loss(scores, torch.eye(2)).backward()
    """

    def __init__(
        self,
        temperature: float = 1e-3,
        variant: Variant = "paper",
        relevance_temperature: float | None = None,
        *,
        symmetric: bool = True,
        check: bool = False,
    ) -> None:
        super().__init__()
        self.temperature, self.variant = as_temperature(temperature), as_variant(variant)
        tau = relevance_temperature
        self.relevance_temperature = None if tau is None else _relevance_temperature(tau)
        if variant == "released" and self.relevance_temperature == 0:
            raise InputError("the released DAA has no hard ranks; use variant='paper'")
        self.symmetric, self.check = symmetric, check

    def forward(self, scores: Tensor, relevance: Array, mask: Array | None = None) -> Tensor:
        """scores, relevance (q, n), mask (q, n) or None; a scalar."""
        check_matrix("scores", scores)
        relevance = as_relevance(relevance, tuple(scores.shape))
        loss = self._rows(scores, relevance, mask)
        if not self.symmetric:
            return loss
        across = None if mask is None else as_mask(mask, scores).T
        return loss + self._rows(scores.T, relevance.T, across)

    def _rows(self, scores: Tensor, relevance: Tensor, mask: Array | None) -> Tensor:
        return daa(
            scores, relevance, self.temperature, self.variant, self.relevance_temperature, mask, check=self.check
        )

    def extra_repr(self) -> str:
        parts = [f"temperature={self.temperature:g}", f"variant={self.variant!r}", f"symmetric={self.symmetric}"]
        if self.relevance_temperature is not None:
            parts.insert(1, f"relevance_temperature={self.relevance_temperature:g}")
        return ", ".join(parts)


def _relevance_temperature(value: float | None) -> float:
    return as_temperature(value, "relevance_temperature", zero=True)


def _rows(scores: Tensor, relevance: Tensor, temperature: float, tau: float, mask: Tensor | None) -> Tensor:
    by_score = soft_rank(scores, temperature, mask=mask)  # (q, n)
    by_meaning = mid_rank(relevance, mask=mask) if tau == 0 else soft_rank(relevance, tau, mask=mask)
    by_meaning = by_meaning.to(by_score.dtype)
    if mask is None:
        per_row = _agreement(by_score, by_meaning).mean(dim=1)
        signal = relevance.amin(dim=1) < relevance.amax(dim=1)
    else:
        ratio = _agreement(by_score.clamp(min=1), by_meaning.clamp(min=1))  # masked candidates have rank 0
        per_row = (ratio * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        lowest = relevance.masked_fill(~mask, torch.inf).amin(dim=1)
        signal = lowest < relevance.masked_fill(~mask, -torch.inf).amax(dim=1)
    return ((1 - per_row) * signal).sum() / signal.sum().clamp(min=1)


@outside_graphs
def _agreement(by_score: Tensor, by_meaning: Tensor) -> Tensor:
    """The smaller of two ranks over the larger; 1 where they agree."""
    result: Tensor = _Agreement.apply(by_score, by_meaning)  # type: ignore[no-untyped-call]
    return result


class _Agreement(torch.autograd.Function):
    """min(r, c)/max(r, c), which saves its gradient in r: +1/c below c, −c/r² above, 0 where they agree."""

    @staticmethod
    def forward(ctx: Any, by_score: Tensor, by_meaning: Tensor) -> Tensor:
        ratio = torch.minimum(by_score, by_meaning).div_(torch.maximum(by_score, by_meaning))
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward((ratio / by_score).mul_(torch.sub(by_meaning, by_score).sign_()))
        return ratio

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return grad * slope, None


def _released(scores: Tensor, relevance: Tensor, temperature: float, tau: float, mask: Tensor | None) -> Tensor:
    if scores.shape[0] != scores.shape[1]:
        raise InputError(f"the released DAA needs a square matrix, not {tuple(scores.shape)}; use variant='paper'")
    if mask is not None or tau == 0:
        raise InputError("the released DAA has neither a mask nor hard ranks; use variant='paper'")
    by_score = _rank_among_columns(scores, temperature)
    with torch.no_grad():
        by_meaning = _rank_among_columns(relevance, tau).to(by_score.dtype)
    return 1 - _agreement(by_score, by_meaning).mean()


def _rank_among_columns(x: Tensor, temperature: float) -> Tensor:
    """The soft ranks of row b's entries among column b: R[b, c] = 1 + Σ_{a≠c} σ((X[a, b] − X[b, c])/τ)."""
    x = widen(x)
    n = x.shape[0]
    among = torch.cat([x, x.T], dim=1)  # (n, 2n): first the entries to rank, then those that count
    counts = torch.cat([torch.zeros_like(x), torch.ones_like(x)], dim=1)
    return 1 + sigmoid_sums(among, counts, temperature)[:, :n] - torch.sigmoid((x.T - x) / temperature)
