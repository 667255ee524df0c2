"""KL to the standard normal keeps variances from vanishing or exploding."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from halation._errors import InputError, one_of
from halation._torch import widen
from halation.losses._checks import check_finite, check_some
from halation.similarity import Gaussian

__all__ = ["KL", "kl"]


def kl(gaussian: Gaussian, reduction: Literal["mean", "sum"] = "mean", *, check: bool = False) -> Tensor:
    """KL(N(μ, σ²) ‖ N(0, I)) = −½ (1 + ln σ² − μ² − σ²), as a mean or a sum over items and dimensions.

    PCME++ takes the mean (weight 1e-4), PCME the sum (weight 1e-5 for COCO, 1e-3 for CUB). PCME's released code takes
    its log σ for log σ² and the mean of the samples for μ: `kl(Gaussian(z.mean(1), log_std), "sum")`.

    >>> import torch
    >>> kl(Gaussian(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2)), "sum")
    tensor(0.5000)
    """
    one_of(reduction, ("mean", "sum"), "reduction")
    if not isinstance(gaussian, Gaussian):
        raise InputError(f"kl takes a Gaussian, not {type(gaussian).__name__}: Gaussian(mean, log_var) makes one")
    gaussian = gaussian.to(widen(gaussian.mean).dtype)
    check_some("gaussian", gaussian)
    if gaussian.log_var is None:
        raise InputError("kl is undefined at zero variance, and these are points; give them a log_var")
    if check:
        check_finite("gaussian", gaussian)
    terms = -0.5 * (1 + gaussian.log_var - gaussian.mean.square() - gaussian.var)  # (n, d)
    return terms.mean() if reduction == "mean" else terms.sum()


class KL(nn.Module):
    """`kl` with its reduction."""

    def __init__(self, reduction: Literal["mean", "sum"] = "mean", *, check: bool = False) -> None:
        super().__init__()
        one_of(reduction, ("mean", "sum"), "reduction")
        self.reduction, self.check = reduction, check

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"

    def forward(self, gaussian: Gaussian) -> Tensor:
        """A Gaussian with variance; a scalar."""
        return kl(gaussian, self.reduction, check=self.check)
