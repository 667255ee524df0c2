"""Input at the edge: every loss stays finite, in value and in gradient, and says so in a scalar."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from halation import Gaussian, losses

Loss = Callable[[Tensor], Tensor]


def relevance(n: int, m: int) -> Tensor:
    return torch.rand(n, m, generator=torch.Generator().manual_seed(0))


def matches(n: int, m: int) -> Tensor:
    return torch.eye(n, m, dtype=torch.bool)


SCORES: dict[str, Loss] = {
    "daa": lambda s: losses.DAA(1e-3)(s, relevance(*s.shape)),
    "daa, τ = 1e-6": lambda s: losses.DAA(1e-6)(s, relevance(*s.shape)),
    "daa, hard relevance": lambda s: losses.daa(s, relevance(*s.shape), relevance_temperature=0),
    "daa, tied relevance": lambda s: losses.DAA(1e-3)(s, relevance(*s.shape).round()),
    "daa, released": lambda s: losses.DAA(1e-3, "released")(s, relevance(*s.shape)),
    "daa, nothing counts": lambda s: losses.DAA()(s, relevance(*s.shape), torch.zeros(s.shape).bool()),
    "smooth_ap": lambda s: losses.SmoothAP()(s, matches(*s.shape)),
    "smooth_ap, no match": lambda s: losses.smooth_ap(s, torch.zeros(s.shape).bool()),
    "triplet": lambda s: losses.triplet(s, matches(*s.shape)),
    "triplet, sum": lambda s: losses.triplet(s, matches(*s.shape), hardest=False),
    "triplet, all match": lambda s: losses.triplet(s, torch.ones(s.shape).bool()),
    "info_nce": lambda s: losses.info_nce(s, matches(*s.shape)),
    "info_nce, all match": lambda s: losses.info_nce(s, torch.ones(s.shape).bool()),
    "info_nce, no match": lambda s: losses.info_nce(s, torch.zeros(s.shape).bool()),
    "sigmoid_pairwise": lambda s: losses.sigmoid_pairwise(s, matches(*s.shape)),
}
INPUTS: dict[str, Tensor] = {
    "all equal": torch.full((20, 20), 0.5),
    "one candidate": torch.full((1, 1), 0.5),
    "one row": torch.linspace(-1, 1, 30)[None],
    "huge": 1e4 * torch.randn(20, 20, generator=torch.Generator().manual_seed(1)),
    "huge and close": 1e4 + torch.rand(20, 20, generator=torch.Generator().manual_seed(2)),
    "tiny": 1e-30 * torch.randn(20, 20, generator=torch.Generator().manual_seed(3)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("name", "kind"),
    # the released code needs a square matrix
    [(name, kind) for name in SCORES for kind in INPUTS if (name, kind) != ("daa, released", "one row")],
)
def test_losses_of_scores_stay_finite(name: str, kind: str, dtype: torch.dtype) -> None:
    scores = INPUTS[kind].to(dtype, copy=True).requires_grad_()
    loss = SCORES[name](scores)
    assert loss.shape == ()
    assert torch.isfinite(loss)
    (grad,) = torch.autograd.grad(loss, scores)
    assert grad.dtype == dtype
    assert torch.isfinite(grad).all()


GAUSSIANS: dict[str, Callable[[Gaussian], Tensor]] = {
    "soft_contrastive": lambda g: losses.soft_contrastive(
        g, g, torch.eye(len(g)).bool(), generator=torch.Generator().manual_seed(0)
    ),
    "csd_contrastive": lambda g: losses.csd_contrastive(g, g, torch.eye(len(g))),
    "kl": losses.kl,
    "kl, sum": lambda g: losses.kl(g, "sum"),
    "uniformity": lambda g: losses.uniformity(g.mean),
    "mmd": lambda g: losses.mmd(g.mean, g.mean.flip(0)),
    "mil": lambda g: losses.mil(g.mean[:, None], g.mean[:, None], torch.eye(len(g)).bool()),
    "diversity": lambda g: losses.diversity(g.mean[:, None].expand(-1, 2, -1)),
}
CLOUDS: dict[str, tuple[Tensor, Tensor]] = {
    "all equal": (torch.ones(6, 8), torch.zeros(6, 8)),
    "all zero": (torch.zeros(6, 8), torch.zeros(6, 8)),
    "nearly points": (torch.randn(6, 8, generator=torch.Generator().manual_seed(0)), torch.full((6, 8), -60.0)),
    "wide": (torch.randn(6, 8, generator=torch.Generator().manual_seed(0)), torch.full((6, 8), 9.0)),
    "far away": (100 * torch.randn(6, 8, generator=torch.Generator().manual_seed(0)), torch.zeros(6, 8)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", sorted(CLOUDS))
@pytest.mark.parametrize("name", sorted(GAUSSIANS))
def test_losses_of_gaussians_stay_finite(name: str, kind: str, dtype: torch.dtype) -> None:
    mean, log_var = (t.to(dtype, copy=True).requires_grad_() for t in CLOUDS[kind])
    loss = GAUSSIANS[name](Gaussian(mean, log_var))
    assert loss.shape == ()
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.isfinite(loss)
    loss.backward()
    for leaf in (mean, log_var):
        assert leaf.grad is None or torch.isfinite(leaf.grad).all()


def test_every_loss_has_a_module_of_its_name() -> None:
    functions = {name for name in losses.__all__ if name.islower()} - {"soft_rank", "mid_rank", "match_matrix"}
    modules = {name for name in losses.__all__ if not name.islower()} - {"Others"}
    assert {name.replace("_", "") for name in functions} == {name.lower() for name in modules}
    for name in modules:
        assert issubclass(getattr(losses, name), torch.nn.Module)
