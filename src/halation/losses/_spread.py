"""σ as the temperature of retrieval: an item that is hard to tell from others gets a wide Gaussian."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import widen
from halation.losses._checks import as_factor, as_matches, check_finite, check_some, positive
from halation.losses._info_nce import info_nce
from halation.similarity import Gaussian, l2

__all__ = ["Others", "Spread", "spread"]


_NEVER = -1e30  # instead of −∞: a query without further negatives gets a gradient of 0, not NaN


class Others(NamedTuple):
    """Further negatives: points (m, d), and whether each of n queries is compared with each of them, (n, m) bool."""

    points: Tensor
    meets: Tensor


def spread(
    a: Gaussian,
    b: Gaussian,
    matches: Array,
    *,
    scale: float | Tensor = 50.0,
    others_a: Others | None = None,
    others_b: Others | None = None,
    check: bool = False,
) -> Tensor:
    """InfoNCE of the distances of the means, where the temperature of each query is its σ².

        S_ij = −‖μ_i − μ_j‖² / (scale · u_i²),   u_i the geometric mean of σ_i;   ½ (queries of a + queries of b)

    An item whose match is easy to find gets a small σ. An item with many similar ones gets a large σ, which makes its
    scores less sharp. This is "Temperature as uncertainty" (Zhang et al., NeurIPS 2021 workshop) for the σ of a
    Gaussian. **The means get no gradient**: they train as if this term were not there. a (n_a, d) and b (n_b, d) with
    variances; matches (n_a, n_b) bool. With a learnt `scale` (`Spread`), σ keeps the size that other terms give it, and
    this term trains only the order.

    An item is hard to find if there are many similar ones, and a batch has few. `others_b` are further negatives for
    the queries of a, `others_a` for those of b: for example a memory of earlier batches. They may be old, because no
    mean is trained here.

    >>> near, far = Gaussian(torch.eye(2), torch.full((2, 2), -4.0)), Gaussian(torch.eye(2), torch.zeros(2, 2))
    >>> spread(near, near, torch.eye(2, dtype=torch.bool), scale=1.0) < spread(far, far, torch.eye(2) > 0, scale=1.0)
    tensor(True)
    """
    a, b = Gaussian.of(a), Gaussian.of(b)
    for name, side in (("a", a), ("b", b)):
        check_some(name, side)
        if check:
            check_finite(name, side)
    scale = as_factor("scale", scale, finite=check)
    scores = _apart(a.mean, b.mean)  # (n_a, n_b)
    matches = as_matches(matches, scores)
    return 0.5 * (
        _one_direction(a, scores, matches, others_b, scale) + _one_direction(b, scores.T, matches.T, others_a, scale)
    )


class Spread(nn.Module):
    """`spread` with a learnt scale, held as its logarithm."""

    def __init__(self, scale: float = 50.0, *, check: bool = False) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(positive("scale", scale)).log())
        self.check = check

    def extra_repr(self) -> str:
        return f"scale={self.log_scale.exp().item():g}"

    def forward(
        self,
        a: Gaussian,
        b: Gaussian,
        matches: Array,
        others_a: Others | None = None,
        others_b: Others | None = None,
    ) -> Tensor:
        """a, b Gaussians, matches (n_a, n_b) bool; a scalar."""
        scale = self.log_scale.exp()
        return spread(a, b, matches, scale=scale, others_a=others_a, others_b=others_b, check=self.check)


def _apart(a: Tensor, b: Tensor) -> Tensor:
    """−‖a_i − b_j‖² (n_a, n_b), without a gradient."""
    return l2(Gaussian.point(a.detach()), Gaussian.point(b.detach()))


def _one_direction(
    queries: Gaussian, scores: Tensor, matches: Tensor, others: Others | None, scale: float | Tensor
) -> Tensor:
    """The loss of one side's queries among the items of the other side and `others`."""
    sharpness = (_sharpness(queries) / scale)[:, None]  # (n, 1)
    logits = scores * sharpness
    if others is not None:
        if others.meets.shape != (len(queries), len(others.points)):
            raise InputError(
                f"others.meets has shape {tuple(others.meets.shape)}, but {len(queries)} queries meet "
                f"{len(others.points)} others"
            )
        further = (_apart(queries.mean, others.points) * sharpness).masked_fill(~others.meets, _NEVER)
        together = further.logsumexp(dim=1, keepdim=True)  # one more negative stands for all of them: exp adds up
        logits = torch.cat([logits, together], dim=1)
        matches = torch.cat([matches, torch.zeros_like(matches[:, :1])], dim=1)
    return info_nce(logits, matches, 1.0, symmetric=False)


def _sharpness(items: Gaussian) -> Tensor:
    """1 / u² (n,)."""
    if items.log_var is None:
        raise InputError("spread trains σ, and these are points; give them a log_var")
    return (-widen(items.log_var).mean(dim=1)).exp()
