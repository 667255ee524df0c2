"""The hinge loss of VSE++: every match should beat every other pair by a margin."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation._arrays import Array
from halation._torch import by_tiles, widen
from halation.losses._checks import as_matches, check_finite, check_matrix

__all__ = ["Triplet", "triplet"]


def triplet(
    scores: Tensor,
    matches: Array,
    margin: float = 0.2,
    *,
    hardest: bool = True,
    symmetric: bool = True,
    check: bool = False,
) -> Tensor:
    """Σ over matches (i, j) of [margin + S_neg − S_ij]₊, the negatives from row i and from column j.

    `hardest=True` takes only the highest negative of each row and column (VSE++, Faghri et al., BMVC 2018). False sums
    over all negatives, tile by tile, so that memory stays bounded even if most pairs match. `symmetric=False` takes
    only negatives from rows. scores (q, n); matches (q, n) bool; a match is never a negative.

    >>> scores = torch.tensor([[0.9, 0.8], [0.1, 0.7]])
    >>> triplet(scores, torch.eye(2, dtype=torch.bool), margin=0.2)
    tensor(0.4000)
    """
    check_matrix("scores", scores)
    if check:
        check_finite("scores", scores)
    matches = as_matches(matches, scores)
    scores = widen(scores)
    loss = _rows(scores, matches, margin, hardest)
    return loss + _rows(scores.T, matches.T, margin, hardest) if symmetric else loss


class Triplet(nn.Module):
    """`triplet` with its margin."""

    def __init__(
        self, margin: float = 0.2, *, hardest: bool = True, symmetric: bool = True, check: bool = False
    ) -> None:
        super().__init__()
        self.margin, self.hardest, self.symmetric, self.check = margin, hardest, symmetric, check

    def extra_repr(self) -> str:
        return f"margin={self.margin:g}, hardest={self.hardest}, symmetric={self.symmetric}"

    def forward(self, scores: Tensor, matches: Array) -> Tensor:
        """scores (q, n), matches (q, n) bool; a scalar."""
        return triplet(scores, matches, self.margin, hardest=self.hardest, symmetric=self.symmetric, check=self.check)


def _rows(scores: Tensor, matches: Tensor, margin: float, hardest: bool) -> Tensor:
    negatives = scores.masked_fill(matches, -torch.inf)  # (q, n)
    if hardest:
        return (margin + negatives.amax(dim=1, keepdim=True) - scores)[matches].relu().sum()
    row, column = matches.nonzero(as_tuple=True)
    positives = scores[row, column]

    def part(some: slice, _: slice) -> Tensor:
        hinges = (margin + negatives[row[some]] - positives[some, None]).relu()  # (some, n)
        return hinges.sum(dim=1, keepdim=True)

    return by_tiles(len(row), 1, scores.shape[1], part).sum()
