"""PCME++: the match loss in closed form, with pseudo-positives for the matches nobody annotated."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from halation._errors import InputError
from halation.gaussian import Gaussian
from halation.losses._checks import check_finite
from halation.similarity import Similarity, csd

__all__ = ["CSDContrastive", "csd_contrastive"]


def csd_contrastive(
    a: Gaussian,
    b: Gaussian,
    labels: Tensor,
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
    of a row is an entry whose logit is at least that of the row's true match (the largest label): it takes that match's
    label. No gradient through labels. `similarity=wasserstein2` gives the Wasserstein variant. The published
    total adds 1e-4 · (kl(a) + kl(b)).

    >>> a = Gaussian(torch.zeros(1, 2), torch.full((1, 2), -9.0))
    >>> csd_contrastive(a, a, torch.ones(1, 1), scale=5.0, shift=0.0, pseudo_positives=0.0)
    tensor(1.3888)
    """
    if labels.shape != (len(a), len(b)):
        raise InputError(f"labels has shape {tuple(labels.shape)} but there are {len(a)} × {len(b)} pairs")
    if check:
        for name, value in (("a", a), ("b", b), ("labels", labels)):
            check_finite(name, value)
    logits = shift + scale * similarity(a, b)  # (n_a, n_b)
    labels = labels.detach().to(logits)
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
        self.scale, self.shift = nn.Parameter(torch.tensor(scale)), nn.Parameter(torch.tensor(shift))
        self.pseudo_positives, self.similarity, self.check = pseudo_positives, similarity, check

    def forward(self, a: Gaussian, b: Gaussian, labels: Tensor) -> Tensor:
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
    value, match = labels.max(dim=1, keepdim=True)  # (n, 1): the row's true match
    return torch.where(logits >= logits.gather(1, match), value, labels)
