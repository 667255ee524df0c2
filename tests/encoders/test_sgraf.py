"""SGR, SAF and SGRAF: golden scores and gradients, a loop over the equations, blocks that change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import halation.encoders._sgraf_blocks as blocks
from halation._errors import InputError
from halation.encoders import SAF, SGR, SGRAF, Network, PartEmbedding, convert_sgraf
from halation.encoders._pooling import unit
from halation.encoders._sgraf_local import local_alignments

LENGTHS = torch.tensor([3, 7, 1, 3, 5, 3, 7])


def slow(scorer: SGR | SAF, images: PartEmbedding, captions: PartEmbedding) -> Tensor:
    """METHODS' equations for one caption after the other, without any of our shortcuts."""

    def l2(x: Tensor) -> Tensor:
        return x / (x.square().sum(-1, keepdim=True).sqrt() + 1e-8)

    def whole(pool: Any, x: Tensor) -> Tensor:
        local = torch.tanh(pool.local_norm(pool.local(x)))
        mean = torch.tanh(pool.whole_norm(pool.whole(x.mean(1))))
        weights = pool.weight(local * mean[:, None]).softmax(1)
        return l2((weights * x).sum(1))

    v, columns = images.local, []
    v_whole = whole(scorer.image_pool, v)
    for j in range(len(captions.local)):
        t = captions.local[j] if captions.mask is None else captions.local[j][captions.mask[j]]
        a = l2(nn.LeakyReLU(0.1)(v @ t.T))  # (n, r, L)
        context = l2((9 * a).softmax(1).transpose(1, 2) @ v)
        local = l2(scorer.local_fc((context - t) ** 2))
        first = l2(scorer.whole_fc((v_whole - whole(scorer.caption_pool, t[None])) ** 2))
        e = torch.cat([first[:, None], local], 1)
        if isinstance(scorer, SGR):
            for step in scorer.steps:
                e = torch.relu(step.out((step.query(e) @ step.key(e).transpose(1, 2)).softmax(2) @ e))
            x = e[:, 0]
        else:
            gates = scorer.filter_fc(e).transpose(1, 2)
            gates = torch.sigmoid(gates if scorer.filter_norm is None else scorer.filter_norm(gates))
            x = l2((gates / (gates.sum(2, keepdim=True) + 1e-8) @ e)[:, 0])
        columns.append(torch.sigmoid(scorer.score_fc(x)))
    return torch.cat(columns, 1)


def parts(n: int = 4, regions: int = 6, dim: int = 8, seed: int = 0) -> tuple[PartEmbedding, PartEmbedding]:
    draw = torch.Generator().manual_seed(seed)
    images = unit(torch.randn(n, regions, dim, generator=draw, dtype=torch.float64)).requires_grad_()
    words = unit(torch.randn(len(LENGTHS), 9, dim, generator=draw, dtype=torch.float64)).requires_grad_()
    return PartEmbedding(images), PartEmbedding(words, torch.arange(9) < LENGTHS[:, None])


def build(kind: type[SGR] | type[SAF], regions: int | None = 6, dropout: float = 0.0, **options: Any) -> Any:
    torch.manual_seed(3)
    scorer = kind(8, 5, regions=regions, dropout=dropout, **options).double()
    for p in scorer.parameters():
        p.data.add_(0.3 * torch.randn(p.shape))
    return scorer


def gradients(
    scores: Tensor, weights: Tensor, scorer: nn.Module, images: PartEmbedding, captions: PartEmbedding
) -> list[Tensor]:
    wanted = [images.local, captions.local, *scorer.parameters()]
    return list(torch.autograd.grad((scores * weights).sum(), wanted))


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_sgr_equals_the_published_scores_and_gradients(shared_golden: Path, memory: int) -> None:
    golden = np.load(shared_golden / "sgr.npz")
    take = lambda prefix: {  # noqa: E731
        k.removeprefix(prefix): torch.from_numpy(golden[k]) for k in golden.files if k.startswith(prefix)
    }
    scorer = SGR(32, 16, regions=36, memory=memory).eval()
    scorer.load_state_dict(convert_sgraf(take("SGR/sd/"))["scorer"])
    images, words = (torch.from_numpy(golden[f"SGR/{k}"]).requires_grad_() for k in ("img", "cap"))
    captions = PartEmbedding(words, torch.arange(9) < torch.from_numpy(golden["SGR/lens"])[:, None])
    scores = scorer(PartEmbedding(images), captions)
    np.testing.assert_allclose(scores.detach(), golden["SGR/sims_eval"], atol=2e-7)
    np.testing.assert_allclose(scorer.image_pool(images).detach(), golden["SGR/img_glo"], atol=2e-7)
    (scores * torch.linspace(-1, 1, 30).reshape(5, 6)).sum().backward()
    np.testing.assert_allclose(images.grad, golden["SGR/grad_img"], atol=1e-5 * np.abs(golden["SGR/grad_img"]).max())
    np.testing.assert_allclose(words.grad, golden["SGR/grad_cap"], atol=1e-5 * np.abs(golden["SGR/grad_cap"]).max())
    expected = convert_sgraf(take("SGR/grad/"), strict=False)["scorer"]
    for name, p in scorer.named_parameters():
        assert p.grad is not None
        # published gradients that vanish in exact arithmetic are noise of 1e-8; sums of signed terms round as much
        np.testing.assert_allclose(p.grad, expected[name], rtol=0, atol=1e-7 + 1e-5 * float(expected[name].abs().max()))
    double = scorer.double()(PartEmbedding(images.double()), PartEmbedding(words.double(), captions.mask))
    np.testing.assert_allclose(double.detach(), golden["SGR/sims_eval_float64"], atol=1e-14)
    scorer = SGR(32, 16, regions=36, dropout=0.0)
    scorer.load_state_dict(convert_sgraf(take("SGR/sd/"))["scorer"])
    model = scorer(PartEmbedding(images), captions)
    np.testing.assert_allclose(model.detach(), golden["SGR/sims_train_nodrop"], atol=2e-7)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("memory", [0, 3000, 1 << 30])
@pytest.mark.parametrize("kind", [SGR, SAF])
@pytest.mark.parametrize("regions", [6, None])
def test_blocks_equal_a_loop_over_captions_of_different_lengths(
    kind: Any, memory: int, training: bool, regions: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "TARGET", 200)  # several blocks even here
    images, captions = parts()
    scorer = build(kind, regions, memory=memory).train(training)
    plain = build(kind, regions).train(training)
    ours, expected = scorer(images, captions), slow(plain, images, captions)
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)
    weights = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    got = gradients(ours, weights, scorer, images, captions)
    wanted = gradients(expected, weights, plain, images, captions)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)
    for (name, a), b in zip(scorer.named_buffers(), plain.buffers(), strict=True):
        if "caption_pool" not in name:
            torch.testing.assert_close(a, b, msg=name)


@pytest.mark.parametrize("kind", [SGR, SAF])
def test_a_gradient_at_few_pairs_goes_through_these_pairs_alone_to_the_same_end(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, captions = parts()
    scorer = build(kind).eval()
    weights = torch.zeros(4, 7, dtype=torch.float64)
    weights[0, 0], weights[0, 3], weights[2, 6], weights[3, 1] = 1.0, -2.0, 0.5, 3.0
    few = gradients(scorer(images, captions), weights, scorer, images, captions)
    monkeypatch.setattr(blocks, "SPARSE", 0.0)
    all_of_them = gradients(scorer(images, captions), weights, scorer, images, captions)
    for a, b in zip(few, all_of_them, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("for_each_image", [False, True])
def test_the_gradient_of_local_alignments_passes_gradcheck(for_each_image: bool) -> None:
    images, _ = parts(3, 4, 5)
    words = torch.randn(
        3 if for_each_image else 1, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    weight, bias = torch.randn(2, 5, dtype=torch.float64), torch.randn(2, dtype=torch.float64)
    arguments = [x.detach().requires_grad_() for x in (images.local, words, weight, bias)]
    assert torch.autograd.gradcheck(
        lambda v, t, w, b: local_alignments(v, (v @ v.transpose(1, 2)).detach(), t, 3, w, b), arguments
    )


@pytest.mark.parametrize("kind", [SGR, SAF, SGRAF])
def test_padding_and_company_change_no_score(kind: Any) -> None:
    images, captions = parts()
    scorer = build(kind).eval()
    scores = scorer(images, captions)
    assert captions.mask is not None
    filled = captions.local.masked_fill(~captions.mask[..., None], 55.0)
    torch.testing.assert_close(scorer(images, PartEmbedding(filled, captions.mask)), scores)
    order = torch.tensor([6, 0, 2])
    some = scorer(PartEmbedding(images.local[1:3]), PartEmbedding(captions.local[order], captions.mask[order]))
    torch.testing.assert_close(some, scores[1:3][:, order])
    assert (scores > 0).all() and (scores < 1).all()


def test_sgraf_is_the_mean_of_both() -> None:
    images, captions = parts()
    both = build(SGRAF).eval()
    torch.testing.assert_close(both(images, captions), (both.sgr(images, captions) + both.saf(images, captions)) / 2)


def test_a_second_backward_pass_gives_the_same_gradient() -> None:
    images, captions = parts()
    scorer = build(SGR)
    scores = scorer.eval()(images, captions)
    first = torch.autograd.grad(scores.sum(), images.local, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(scores.sum(), images.local)[0], first)


def test_under_autocast_scores_stay_in_full_precision() -> None:
    images, captions = parts()
    scorer = build(SGR).float().eval()
    single = PartEmbedding(images.local.float()), PartEmbedding(captions.local.float(), captions.mask)
    with torch.autocast("cpu", torch.bfloat16):
        lean = scorer(*single)
    torch.testing.assert_close(lean, scorer(*single))


def test_sgr_learns_which_caption_belongs_to_which_image() -> None:
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(5)
    images = unit(torch.randn(8, 6, 8, generator=draw))
    words = images[:, [0, 2, 4]] + 0.1 * torch.randn(8, 3, 8, generator=draw)
    scorer = SGR(8, 16, regions=None, dropout=0.0)
    optimiser = torch.optim.Adam(scorer.parameters(), 0.01)
    for _ in range(60):
        scores = scorer(PartEmbedding(images), PartEmbedding(unit(words)))
        loss = nn.functional.cross_entropy(10 * scores, torch.arange(8))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (scores.argmax(dim=1) == torch.arange(8)).float().mean() > 0.8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, i, c: s(PartEmbedding(i.local[:, :5]), c), "5 regions but the scorer was built for 6"),
        (lambda s, i, c: s(PartEmbedding(i.local[..., :4]), c), r"images must be \(items, cells, 8\)"),
        (
            lambda s, i, c: s(i, PartEmbedding(c.local, c.mask & (torch.arange(7) != 2)[:, None])),
            "caption 2 has no word",
        ),
        (lambda s, i, c: s(PartEmbedding(i.local, torch.zeros(4, 6, dtype=torch.bool)), c), "same number of regions"),
        (lambda s, i, c: s(i, PartEmbedding(c.local[:0])), "captions are empty"),
        (lambda s, i, c: SGR(8, steps=0), "steps"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call: Any, message: str) -> None:
    images, captions = parts()
    with pytest.raises(InputError, match=message):
        call(build(SGR), images, captions)


def test_all_scores_are_those_of_evaluation_and_leave_the_mode_as_it_was() -> None:
    torch.manual_seed(0)
    images, captions = (PartEmbedding(unit(torch.randn(n, 5, 8))) for n in (6, 7))
    network = Network(torch.nn.Identity(), torch.nn.Identity(), SAF(8, sim_dim=4, regions=5, dropout=0.5)).train()
    scores = network.all_scores(images, captions, block=4)
    assert network.training and network.compare.training  # type: ignore[attr-defined]
    with torch.no_grad():
        torch.testing.assert_close(scores, network.eval().scores(images, captions))
