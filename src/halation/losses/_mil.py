"""PVSE's multiple-instance loss: items have K embeddings, and their best pair is the score."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._arrays import Array
from halation._errors import InputError
from halation.losses._checks import as_points, check_finite
from halation.losses._triplet import triplet
from halation.similarity import cosine

__all__ = ["MIL", "mil"]


def mil(
    a: Array, b: Array, matches: Array, margin: float = 0.1, *, hardest: bool = True, check: bool = False
) -> Tensor:
    """`triplet` over S_ij = max over the K × K' pairs of cos(a_ik, b_jl).

    Song and Soleymani, CVPR 2019 (PVSE). a (n_a, K, d), b (n_b, K', d), matches (n_a, n_b) bool.

    >>> import torch
    >>> a = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> mil(a, torch.tensor([[[0.0, 2.0]], [[1.0, 1.0]]]), torch.tensor([[True, False]]), margin=0.4)
    tensor(0.1071)
    """
    a, b = as_points("a", a), as_points("b", b)
    for name, x in (("a", a), ("b", b)):
        if x.ndim != 3:
            raise InputError(f"{name} must hold K embeddings per item, (n, K, d), not {tuple(x.shape)}")
        if check:
            check_finite(name, x)
    pairs = cosine(normalize(a, dim=2).flatten(0, 1), normalize(b, dim=2).flatten(0, 1))  # (n_a·K, n_b·K')
    scores = pairs.view(len(a), a.shape[1], len(b), b.shape[1]).amax(dim=(1, 3))  # (n_a, n_b)
    return triplet(scores, matches, margin, hardest=hardest)


class MIL(nn.Module):
    """`mil` with its margin."""

    def __init__(self, margin: float = 0.1, *, hardest: bool = True, check: bool = False) -> None:
        super().__init__()
        self.margin, self.hardest, self.check = margin, hardest, check

    def extra_repr(self) -> str:
        return f"margin={self.margin:g}, hardest={self.hardest}"

    def forward(self, a: Array, b: Array, matches: Array) -> Tensor:
        """a (n_a, K, d), b (n_b, K', d), matches (n_a, n_b) bool; a scalar."""
        return mil(a, b, matches, self.margin, hardest=self.hardest, check=self.check)
