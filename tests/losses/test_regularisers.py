"""KL, uniformity, diversity and MMD against loops from their equations and independent implementations."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from halation import Gaussian, InputError, losses
from halation.losses import diversity, kl, mmd, uniformity


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()


def test_kl_agrees_with_torch_distributions() -> None:
    mean, log_var = draw(4, 3), draw(4, 3, seed=1)
    g = Gaussian(mean, log_var)
    peer = kl_divergence(Normal(mean, g.std), Normal(torch.zeros(()).double(), torch.ones(()).double()))
    torch.testing.assert_close(kl(g), peer.mean(), rtol=1e-12, atol=0)
    torch.testing.assert_close(losses.KL("sum")(g), peer.sum(), rtol=1e-12, atol=0)
    by_hand = sum(
        -0.5 * (1 + v - m * m - math.exp(v))
        for m, v in zip(mean.flatten().tolist(), log_var.flatten().tolist(), strict=True)
    )
    assert kl(g, "sum").item() == pytest.approx(by_hand, rel=1e-12)
    assert torch.autograd.gradcheck(lambda m, v: kl(Gaussian(m, v)), (mean, log_var))


def test_kl_of_the_standard_normal_is_zero_and_nothing_is_below() -> None:
    assert kl(Gaussian(torch.zeros(2, 3), torch.zeros(2, 3))).item() == 0
    assert kl(Gaussian(draw(50, 3), draw(50, 3, seed=1))).item() > 0


def test_uniformity_equals_a_loop_over_pairs_and_pdist() -> None:
    x = draw(9, 4)
    points = x.tolist()
    pairs = [math.exp(-2 * math.dist(points[i], points[j]) ** 2) for i in range(9) for j in range(i)]
    assert uniformity(x).item() == pytest.approx(math.log(sum(pairs) / len(pairs)), rel=1e-11)
    torch.testing.assert_close(losses.Uniformity()(x), torch.pdist(x).square().mul(-2).exp().mean().log())
    torch.testing.assert_close(uniformity(x.reshape(3, 3, 4)), uniformity(x))
    assert torch.autograd.gradcheck(uniformity, x)


def test_diversity_equals_a_loop_over_items() -> None:
    residuals = draw(5, 3, 4)
    total = 0.0
    for item in residuals.tolist():
        unit = [[x / math.hypot(*row) for x in row] for row in item]
        off = [sum(p * q for p, q in zip(unit[i], unit[j], strict=True)) for i in range(3) for j in range(3) if i != j]
        total += math.sqrt(sum(c * c for c in off)) / 9
    assert diversity(residuals).item() == pytest.approx(total / 5, rel=1e-12)
    assert losses.Diversity()(residuals).item() == pytest.approx(total / 5, rel=1e-12)
    assert torch.autograd.gradcheck(diversity, residuals)


def test_diversity_of_one_embedding_is_zero_with_a_finite_gradient() -> None:
    x = draw(3, 1, 4)
    loss = diversity(x)
    assert loss.item() == 0
    assert torch.isfinite(torch.autograd.grad(loss, x)[0]).all()


def test_mmd_equals_a_loop_over_pairs() -> None:
    x, y = draw(4, 3), draw(6, 3, seed=1)

    def mean(p: Any, q: Any) -> float:
        return sum(math.exp(-0.5 * math.dist(s, t)) for s in p for t in q) / len(p) / len(q)

    p, q = x.tolist(), y.tolist()
    expected = mean(p, p) - 2 * mean(p, q) + mean(q, q)
    assert mmd(x, y).item() == pytest.approx(expected, rel=1e-12)
    assert losses.MMD()(x.reshape(2, 2, 3), y).item() == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(mmd, (x, y))


def test_mmd_in_single_precision_is_that_in_double_also_where_points_are_equal_or_nearly() -> None:
    x, y = draw(20, 8).detach(), draw(30, 8, seed=1).detach()
    y[0], y[1] = x[0], x[1] + 1e-5
    results = {}
    for dtype in (torch.float32, torch.float64):
        inputs = [points.float().to(dtype).requires_grad_() for points in (x, y)]
        value = mmd(*inputs)
        results[dtype] = [value.detach().double(), *(g.double() for g in torch.autograd.grad(value, inputs))]
    for single, double in zip(results[torch.float32], results[torch.float64], strict=True):
        torch.testing.assert_close(single, double, rtol=1e-5, atol=1e-7)


def test_mmd_of_a_cloud_with_itself_is_zero_and_grows_with_the_shift() -> None:
    x = draw(30, 3).detach()
    shifts = [mmd(x, x + shift).item() for shift in (0.0, 0.5, 1.0, 2.0)]
    assert shifts[0] == pytest.approx(0, abs=1e-15)
    assert shifts == sorted(shifts)


def test_types_are_promoted_and_points_are_points_however_they_come() -> None:
    x, y = draw(4, 3).detach(), draw(6, 3, seed=1).detach()
    torch.testing.assert_close(mmd(x.float(), y), mmd(x.float().double(), y))
    assert mmd(x.half(), y.float()).dtype == torch.float32
    torch.testing.assert_close(uniformity(Gaussian.point(x)), uniformity(x))
    torch.testing.assert_close(uniformity(x.numpy()), uniformity(x))
    torch.testing.assert_close(mmd(x.numpy(), Gaussian.point(y)), mmd(x, y))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kl(Gaussian.point(torch.ones(1, 2))), "zero variance"),
        (lambda: kl(torch.ones(1, 2)), "kl takes a Gaussian, not Tensor"),  # type: ignore[arg-type]
        (lambda: losses.KL("avg"), "unknown reduction"),  # type: ignore[arg-type]
        (lambda: uniformity(Gaussian(torch.ones(2, 2), torch.ones(2, 2))), "pass its `.mean`, or samples"),
        (lambda: uniformity(torch.ones(2)), "a vector per item"),
        (lambda: kl(Gaussian(torch.ones(1, 2), torch.ones(1, 2)), "avg"), "unknown reduction"),  # type: ignore[arg-type]
        (lambda: kl(Gaussian(torch.full((1, 2), math.nan), torch.ones(1, 2)), check=True), r"gaussian\.mean\[0, 0\]"),
        (lambda: uniformity(torch.ones(1, 2)), "at least two"),
        (lambda: uniformity(torch.full((2, 2), math.nan), check=True), r"x\[0, 0\] is nan"),
        (lambda: diversity(torch.ones(2, 2)), r"\(n, K, d\)"),
        (lambda: diversity(torch.full((1, 2, 2), math.inf), check=True), r"residuals\[0, 0, 0\] is inf"),
        (lambda: mmd(torch.ones(2, 2), torch.ones(2, 3)), "different dimensions"),
        (lambda: mmd(torch.ones(2, 2), torch.full((2, 2), math.nan), check=True), r"y\[0, 0\] is nan"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
