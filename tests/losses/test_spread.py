"""σ as the temperature of retrieval: the equation by a loop, the order of σ it trains, the means it leaves alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from halation import Gaussian, InputError
from halation.losses import Others, Spread, spread


def clouds(n: int, seed: int, d: int = 3) -> Gaussian:
    g = torch.Generator().manual_seed(seed)
    draw = lambda: torch.randn(n, d, generator=g, dtype=torch.float64)  # noqa: E731
    return Gaussian(draw().requires_grad_(), (0.3 * draw() - 1).requires_grad_())


def by_loop(
    a: Gaussian,
    b: Gaussian,
    matches: Tensor,
    scale: float,
    others_a: Others | None = None,
    others_b: Others | None = None,
) -> float:
    assert a.log_var is not None

    def side(asks: Gaussian, gallery: Gaussian, right: Tensor, further: Others | None) -> float:
        costs = []
        for i in range(len(asks)):
            u2 = float(asks.uncertainty()[i].detach()) ** 2
            s = [
                -float((asks.mean[i] - gallery.mean[j]).detach().square().sum()) / (scale * u2)
                for j in range(len(gallery))
            ]
            matches = [j for j in range(len(gallery)) if right[i, j]]
            others = sum(math.exp(s[j]) for j in range(len(gallery)) if not right[i, j])
            if further is not None:
                met = (point for point, meets in zip(further.points, further.meets[i], strict=True) if meets)
                others += sum(
                    math.exp(-float((asks.mean[i] - point).detach().square().sum()) / (scale * u2)) for point in met
                )
            if matches:
                costs.append(sum(-math.log(math.exp(s[j]) / (math.exp(s[j]) + others)) for j in matches) / len(matches))
        return sum(costs) / len(costs)

    return 0.5 * (side(a, b, matches, others_b) + side(b, a, matches.T, others_a))


@pytest.mark.parametrize("seed", range(5))
def test_spread_equals_a_loop_over_its_equation(seed: int) -> None:
    a, b = clouds(5, seed), clouds(7, seed + 50)
    matches = torch.rand(5, 7, generator=torch.Generator().manual_seed(seed)) < 0.3
    matches[0] = False  # a query without a match
    matches[1, 2] = True
    assert float(spread(a, b, matches, scale=3.0).detach()) == pytest.approx(by_loop(a, b, matches, 3.0), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_others_are_negatives_of_the_queries_that_meet_them(seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    a, b, matches = clouds(5, seed), clouds(5, seed + 50), torch.eye(5) > 0
    points = [torch.randn(4, 3, generator=g, dtype=torch.float64) for _ in range(2)]
    meets = [torch.rand(5, 4, generator=g) < 0.6 for _ in range(2)]
    others = [Others(p, m) for p, m in zip(points, meets, strict=True)]
    value = spread(a, b, matches, scale=3.0, others_a=others[0], others_b=others[1])
    assert float(value.detach()) == pytest.approx(by_loop(a, b, matches, 3.0, *others), rel=1e-12)
    value.backward()  # what is not met leaves no trace in a gradient
    assert a.log_var is not None and a.log_var.grad is not None
    assert bool(torch.isfinite(a.log_var.grad).all())
    nobody = Others(points[0], torch.zeros(5, 4, dtype=torch.bool))
    torch.testing.assert_close(spread(a, b, matches, others_a=nobody, others_b=nobody), spread(a, b, matches))


def test_others_of_another_number_of_queries_are_refused() -> None:
    a, b = clouds(4, 1), clouds(4, 2)
    with pytest.raises(InputError, match="4 queries meet 2 others"):
        spread(a, b, torch.eye(4) > 0, others_b=Others(torch.zeros(2, 3), torch.ones(3, 2) > 0))


def test_with_one_match_each_it_is_a_cross_entropy_with_a_temperature_for_each_query() -> None:
    a, b = clouds(6, 1), clouds(6, 2)
    squared = torch.cdist(a.mean, b.mean).square()
    temperatures = [(2.0 * g.uncertainty().square())[:, None] for g in (a, b)]
    target = torch.arange(6)
    both = 0.5 * (
        cross_entropy(-squared / temperatures[0], target) + cross_entropy(-squared.T / temperatures[1], target)
    )
    torch.testing.assert_close(spread(a, b, torch.eye(6) > 0, scale=2.0), both)


def test_only_the_variances_are_taught() -> None:
    a, b = clouds(4, 3), clouds(4, 4)
    spread(a, b, torch.eye(4) > 0).backward()
    assert a.mean.grad is None
    assert b.mean.grad is None
    assert a.log_var is not None
    assert bool((a.log_var.grad != 0).any())  # type: ignore[union-attr]


def test_its_gradient_is_that_of_differences() -> None:
    a, b = clouds(4, 5), clouds(5, 6)
    matches = torch.eye(4, 5) > 0

    def of(log_a: Tensor, log_b: Tensor, scale: Tensor) -> Tensor:
        return spread(Gaussian(a.mean, log_a), Gaussian(b.mean, log_b), matches, scale=scale)

    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(of, (a.log_var, b.log_var, scale))


def test_wider_clouds_and_a_smaller_scale_say_the_same() -> None:
    a, b, matches = clouds(5, 7), clouds(5, 8), torch.eye(5) > 0
    wider = [Gaussian(g.mean, g.log_var + math.log(4.0)) for g in (a, b)]  # type: ignore[operator]
    torch.testing.assert_close(spread(*wider, matches, scale=2.0), spread(a, b, matches, scale=8.0))


def test_an_item_among_many_alike_ends_with_a_larger_sigma_than_one_that_stands_alone() -> None:
    """Ten captions at one point and one apart: no image can tell the ten from each other."""
    generator = torch.Generator().manual_seed(0)
    means = torch.cat([0.05 * torch.randn(10, 2, generator=generator), torch.tensor([[0.6, 0.0]])])
    log_var, loss = torch.zeros(11, 2, requires_grad=True), Spread(1.0)
    optimiser = torch.optim.Adam([log_var, *loss.parameters()], lr=0.05)
    for _ in range(400):
        images = means + 0.1 * torch.randn(11, 2, generator=generator)  # seen anew each time
        optimiser.zero_grad()
        loss(Gaussian(images, log_var), Gaussian(means, torch.zeros(11, 2)), torch.eye(11) > 0).backward()
        optimiser.step()
    sigma = Gaussian(means, log_var.detach()).uncertainty()
    assert bool((sigma[:10] > sigma[10]).all())


def test_points_have_no_sigma_to_teach() -> None:
    points = Gaussian.point(torch.eye(3))
    with pytest.raises(InputError, match="points"):
        spread(points, points, torch.eye(3) > 0)


def test_a_scale_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match="scale"):
        Spread(0.0)
