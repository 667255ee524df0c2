"""Similarities against a loop written from each equation, torch.distributions, and the published implementations."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from halation import Gaussian, InputError, _torch, similarity

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "losses"
INDEXED = ["cosine", "csd", "l2", "wasserstein2"]
DENSITIES = ["bhattacharyya", "expected_likelihood", "jeffreys", "kl", "reverse_kl"]


def clouds(n: int, seed: int, d: int = 5, dtype: torch.dtype = torch.float64) -> Gaussian:
    g = torch.Generator().manual_seed(seed)
    return Gaussian(torch.randn(n, d, generator=g, dtype=dtype), torch.randn(n, d, generator=g, dtype=dtype) - 1)


def _kl(m1: list[float], v1: list[float], m2: list[float], v2: list[float]) -> float:
    return 0.5 * sum(
        x / y + (p - q) ** 2 / y - 1 + math.log(y) - math.log(x) for p, x, q, y in zip(m1, v1, m2, v2, strict=True)
    )


# each from its equation, one pair at a time: (mean 1, variance 1, mean 2, variance 2) -> score
EQUATIONS: dict[str, Callable[[list[float], list[float], list[float], list[float]], float]] = {
    "cosine": lambda p, v, q, w: (
        sum(a * b for a, b in zip(p, q, strict=True))
        / math.sqrt(sum(a * a for a in p))
        / math.sqrt(sum(b * b for b in q))
    ),
    "l2": lambda p, v, q, w: -sum((a - b) ** 2 for a, b in zip(p, q, strict=True)),
    "csd": lambda p, v, q, w: -(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) + sum(v) + sum(w)),
    "wasserstein2": lambda p, v, q, w: (
        -sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
        - sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in zip(v, w, strict=True))
    ),
    "expected_likelihood": lambda p, v, q, w: (
        -0.5 * sum((a - b) ** 2 / (x + y) + math.log(x + y) for a, x, b, y in zip(p, v, q, w, strict=True))
    ),
    "kl": lambda p, v, q, w: -_kl(p, v, q, w),
    "reverse_kl": lambda p, v, q, w: -_kl(q, w, p, v),
    "jeffreys": lambda p, v, q, w: -_kl(p, v, q, w) - _kl(q, w, p, v),
    "bhattacharyya": lambda p, v, q, w: (
        -sum(
            0.125 * (a - b) ** 2 / ((x + y) / 2) + 0.5 * math.log((x + y) / 2 / math.sqrt(x * y))
            for a, x, b, y in zip(p, v, q, w, strict=True)
        )
    ),
}


@pytest.mark.parametrize("name", sorted(EQUATIONS))
def test_every_closed_form_equals_a_loop_over_its_equation(name: str) -> None:
    a, b = clouds(7, 1), clouds(4, 2)
    slow = [
        [EQUATIONS[name](*(t.tolist() for t in (a.mean[i], a.var[i], b.mean[j], b.var[j]))) for j in range(len(b))]
        for i in range(len(a))
    ]
    fast = getattr(similarity, name)(a, b)
    assert fast.shape == (7, 4)
    np.testing.assert_allclose(fast, slow, rtol=1e-11)


@pytest.mark.parametrize(("name", "flipped"), [("kl", False), ("reverse_kl", True)])
def test_kl_agrees_with_torch_distributions(name: str, flipped: bool) -> None:
    a, b = clouds(6, 3), clouds(5, 4)
    p, q = Normal(a.mean[:, None], a.std[:, None]), Normal(b.mean, b.std)
    peer = kl_divergence(q, p) if flipped else kl_divergence(p, q)
    torch.testing.assert_close(getattr(similarity, name)(a, b), -peer.sum(-1), rtol=1e-11, atol=0)


def test_expected_likelihood_is_the_logarithm_of_the_overlap_integral() -> None:
    a, b = clouds(3, 5, d=1), clouds(3, 6, d=1)
    x = torch.linspace(-30, 30, 200_001, dtype=torch.float64)
    p, q = Normal(a.mean, a.std).log_prob(x).exp(), Normal(b.mean, b.std).log_prob(x).exp()
    integral = torch.trapezoid(p[:, None] * q, x, dim=-1)
    constant = 0.5 * math.log(2 * math.pi)
    torch.testing.assert_close(similarity.expected_likelihood(a, b) - constant, integral.log(), rtol=1e-8, atol=0)


def test_bhattacharyya_is_the_logarithm_of_the_overlap_of_the_roots() -> None:
    a, b = clouds(3, 5, d=1), clouds(3, 6, d=1)
    x = torch.linspace(-40, 40, 400_001, dtype=torch.float64)
    p, q = Normal(a.mean, a.std).log_prob(x), Normal(b.mean, b.std).log_prob(x)
    coefficient = torch.trapezoid((0.5 * (p[:, None] + q)).exp(), x, dim=-1)
    torch.testing.assert_close(similarity.bhattacharyya(a, b), coefficient.log(), rtol=1e-8, atol=1e-12)


def test_csd_is_the_mean_squared_distance_of_samples() -> None:
    a, b = clouds(2, 7), clouds(3, 8)
    g = torch.Generator().manual_seed(0)
    z, w = a.sample(2000, g), b.sample(2000, g)
    squared = torch.cdist(z.reshape(-1, 5), w.reshape(-1, 5)).square().reshape(2, 2000, 3, 2000).mean((1, 3))
    torch.testing.assert_close(similarity.csd(a, b), -squared, rtol=0.05, atol=0)


def test_csd_equals_the_published_implementation() -> None:
    z = np.load(GOLDEN / "pcmepp.npz")
    a, b = (Gaussian(z[f"n8/mu_{s}"].astype(float), z[f"n8/logvar_{s}"].astype(float)) for s in "it")
    np.testing.assert_allclose(similarity.csd(a, b), -z["n8/csd_matrix"], rtol=1e-9)
    np.testing.assert_allclose(similarity.csd(a, b), z["n8/eval_neg_csd_sims"], rtol=1e-7)  # ran in float32
    np.testing.assert_allclose(similarity.csd(a.to(torch.float32), b.to(torch.float32)), -z["n8/csd_matrix"], rtol=1e-5)


def test_match_probability_equals_the_published_implementations() -> None:
    z = np.load(GOLDEN / "pcmepp.npz")
    given_samples = [torch.from_numpy(z[f"n8/z_{s}"]) for s in "it"]
    ours = similarity.match_probability(*given_samples, scale=5.0, shift=5.0, variant="released")
    # the released PCME++ evaluation has no epsilon under its root: 1e-6 moves a probability by a few 1e-6
    np.testing.assert_allclose(16 * ours, z["n8/eval_matching_prob_sims_sum16"], rtol=2e-5)
    z = np.load(GOLDEN / "pcme_loss.npz")
    for dtype, rtol in (("float64", 1e-9), ("float32", 1e-5)):
        samples = [
            Gaussian.from_log_std(
                z[f"coco_small/mu_{s}"].astype(dtype), z[f"coco_small/logsigma_{s}"].astype(dtype)
            ).sample_from(torch.from_numpy(z[f"coco_small/eps_{s}"].astype(dtype)))
            for s in "it"
        ]
        ours = similarity.match_probability(*samples, scale=15.0, shift=15.0, variant="released")
        golden = z[f"coco_small/{dtype}/match_prob"]
        np.testing.assert_allclose(ours, golden, rtol=1e-5, atol=2e-8)  # both ran in float32 somewhere
        distances = torch.from_numpy(z[f"coco_small/{dtype}/cdist_row0"])
        for name in ("min", "mean", "max"):
            score = getattr(similarity, f"sample_{name}")(*samples)[0]
            np.testing.assert_allclose(score, -getattr(distances, f"a{name}" if name != "mean" else name)(1), rtol=rtol)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_match_probability_equals_a_loop_over_sample_pairs(variant: str) -> None:
    g = torch.Generator().manual_seed(0)
    z, w = torch.randn(3, 4, 5, generator=g).double(), torch.randn(2, 6, 5, generator=g).double()
    factor = 2 if variant == "released" else 1
    fast = similarity.match_probability(z, w, scale=0.7, shift=1.5, variant=variant)  # type: ignore[arg-type]
    matches = torch.tensor([[True, False], [False, False], [True, True]])
    log = similarity.match_log_likelihood(z, w, matches, scale=0.7, shift=1.5, variant=variant)  # type: ignore[arg-type]
    for i in range(3):
        for j in range(2):
            p = 0.0
            for s in z[i].tolist():
                for t in w[j].tolist():
                    d = math.sqrt(math.dist(s, t) ** 2 + 1e-6)
                    p += 1 / (1 + math.exp(-factor * (1.5 - 0.7 * d))) / 24
            assert float(fast[i, j]) == pytest.approx(p, rel=1e-12)
            assert float(log[i, j]) == pytest.approx(math.log(p if matches[i, j] else 1 - p), rel=1e-10)


def test_the_log_likelihood_stays_finite_where_the_probability_rounds_to_zero_or_one() -> None:
    a, b = torch.zeros(1, 1, 1), torch.full((1, 1, 1), 50.0)
    for matches in (True, False):
        for other in (a, b):
            log = similarity.match_log_likelihood(a, other, torch.tensor([[matches]]), scale=15.0, shift=15.0)
            assert torch.isfinite(log).all()
    far = similarity.match_log_likelihood(a, b, torch.tensor([[True]]), scale=15.0, shift=15.0)
    assert float(far) == pytest.approx(15 - 15 * 50, rel=1e-5)


@pytest.mark.parametrize("name", INDEXED)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), points=st.sampled_from(["none", "a", "b", "both"]))
def test_an_l2_index_over_the_points_ranks_exactly_as_the_similarity(name: str, seed: int, points: str) -> None:
    a, b = clouds(4, seed), clouds(30, seed + 1)
    a = Gaussian.point(a.mean) if points in ("a", "both") else a
    b = Gaussian.point(b.mean) if points in ("b", "both") else b
    s = getattr(similarity, name)
    distances = torch.cdist(s.query_points(a), s.points(b), compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.equal(distances.argsort(dim=1), s(a, b).argsort(dim=1, descending=True))
    torch.testing.assert_close(s.from_squared(a, distances.square()), s(a, b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*INDEXED, *DENSITIES])
def test_gradients_of_every_closed_form_are_right(name: str) -> None:
    tensors = [
        t.detach().requires_grad_() for c in (clouds(3, 1, d=3), clouds(4, 2, d=3)) for t in (c.mean, c.var.log())
    ]

    def scores(m1: Tensor, v1: Tensor, m2: Tensor, v2: Tensor) -> Any:
        return getattr(similarity, name)(Gaussian(m1, v1), Gaussian(m2, v2))

    assert torch.autograd.gradcheck(scores, tensors)


@pytest.mark.parametrize("name", ["match_probability", "sample_min", "sample_mean", "sample_max"])
def test_gradients_of_every_sampled_form_are_right(name: str) -> None:
    g = torch.Generator().manual_seed(0)
    z = torch.randn(3, 2, 3, generator=g, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 3, 3, generator=g, dtype=torch.float64, requires_grad=True)
    extra = {"scale": 0.7, "shift": 1.5} if name == "match_probability" else {}
    assert torch.autograd.gradcheck(lambda x, y: getattr(similarity, name)(x, y, **extra), (z, w))


@pytest.mark.parametrize("name", ["expected_likelihood", "bhattacharyya", "sample_mean"])
def test_tiling_changes_neither_scores_nor_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for tile in (1 << 22, 50):
        monkeypatch.setattr(_torch, "TILE", tile)
        a = Gaussian(clouds(9, 1).mean.requires_grad_(), clouds(9, 1).log_var)
        extra = {"generator": torch.Generator().manual_seed(3)} if name == "sample_mean" else {}
        scores = getattr(similarity, name)(a, clouds(4, 2), **extra)
        scores.square().sum().backward()
        results.append((scores.detach(), a.mean.grad))
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=0)


def test_blocks_of_queries_score_as_all_queries_at_once() -> None:
    a, b = clouds(11, 1), clouds(6, 2)
    for name in [*INDEXED, *DENSITIES]:
        s = getattr(similarity, name)
        torch.testing.assert_close(torch.cat([s(a[:5], b), s(a[5:], b)]), s(a, b), rtol=1e-12, atol=1e-12)


def test_points_count_as_zero_variance() -> None:
    a, b = clouds(4, 1), clouds(5, 2)
    tiny = Gaussian(b.mean, torch.full_like(b.mean, -80.0))
    for name in INDEXED:
        s = getattr(similarity, name)
        torch.testing.assert_close(s(a, b.mean.numpy()), s(a, tiny), rtol=1e-12, atol=1e-12)


def test_a_common_offset_of_all_means_costs_no_digits() -> None:
    a, b = clouds(6, 1, dtype=torch.float32), clouds(6, 2, dtype=torch.float32)
    far_a, far_b = (Gaussian(g.mean + 1024, g.log_var) for g in (a, b))
    exact = similarity.l2(
        Gaussian.point(far_a.mean.double()), Gaussian.point(far_b.mean.double())
    )  # the shift itself rounds the means, so compare with those
    torch.testing.assert_close(similarity.l2(far_a, far_b).double(), exact, rtol=1e-4, atol=1e-6)


def test_equal_points_are_at_distance_zero_with_finite_gradients() -> None:
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    scores = torch.stack([similarity.l2(x, x), similarity.sample_mean(x[:, None], x[:, None])])
    assert (scores[0].diagonal().abs() < 1e-5).all()
    scores.sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [*INDEXED, *DENSITIES])
def test_half_precision_is_widened_before_it_is_subtracted(name: str, dtype: torch.dtype) -> None:
    a, b = clouds(5, 1).to(dtype), clouds(6, 2).to(dtype)
    s = getattr(similarity, name)
    assert s(a, b).dtype == torch.float32
    torch.testing.assert_close(s(a, b).double(), s(a.to(torch.float64), b.to(torch.float64)), rtol=1e-4, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(s(a, b).double(), s(a.to(torch.float64), b.to(torch.float64)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", DENSITIES)
def test_a_density_of_zero_variance_is_refused_by_name(name: str) -> None:
    s = getattr(similarity, name)
    with pytest.raises(InputError, match=f"{name} is undefined at zero variance and the second side"):
        s(clouds(2, 1), [[1.0] * 5])
    with pytest.raises(InputError, match="both sides"):
        s([[1.0] * 5], [[1.0] * 5])


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="different dimensions: 5 and 4"):
        similarity.csd(clouds(2, 1), clouds(2, 1, d=4))
    with pytest.raises(InputError, match="different dimensions: 5 and 4"):
        similarity.sample_min([[1.0] * 5], [[1.0] * 4])
    with pytest.raises(InputError, match="generator"):
        similarity.sample_min(clouds(2, 1), clouds(2, 1))
    with pytest.raises(InputError, match="did you mean 'released'"):
        similarity.match_probability([[1.0]], [[1.0]], scale=1.0, shift=1.0, variant="release")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", INDEXED)
def test_a_similarity_is_copied_and_pickled_by_its_name(name: str) -> None:
    s = getattr(similarity, name)
    assert copy.deepcopy(s) is s
    assert pickle.loads(pickle.dumps(s)) is s


@pytest.mark.parametrize("name", INDEXED)
def test_points_of_half_precision_clouds_do_not_overflow(name: str) -> None:
    wide = Gaussian(torch.ones(2, 64), torch.full((2, 64), 8.0)).to(torch.float16)  # Σσ² = 190,784, beyond float16
    s = getattr(similarity, name)
    assert s.points(wide).dtype == torch.float32
    torch.testing.assert_close(s.points(wide), s.points(wide.to(torch.float32)))


def test_samples_of_half_precision_clouds_are_drawn_in_single_precision() -> None:
    a, b = (clouds(3, seed).to(torch.float16) for seed in (1, 2))
    draws = [
        similarity.sample_mean(x, y, generator=torch.Generator().manual_seed(0))
        for x, y in ((a, b), (a.to(torch.float32), b.to(torch.float32)))
    ]
    assert torch.equal(draws[0], draws[1])


def test_a_similarity_is_a_value_that_shows_its_name() -> None:
    assert repr(similarity.csd) == "halation.similarity.csd"
    assert similarity.csd.__name__ == "csd"  # type: ignore[attr-defined]
    assert "closed-form sampled distance" in (similarity.csd.__doc__ or "")
    assert not hasattr(similarity.kl, "points")
