"""Smooth-AP: average precision with soft ranks."""

from __future__ import annotations

from torch import Tensor, nn

from halation._arrays import Array
from halation.losses._checks import as_mask, as_matches, as_temperature, check_finite, check_matrix
from halation.losses._soft_rank import soft_rank

__all__ = ["SmoothAP", "smooth_ap"]


def smooth_ap(
    scores: Tensor, matches: Array, temperature: float = 0.01, mask: Array | None = None, *, check: bool = False
) -> Tensor:
    """1 − mean over rows of AP = 1/|P| Σ_{i∈P} R(i, P)/R(i, Ω), R(i, X) the soft rank of i among X.

    Brown et al., ECCV 2020. scores (q, n); matches (q, n) bool, the positives P of each row; mask (q, n) or (n,) bool,
    True = counts. Rows without a positive are left out of the mean.

    >>> import torch
    >>> scores = torch.tensor([[0.9, 0.5, 0.1]])
    >>> smooth_ap(scores, torch.tensor([[False, True, False]]))
    tensor(0.5000)
    """
    check_matrix("scores", scores)
    positives = as_matches(matches, scores)
    if mask is not None:
        mask = as_mask(mask, scores)
        positives = positives & mask
    if check:
        check_finite("scores", scores, mask)
    among_all = soft_rank(scores, temperature, mask=mask)  # (q, n)
    among_positives = soft_rank(scores, temperature, mask=positives)  # (q, n), 0 for all others
    count = positives.sum(dim=1)
    precision = (among_positives / among_all.clamp(min=1)).sum(dim=1) / count.clamp(min=1)
    return ((1 - precision) * (count > 0)).sum() / (count > 0).sum().clamp(min=1)


class SmoothAP(nn.Module):
    """`smooth_ap` of the scores plus `smooth_ap` of their transpose; with `symmetric=False` only the first."""

    def __init__(self, temperature: float = 0.01, *, symmetric: bool = True, check: bool = False) -> None:
        super().__init__()
        self.temperature, self.symmetric, self.check = as_temperature(temperature), symmetric, check

    def extra_repr(self) -> str:
        return f"temperature={self.temperature:g}, symmetric={self.symmetric}"

    def forward(self, scores: Tensor, matches: Array, mask: Array | None = None) -> Tensor:
        """scores (q, n), matches (q, n) bool; a scalar."""
        check_matrix("scores", scores)
        matches = as_matches(matches, scores)
        loss = smooth_ap(scores, matches, self.temperature, mask, check=self.check)
        if not self.symmetric:
            return loss
        across = None if mask is None else as_mask(mask, scores).T
        return loss + smooth_ap(scores.T, matches.T, self.temperature, across, check=self.check)
