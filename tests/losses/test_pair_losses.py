"""Losses over pairs: published numbers, loops from the equations, and several captions of one image that all match."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from halation import Gaussian, InputError, _torch, losses, similarity
from halation.losses import (
    csd_contrastive,
    info_nce,
    kl,
    match_matrix,
    mil,
    sigmoid_pairwise,
    soft_contrastive,
    triplet,
    uniformity,
)

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "losses"
DAA, PCME, PCMEPP = (np.load(FOLDER / f"{name}.npz") for name in ("daa", "pcme_loss", "pcmepp"))
EYE = torch.eye(5, dtype=torch.bool)


def clouds(n: int, seed: int, d: int = 3) -> Gaussian:
    g = torch.Generator().manual_seed(seed)
    draw = lambda: torch.randn(n, d, generator=g, dtype=torch.float64)  # noqa: E731
    return Gaussian(draw().requires_grad_(), (0.3 * draw() - 1).requires_grad_())


def scores_and_matches(q: int = 5, n: int = 7, seed: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    matches = torch.rand(q, n, generator=g) < 0.3
    matches[0] = False  # a query without a match
    return torch.randn(q, n, generator=g, dtype=torch.float64).requires_grad_(), matches


def test_a_match_matrix_knows_every_caption_of_an_image() -> None:
    matches = match_matrix(torch.tensor([4, 2]), [2, 4, 4, 9])
    assert matches.tolist() == [[False, True, True, False], [True, False, False, False]]


# --- PCME ---


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-9), ("float32", 1e-5)])
def test_soft_contrastive_equals_the_published_pcme_loss_and_its_gradients(dtype: str, error: float) -> None:
    case = lambda key: PCME[f"coco_small/{key}"]  # noqa: E731
    tensor = lambda key: torch.from_numpy(case(key).astype(dtype))  # noqa: E731
    leaves = {name: tensor(name).requires_grad_() for name in ("mu_i", "mu_t", "logsigma_i", "logsigma_t")}
    scale, shift = (torch.tensor([15.0], dtype=getattr(torch, dtype), requires_grad=True) for _ in range(2))
    samples, released_kl = [], 0
    for side in "it":
        z = Gaussian.from_log_std(leaves[f"mu_{side}"], leaves[f"logsigma_{side}"]).sample_from(tensor(f"eps_{side}"))
        samples.append(z)
        part = kl(Gaussian(z.mean(1), leaves[f"logsigma_{side}"]), "sum")  # the released code's reading of log σ
        assert part.item() == pytest.approx(float(case(f"{dtype}/kl_{side}")), rel=error)
        released_kl = released_kl + part
    matches = torch.eye(6, dtype=torch.bool)
    both = soft_contrastive(*samples, matches, scale=scale, shift=shift, variant="released")
    assert both.item() == pytest.approx(
        float(case(f"{dtype}/dict_i2t_loss")) + float(case(f"{dtype}/dict_t2i_loss")), rel=error
    )
    assert uniformity(torch.cat(samples)).item() == pytest.approx(float(case(f"{dtype}/uniform")), rel=error)
    loss = both + 1e-5 * released_kl
    assert loss.item() == pytest.approx(float(case(f"{dtype}/loss")), rel=error)
    loss.backward()
    wanted = {f"grad_{name}": leaf for name, leaf in leaves.items()} | {
        "grad_shift": shift,
        "grad_negative_scale": scale,
    }
    for key, leaf in wanted.items():
        expected = case(f"{dtype}/{key}")
        assert leaf.grad is not None
        assert np.abs(leaf.grad.numpy() - expected).max() <= error * np.abs(expected).max(), key


def test_soft_contrastive_equals_a_loop_over_its_equation() -> None:
    g = torch.Generator().manual_seed(0)
    z, w = torch.randn(3, 2, 4, generator=g).double(), torch.randn(4, 3, 4, generator=g).double()
    matches = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]).bool()
    total = 0.0
    for i in range(3):
        for j in range(4):
            logits = [2.0 - 0.9 * math.sqrt(math.dist(s, t) ** 2 + 1e-6) for s in z[i].tolist() for t in w[j].tolist()]
            p = sum(1 / (1 + math.exp(-x)) for x in logits) / 6
            total -= math.log(p if matches[i, j] else 1 - p)
    loss = soft_contrastive(z, w, matches, scale=0.9, shift=2.0)
    assert loss.item() == pytest.approx(total / 12, rel=1e-12)


def test_soft_contrastive_draws_its_samples_from_the_generator() -> None:
    a, b = clouds(5, 1), clouds(5, 2)
    seeded = lambda: torch.Generator().manual_seed(3)  # noqa: E731
    drawn = soft_contrastive(a, b, EYE, generator=seeded())
    g = seeded()
    torch.testing.assert_close(soft_contrastive(a.sample(7, g), b.sample(7, g), EYE), drawn)
    module = losses.SoftContrastive(samples=7).double()
    loss = module(a, b, EYE, seeded())
    torch.testing.assert_close(loss, drawn)
    loss.backward()
    assert module.scale.grad is not None
    assert module.shift.grad is not None
    with pytest.raises(InputError, match="generator"):
        soft_contrastive(a, b, EYE)


# --- PCME++ ---


@pytest.mark.parametrize("alpha", ["0", "0.1"])
@pytest.mark.parametrize("labels", ["eye", "smooth", "mix"])
@pytest.mark.parametrize("kind", ["csd", "wdist"])
def test_csd_contrastive_equals_the_published_pcmepp_loss_and_its_gradients(kind: str, labels: str, alpha: str) -> None:
    tensor = lambda key: torch.from_numpy(PCMEPP[f"n8/{key}"].astype(float)).requires_grad_()  # noqa: E731
    leaves = {name: tensor(name) for name in ("mu_i", "mu_t", "logvar_i", "logvar_t")}
    matrix = torch.eye(8) if labels == "eye" else torch.from_numpy(PCMEPP[f"n8/matched_{labels}"])
    module = losses.CSDContrastive(
        pseudo_positives=float(alpha), similarity=similarity.csd if kind == "csd" else similarity.wasserstein2
    ).double()
    a, b = (Gaussian(leaves[f"mu_{side}"], leaves[f"logvar_{side}"]) for side in "it")
    vib = kl(a) + kl(b)
    loss = module(a, b, matrix) + 1e-4 * vib
    case = lambda key: PCMEPP[f"n8/{kind}/{labels}/a{alpha}/float64/{key}"]  # noqa: E731
    assert vib.item() == pytest.approx(float(case("vib")), rel=1e-9)
    assert loss.item() == pytest.approx(float(case("loss")), rel=1e-9)
    loss.backward()
    wanted = leaves | {"shift": module.shift, "negative_scale": module.scale}
    for key, leaf in wanted.items():
        assert leaf.grad is not None
        np.testing.assert_allclose(
            leaf.grad.reshape(case(f"grad_{key}").shape), case(f"grad_{key}"), rtol=1e-9, atol=1e-12
        )


def test_csd_contrastive_equals_a_loop_over_its_equation() -> None:
    a, b = clouds(4, 1), clouds(6, 2)
    labels = match_matrix([0, 1, 2, 3], [0, 0, 1, 2, 3, 3]).double()  # several captions of an image
    x = (3.0 + 0.5 * similarity.csd(a, b)).detach().numpy()
    bce = lambda x, y: math.log1p(math.exp(-x)) + (1 - y) * x  # noqa: E731
    total = 0.0
    for i in range(4):
        for j in range(6):
            y = float(labels[i, j])
            row, column = labels[i].tolist(), labels[:, j].tolist()
            weakest_of_row = min(x[i, k] for k in range(6) if row[k] == max(row))
            weakest_of_column = min(x[k, j] for k in range(4) if column[k] == max(column))
            by_row = max(row) if x[i, j] >= weakest_of_row else y
            by_column = max(column) if x[i, j] >= weakest_of_column else y
            total += 2 * bce(x[i, j], y) + 0.1 * (bce(x[i, j], by_row) + bce(x[i, j], by_column))
    assert csd_contrastive(a, b, labels, scale=0.5, shift=3.0).item() == pytest.approx(total / 24, rel=1e-12)


def test_csd_contrastive_does_not_depend_on_the_order_of_the_captions() -> None:
    a, b = clouds(4, 1), clouds(8, 2)
    labels = match_matrix([0, 1, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3]).double()
    expected = csd_contrastive(a, b, labels, scale=0.5, shift=3.0)
    for seed in range(5):
        order = torch.randperm(8, generator=torch.Generator().manual_seed(seed))
        loss = csd_contrastive(a, b[order], labels[:, order], scale=0.5, shift=3.0)
        torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)


# --- hinges and softmaxes ---


@pytest.mark.parametrize("case", ["N4/wide", "N16/wide", "N16/symm"])
def test_triplet_equals_the_published_contrastive_loss(case: str) -> None:
    scores = torch.from_numpy(DAA[f"{case}/scores"].astype(float)).requires_grad_()
    matches = torch.eye(len(scores), dtype=torch.bool)
    loss = triplet(scores, matches, 0.2)
    assert loss.item() == pytest.approx(float(DAA[f"{case}/contrastive_maxviol/value"]), rel=1e-9)
    (grad,) = torch.autograd.grad(loss, scores)
    np.testing.assert_allclose(grad, DAA[f"{case}/contrastive_maxviol/grad"], rtol=1e-9, atol=1e-12)
    if f"{case}/contrastive_sum/value" in DAA:
        every = triplet(scores, matches, 0.2, hardest=False)
        assert every.item() == pytest.approx(float(DAA[f"{case}/contrastive_sum/value"]), rel=1e-9)


@pytest.mark.parametrize("hardest", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
def test_triplet_equals_a_loop_over_matches_and_their_negatives(hardest: bool, symmetric: bool) -> None:
    scores, matches = scores_and_matches()
    s = scores.tolist()
    total = 0.0
    for i in range(5):
        for j in range(7):
            if matches[i, j]:
                row = [max(0.0, 0.2 + s[i][k] - s[i][j]) for k in range(7) if not matches[i, k]]
                column = [max(0.0, 0.2 + s[k][j] - s[i][j]) for k in range(5) if not matches[k, j]]
                pick = max if hardest else sum
                total += pick(row or [0.0]) + (pick(column or [0.0]) if symmetric else 0)
    loss = triplet(scores, matches, 0.2, hardest=hardest, symmetric=symmetric)
    assert loss.item() == pytest.approx(total, rel=1e-12)
    torch.testing.assert_close(losses.Triplet(0.2, hardest=hardest, symmetric=symmetric)(scores, matches), loss)


def test_a_sum_over_dense_matches_in_tiles_equals_the_sum_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, _ = scores_and_matches(20, 30)
    matches = torch.rand(20, 30, generator=torch.Generator().manual_seed(1)) < 0.6
    results, shapes = [], []
    for tile in (1 << 22, 64):
        monkeypatch.setattr(_torch, "TILE", tile)
        with torch.autograd.graph.saved_tensors_hooks(lambda x: shapes.append(x.numel()) or x, lambda x: x):
            loss = triplet(scores, matches, 0.2, hardest=False)
        results.append((loss.detach(), torch.autograd.grad(loss, scores)[0]))
        if tile == 64:
            assert max(shapes) <= 20 * 30  # nothing of the size matches × candidates is kept
        shapes.clear()
    torch.testing.assert_close(results[1], results[0], rtol=1e-12, atol=1e-12)


def test_info_nce_is_clips_cross_entropy_when_each_image_has_one_caption() -> None:
    scores = scores_and_matches(5, 5)[0]
    target = torch.arange(5)
    clip = 0.5 * (cross_entropy(scores / 0.07, target) + cross_entropy(scores.T / 0.07, target))
    torch.testing.assert_close(info_nce(scores, EYE, 0.07), clip, rtol=1e-12, atol=0)
    module = losses.InfoNCE(0.07).double()
    loss = module(scores, EYE)
    torch.testing.assert_close(loss, clip, rtol=1e-6, atol=0)
    loss.backward()
    assert module.log_temperature.grad is not None


def test_info_nce_equals_a_loop_in_which_other_matches_do_not_compete() -> None:
    scores, matches = scores_and_matches()

    def one_way(s: list[list[float]], m: list[list[bool]]) -> float:
        terms = []
        for row, match in zip(s, m, strict=True):
            negatives = sum(math.exp(x / 0.5) for x, is_match in zip(row, match, strict=True) if not is_match)
            costs = [
                -math.log(math.exp(x / 0.5) / (math.exp(x / 0.5) + negatives))
                for x, is_match in zip(row, match, strict=True)
                if is_match
            ]
            if costs:
                terms.append(sum(costs) / len(costs))
        return sum(terms) / len(terms)

    rows = one_way(scores.tolist(), matches.tolist())
    columns = one_way(scores.T.tolist(), matches.T.tolist())
    assert info_nce(scores, matches, 0.5, symmetric=False).item() == pytest.approx(rows, rel=1e-12)
    assert info_nce(scores, matches, 0.5).item() == pytest.approx((rows + columns) / 2, rel=1e-12)


def test_sigmoid_pairwise_equals_a_loop_over_its_equation() -> None:
    scores, matches = scores_and_matches()
    total = 0.0
    for row, match in zip(scores.tolist(), matches.tolist(), strict=True):
        for x, is_match in zip(row, match, strict=True):
            total += math.log1p(math.exp(-(1 if is_match else -1) * (3.0 * x - 1.0)))
    assert sigmoid_pairwise(scores, matches, scale=3.0, shift=-1.0).item() == pytest.approx(total / 5, rel=1e-12)
    module = losses.SigmoidPairwise(3.0, -1.0).double()
    loss = module(scores, matches)
    assert loss.item() == pytest.approx(total / 5, rel=1e-6)
    loss.backward()
    assert module.log_scale.grad is not None
    assert module.shift.grad is not None


def test_mil_is_the_triplet_loss_of_the_best_pair_of_embeddings() -> None:
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(4, 2, 6, generator=g).double(), torch.randn(5, 3, 6, generator=g).double()
    matches = match_matrix([0, 1, 2, 3], [0, 1, 2, 3, 3])
    best = torch.zeros(4, 5, dtype=torch.float64)
    for i in range(4):
        for j in range(5):
            best[i, j] = max(torch.cosine_similarity(x, y, dim=0) for x in a[i] for y in b[j])
    torch.testing.assert_close(mil(a, b, matches, 0.1), triplet(best, matches, 0.1), rtol=1e-12, atol=0)
    torch.testing.assert_close(losses.MIL(0.1)(a, b, matches), triplet(best, matches, 0.1), rtol=1e-12, atol=0)


# --- what all of them share ---

SCORE_LOSSES: dict[str, Any] = {
    "triplet": lambda s, m: triplet(s, m),
    "triplet_sum": lambda s, m: triplet(s, m, hardest=False),
    "info_nce": lambda s, m: info_nce(s, m),
    "sigmoid_pairwise": lambda s, m: sigmoid_pairwise(s, m),
}
NOBODY = Gaussian.point(torch.zeros(2, 1)), Gaussian.point(torch.zeros(3, 1))
RANKED: dict[str, Any] = {
    "smooth_ap": lambda s, m: losses.SmoothAP(0.1)(s, m),
    "csd_contrastive": lambda s, m: csd_contrastive(*NOBODY, m, similarity=lambda a, b: s),
    "csd_contrastive, α = 1": lambda s, m: csd_contrastive(*NOBODY, m, similarity=lambda a, b: s, pseudo_positives=1.0),
}


@pytest.mark.parametrize("name", sorted(SCORE_LOSSES | RANKED))
def test_a_second_caption_of_the_image_is_never_pushed_away(name: str) -> None:
    scores = torch.tensor([[0.5, 0.45, 0.1], [0.1, 0.2, 0.5]], dtype=torch.float64, requires_grad=True)
    matches = match_matrix([7, 8], [7, 7, 8])
    (grad,) = torch.autograd.grad((SCORE_LOSSES | RANKED)[name](scores, matches), scores)
    assert (grad[matches] <= 0).all()
    assert (grad[~matches] >= 0).all()


@pytest.mark.parametrize("name", ["soft_contrastive", "mil"])
def test_a_step_brings_both_captions_of_an_image_closer_to_it(name: str) -> None:
    image = torch.tensor([[[1.0, 0.0, 0.0]]], dtype=torch.float64)
    other = torch.tensor([[[-1.0, 0.0, 0.3]]], dtype=torch.float64)
    captions = torch.tensor([[[0.6, 0.8, 0.0]], [[0.5, -0.6, 0.6]], [[0.6, 0.0, 0.8]]], dtype=torch.float64)
    captions.requires_grad_()
    items, matches = torch.cat([image, other]), match_matrix([7, 8], [7, 7, 8])
    call = {
        "soft_contrastive": lambda: soft_contrastive(items, captions, matches),
        "mil": lambda: mil(items, captions, matches),
    }[name]
    (grad,) = torch.autograd.grad(call(), captions)
    before = torch.cdist(captions[:2, 0], image[0])
    after = torch.cdist((captions - 1e-4 * grad)[:2, 0], image[0])
    assert (grad[:2].flatten(1).norm(dim=1) > 0).all()
    assert (after < before).all()


@pytest.mark.parametrize("name", sorted(SCORE_LOSSES))
def test_gradients_of_score_losses_pass_gradcheck(name: str) -> None:
    scores, matches = scores_and_matches(seed=3)
    assert torch.autograd.gradcheck(lambda s: SCORE_LOSSES[name](s, matches), scores)


def test_gradients_of_gaussian_losses_pass_gradcheck() -> None:
    a, b = clouds(3, 1), clouds(4, 2)
    matches = match_matrix([0, 1, 2], [0, 1, 2, 2])
    scale, shift = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.8, 1.7))
    noise = [torch.randn(n, 3, 3, generator=torch.Generator().manual_seed(n)).double() for n in (3, 4)]

    def soft(m1: Tensor, v1: Tensor, m2: Tensor, v2: Tensor, s: Tensor, t: Tensor) -> Tensor:
        z, w = Gaussian(m1, v1).sample_from(noise[0]), Gaussian(m2, v2).sample_from(noise[1])
        return soft_contrastive(z, w, matches, scale=s, shift=t)

    def closed(m1: Tensor, v1: Tensor, m2: Tensor, v2: Tensor, s: Tensor, t: Tensor) -> Tensor:
        return csd_contrastive(Gaussian(m1, v1), Gaussian(m2, v2), matches.double(), scale=s, shift=t)

    leaves = (a.mean, a.log_var, b.mean, b.log_var, scale, shift)
    assert torch.autograd.gradcheck(soft, leaves)
    assert torch.autograd.gradcheck(closed, leaves)
    z = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: mil(x, x.flip(0), torch.eye(3).bool(), 0.5), z)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: triplet(torch.ones(2, 2), torch.ones(2, 3).bool()), r"matches has shape \(2, 3\)"),
        (lambda: info_nce(torch.ones(2, 2), torch.full((2, 2), 0.5)), "true or false"),
        (lambda: info_nce(torch.ones(2, 2), torch.eye(2), 0.0), "positive"),
        (lambda: info_nce(torch.ones(2, 2), torch.eye(2), "warm"), "temperature must be a number"),
        (lambda: losses.InfoNCE(0), "positive"),
        (lambda: losses.SigmoidPairwise(-1), "scale must be a positive number"),
        (lambda: losses.SoftContrastive(variant="release"), "did you mean 'released'"),  # type: ignore[arg-type]
        (lambda: losses.SoftContrastive(samples=0), "at least 1"),
        (lambda: csd_contrastive(clouds(2, 1), clouds(2, 1), "eye"), "labels must be an array"),
        (lambda: csd_contrastive(clouds(2, 1), clouds(2, 1), 2 * torch.eye(2)), r"labels\[0, 0\] is 2"),
        (lambda: csd_contrastive(clouds(2, 1), clouds(2, 1), torch.eye(2) / 0), r"labels\[0, 0\] is inf"),
        (lambda: csd_contrastive(clouds(2, 1), clouds(2, 1), torch.eye(2), scale=torch.ones(2)), "one number"),
        (lambda: csd_contrastive(clouds(2, 1), clouds(3, 1), torch.eye(2)), r"labels has shape \(2, 2\)"),
        (lambda: mil(torch.ones(2, 3), torch.ones(2, 1, 3), torch.eye(2)), r"a must hold K embeddings"),
        (lambda: triplet(torch.full((2, 2), math.nan), torch.eye(2), check=True), r"scores\[0, 0\] is nan"),
        (
            lambda: soft_contrastive(
                clouds(2, 1), Gaussian(torch.full((2, 3), math.nan), None), torch.eye(2), check=True
            ),
            r"b\.mean\[0, 0\] is nan",
        ),
        (
            lambda: csd_contrastive(
                Gaussian(torch.ones(1, 2), torch.full((1, 2), math.inf)), clouds(1, 1, 2), torch.eye(1), check=True
            ),
            r"a\.log_var\[0, 0\] is inf",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
