"""PCME's soft contrastive loss: the log-likelihood of the matches, by Monte Carlo."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import Variant, as_tensor, as_variant
from halation.losses._checks import as_factor, as_matches, check_finite, check_some
from halation.similarity import Gaussian, match_log_likelihood

__all__ = ["SoftContrastive", "soft_contrastive"]


def soft_contrastive(
    a: Gaussian | Array,
    b: Gaussian | Array,
    matches: Array,
    *,
    scale: float | Tensor = 15.0,
    shift: float | Tensor = 15.0,
    samples: int = 7,
    generator: torch.Generator | None = None,
    variant: Variant = "paper",
    check: bool = False,
) -> Tensor:
    """Mean over all pairs of −ln p for matches and −ln(1 − p) for others, where p is the `match_probability`.

        p = mean over J² sample pairs of σ(shift − scale·√(‖z_a − z_b‖² + 1e-6))

    Oh et al., ICLR 2019 (HIB); Chun et al., CVPR 2021 (PCME). a and b are `Gaussian`s, from which `samples` samples are
    drawn with `generator`, or samples already drawn (n, J, d). matches (n_a, n_b) bool: all captions of an image are
    positives. `variant="released"` reproduces the authors' code: twice the sum over all pairs, with doubled logits.

    >>> z = torch.zeros(1, 7, 4)
    >>> soft_contrastive(z, z + 0.5, torch.tensor([[True]]), scale=5.0, shift=5.0)
    tensor(0.6931)
    """
    a, b = _items("a", a, check), _items("b", b, check)
    scale, shift = as_factor("scale", scale, finite=check), as_factor("shift", shift, finite=check)
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
        variant: Variant = "paper",
        check: bool = False,
    ) -> None:
        super().__init__()
        if samples < 1:
            raise InputError(f"samples must be at least 1, not {samples}")
        self.scale, self.shift = nn.Parameter(torch.tensor(float(scale))), nn.Parameter(torch.tensor(float(shift)))
        self.samples, self.variant, self.check = samples, as_variant(variant), check

    def extra_repr(self) -> str:
        return (
            f"scale={self.scale.item():g}, shift={self.shift.item():g}, "
            f"samples={self.samples}, variant={self.variant!r}"
        )

    def forward(
        self,
        a: Gaussian | Array,
        b: Gaussian | Array,
        matches: Array,
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


def _items(name: str, items: Gaussian | Array, check: bool) -> Gaussian | Tensor:
    items = items if isinstance(items, Gaussian) else as_tensor(items, name)
    check_some(name, items)
    if check:
        check_finite(name, items)
    return items
