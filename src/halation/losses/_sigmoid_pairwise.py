"""SigLIP: every pair is classified as a match or not."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from halation._arrays import Array
from halation._torch import widen
from halation.losses._checks import as_factor, as_matches, check_finite, check_matrix, positive

__all__ = ["SigmoidPairwise", "sigmoid_pairwise"]


def sigmoid_pairwise(
    scores: Tensor,
    matches: Array,
    *,
    scale: float | Tensor = 10.0,
    shift: float | Tensor = -10.0,
    check: bool = False,
) -> Tensor:
    """−1/q Σ_{ij} ln σ(±(scale·S_ij + shift)), + for matches and − for other pairs.

    Zhai et al., ICCV 2023 (SigLIP). scores (q, n), usually cosines; matches (q, n) bool, any number per row.

    >>> sigmoid_pairwise(torch.eye(2), torch.eye(2, dtype=torch.bool))
    tensor(0.6932)
    """
    check_matrix("scores", scores)
    if check:
        check_finite("scores", scores)
    matches = as_matches(matches, scores)
    scale, shift = as_factor("scale", scale, finite=check), as_factor("shift", shift, finite=check)
    logits = scale * widen(scores) + shift
    return -logsigmoid(torch.where(matches, logits, -logits)).sum() / len(scores)


class SigmoidPairwise(nn.Module):
    """`sigmoid_pairwise` with learnt scale (held as its logarithm) and shift."""

    def __init__(self, scale: float = 10.0, shift: float = -10.0, *, check: bool = False) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(positive("scale", scale))))
        self.shift = nn.Parameter(torch.tensor(float(shift)))
        self.check = check

    def extra_repr(self) -> str:
        return f"scale={self.log_scale.exp().item():g}, shift={self.shift.item():g}"

    def forward(self, scores: Tensor, matches: Array) -> Tensor:
        """scores (q, n), matches (q, n) bool; a scalar."""
        return sigmoid_pairwise(scores, matches, scale=self.log_scale.exp(), shift=self.shift, check=self.check)
