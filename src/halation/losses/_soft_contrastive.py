"""PCME's soft contrastive loss: the log-likelihood of which pairs match, by Monte Carlo."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from halation.gaussian import Gaussian
from halation.losses._checks import as_matches, check_finite
from halation.similarity import match_log_likelihood

__all__ = ["SoftContrastive", "soft_contrastive"]


def soft_contrastive(
    a: Gaussian | Tensor,
    b: Gaussian | Tensor,
    matches: Tensor,
    *,
    scale: float | Tensor = 15.0,
    shift: float | Tensor = 15.0,
    samples: int = 7,
    generator: torch.Generator | None = None,
    variant: Literal["paper", "released"] = "paper",
    check: bool = False,
) -> Tensor:
    """Mean over all pairs of −ln p for matches and −ln(1 − p) for the others, p the `match_probability`.

        p = mean over J² sample pairs of σ(shift − scale·√(‖z_a − z_b‖² + 1e-6))

    Oh et al., ICLR 2019 (HIB); Chun et al., CVPR 2021 (PCME). a and b are `Gaussian`s, `samples` of which are drawn
    with `generator`, or samples already drawn (n, J, d). matches (n_a, n_b) bool: several captions of an image are
    all positives. `variant="released"` is the authors' code: the sum over all pairs, counted twice, of doubled logits.

    >>> z = torch.zeros(1, 7, 4)
    >>> soft_contrastive(z, z + 0.5, torch.tensor([[True]]), scale=5.0, shift=5.0)
    tensor(0.6931)
    """
    if check:
        check_finite("a", a)
        check_finite("b", b)
    log_likelihood = match_log_likelihood(
        a,
        b,
        as_matches(matches, (len(a), len(b))),
        scale=scale,
        shift=shift,
        samples=samples,
        generator=generator,
        variant=variant,
    )
    return -2 * log_likelihood.sum() if variant == "released" else -log_likelihood.mean()


class SoftContrastive(nn.Module):
    """`soft_contrastive` with learnt scale and shift (start 15, 15 for COCO; 5, 5 for CUB)."""

    def __init__(
        self,
        scale: float = 15.0,
        shift: float = 15.0,
        *,
        samples: int = 7,
        variant: Literal["paper", "released"] = "paper",
        check: bool = False,
    ) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(scale)), nn.Parameter(torch.tensor(shift))
        self.samples, self.variant, self.check = samples, variant, check

    def forward(
        self,
        a: Gaussian | Tensor,
        b: Gaussian | Tensor,
        matches: Tensor,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """a, b Gaussians or samples, matches (n_a, n_b) bool; a scalar."""
        return soft_contrastive(
            a,
            b,
            matches,
            scale=self.scale,
            shift=self.shift,
            samples=self.samples,
            generator=generator,
            variant=self.variant,
            check=self.check,
        )
