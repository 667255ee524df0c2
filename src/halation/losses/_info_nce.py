"""InfoNCE, the loss of CLIP, with any number of positives."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from halation._arrays import Array
from halation._torch import widen
from halation.losses._checks import as_factor, as_matches, check_finite, check_matrix, positive

__all__ = ["InfoNCE", "info_nce"]


def info_nce(
    scores: Tensor,
    matches: Array,
    temperature: float | Tensor = 0.07,
    *,
    symmetric: bool = True,
    check: bool = False,
) -> Tensor:
    """Cross-entropy of a match against the non-matches: mean over matches, then over rows.

        L_q = mean_{p∈P(q)} −ln( e^{S_p/τ} / (e^{S_p/τ} + Σ_{n∉P(q)} e^{S_n/τ}) ),   ½ (rows + columns) if symmetric

    van den Oord et al., 2018; with one match per row it is the loss of CLIP (Radford et al., ICML 2021). With several,
    the other matches of q are not in the denominator: a second caption of the image is never a false negative.
    scores (q, n), usually cosines; matches (q, n) bool. Rows without a match are left out of the mean.

    >>> info_nce(torch.eye(2), torch.eye(2, dtype=torch.bool), temperature=1.0)
    tensor(0.3133)
    """
    check_matrix("scores", scores)
    if check:
        check_finite("scores", scores)
    matches = as_matches(matches, scores)
    temperature = as_factor("temperature", temperature, finite=check)
    if not isinstance(temperature, Tensor):
        positive("temperature", temperature)
    logits = widen(scores) / temperature
    if not symmetric:
        return _rows(logits, matches)
    return 0.5 * (_rows(logits, matches) + _rows(logits.T, matches.T))


class InfoNCE(nn.Module):
    """`info_nce` with a learnt temperature, held as its logarithm; `learn=False` keeps it fixed."""

    def __init__(
        self, temperature: float = 0.07, *, learn: bool = True, symmetric: bool = True, check: bool = False
    ) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(
            torch.tensor(positive("temperature", temperature)).log(), requires_grad=learn
        )
        self.symmetric, self.check = symmetric, check

    def extra_repr(self) -> str:
        learnt = self.log_temperature.requires_grad
        return f"temperature={self.log_temperature.exp().item():g}, learn={learnt}, symmetric={self.symmetric}"

    def forward(self, scores: Tensor, matches: Array) -> Tensor:
        """scores (q, n), matches (q, n) bool; a scalar."""
        temperature = self.log_temperature.exp()
        return info_nce(scores, matches, temperature, symmetric=self.symmetric, check=self.check)


def _rows(logits: Tensor, matches: Tensor) -> Tensor:
    # −1e30 rather than −∞: a row without negatives must have a gradient of 0, not NaN
    negatives = logits.masked_fill(matches, -1e30).logsumexp(dim=1, keepdim=True)  # (q, 1)
    cost = softplus(negatives - logits).masked_fill(~matches, 0)  # (q, n)
    count = matches.sum(dim=1)
    return (cost.sum(dim=1) / count.clamp(min=1)).sum() / (count > 0).sum().clamp(min=1)
