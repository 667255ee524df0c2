"""PCME++: the match loss in closed form, with pseudo-positives for matches that nobody annotated."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import as_tensor
from halation.losses._checks import as_factor, check_finite, check_some
from halation.similarity import Gaussian, Similarity, csd

__all__ = ["CSDContrastive", "csd_contrastive"]


def csd_contrastive(
    a: Gaussian,
    b: Gaussian,
    labels: Array,
    *,
    scale: float | Tensor = 5.0,
    shift: float | Tensor = 5.0,
    pseudo_positives: float = 0.1,
    similarity: Similarity = csd,
    check: bool = False,
) -> Tensor:
    """2·BCE(logits, labels) + α·(BCE with pseudo-positives of the rows + BCE with those of the columns).

        logits = shift + scale·csd(a, b),   BCE the mean over all pairs

    Chun, ICLR 2024 (PCME++). labels (n_a, n_b) in 0..1: a match matrix, smoothed or mixed labels. A pseudo-positive
    of a row is an entry whose logit is at least that of the row's true match; it takes that match's label. The true
    match is the largest label; of several, the one of the lowest logit, so that the order of captions has no effect.
    Labels get no gradient. `similarity=wasserstein2` gives the Wasserstein variant. The published total adds
    1e-4 · (kl(a) + kl(b)).

    >>> a = Gaussian(torch.zeros(1, 2), torch.full((1, 2), -9.0))
    >>> csd_contrastive(a, a, torch.ones(1, 1), scale=5.0, shift=0.0, pseudo_positives=0.0)
    tensor(1.3888)
    """
    a, b = Gaussian.of(a), Gaussian.of(b)
    for name, side in (("a", a), ("b", b)):
        check_some(name, side)
        if check:
            check_finite(name, side)
    scale, shift = as_factor("scale", scale, finite=check), as_factor("shift", shift, finite=check)
    labels = _as_labels(labels, (len(a), len(b)))
    logits = shift + scale * similarity(a, b)  # (n_a, n_b)
    labels = labels.to(logits)
    loss = 2 * binary_cross_entropy_with_logits(logits, labels)
    if pseudo_positives == 0:
        return loss
    rows = binary_cross_entropy_with_logits(logits, _with_pseudo_positives(labels, logits))
    columns = binary_cross_entropy_with_logits(logits, _with_pseudo_positives(labels.T, logits.T).T)
    return loss + pseudo_positives * (rows + columns)


class CSDContrastive(nn.Module):
    """`csd_contrastive` with learnt scale and shift."""

    def __init__(
        self,
        scale: float = 5.0,
        shift: float = 5.0,
        *,
        pseudo_positives: float = 0.1,
        similarity: Similarity = csd,
        check: bool = False,
    ) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(float(scale))), nn.Parameter(torch.tensor(float(shift)))
        self.pseudo_positives, self.similarity, self.check = pseudo_positives, similarity, check

    def extra_repr(self) -> str:
        return (
            f"scale={self.scale.item():g}, shift={self.shift.item():g}, "
            f"pseudo_positives={self.pseudo_positives:g}, similarity={self.similarity}"
        )

    def forward(self, a: Gaussian, b: Gaussian, labels: Array) -> Tensor:
        """a, b Gaussians, labels (n_a, n_b); a scalar."""
        return csd_contrastive(
            a,
            b,
            labels,
            scale=self.scale,
            shift=self.shift,
            pseudo_positives=self.pseudo_positives,
            similarity=self.similarity,
            check=self.check,
        )


@torch.no_grad()
def _with_pseudo_positives(labels: Tensor, logits: Tensor) -> Tensor:
    value = labels.amax(dim=1, keepdim=True)  # (n, 1): the label of the row's true matches
    weakest = logits.masked_fill(labels < value, torch.inf).amin(dim=1, keepdim=True)
    return torch.where(logits >= weakest, value, labels)


def _as_labels(labels: Array, shape: tuple[int, int]) -> Tensor:
    matrix = as_tensor(labels, "labels").detach()
    if matrix.shape != shape:
        raise InputError(f"labels has shape {tuple(matrix.shape)} but there are {shape[0]} × {shape[1]} pairs")
    wrong = (~((matrix >= 0) & (matrix <= 1))).nonzero()
    if len(wrong):
        position = tuple(wrong[0].tolist())
        raise InputError(f"labels{list(position)} is {matrix[position].item():g}; labels are in 0..1, 1 = a match")
    return matrix
