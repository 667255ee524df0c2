"""Detail and gist: what decides which places, what learns from what."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from halation import losses
from halation._errors import InputError
from halation.data import Features, Tokens
from halation.encoders import (
    Gist,
    GistEmbedding,
    GistEncoder,
    Network,
    PartEmbedding,
    PointHead,
    SoftMaximum,
    detail_of,
)
from halation.encoders._embeddings import concatenate, count, map_tensors, select
from halation.encoders._gist import without_gist
from halation.similarity import Gaussian, cosine
from halation.training import DAA, InfoNCE, Step


def gisted(n: int, seed: int, d: int = 8) -> GistEmbedding:
    generator = torch.Generator().manual_seed(seed)
    points = [torch.nn.functional.normalize(torch.randn(n, d, generator=generator), dim=1) for _ in range(2)]
    return GistEmbedding(Gaussian.point(points[0].requires_grad_()), Gaussian.point(points[1].requires_grad_()))


def test_the_soft_maximum_is_its_formula() -> None:
    images, captions = gisted(5, 0), gisted(7, 1)
    join = SoftMaximum(cosine, temperature=0.2, share=0.1, floor=0.3)
    join(images, captions)  # training: looks at these scores
    join.eval()
    got = join(images, captions).detach().double().numpy()
    detail = (images.detail.mean @ captions.detail.mean.T).detach().double().numpy()
    gist = (images.gist.mean @ captions.gist.mean.T).detach().double().numpy()
    median, high = np.quantile(detail.astype(np.float32), [0.5, 0.9])
    for i in range(5):
        for c in range(7):
            z = (detail[i, c] - median) / (high - median)
            g = 0.3 + 0.7 * (1 + gist[i, c]) / 2
            assert got[i, c] == pytest.approx(0.2 * np.log(np.exp(z / 0.2) + np.exp(g / 0.2)), abs=1e-5)


def test_what_matches_in_detail_is_ranked_by_detail_whatever_the_gists_say() -> None:
    join = SoftMaximum(cosine, temperature=0.01).eval()
    generator = torch.Generator().manual_seed(3)
    detail = torch.rand(40, 40, generator=generator) * 4 - 2
    sides = [Gaussian.point(torch.nn.functional.normalize(torch.randn(40, 6, generator=generator))) for _ in range(2)]
    scores = join.join(detail, *sides)
    clear = detail > 1.1
    gists = sides[0].mean @ sides[1].mean.T
    assert torch.allclose(scores[clear], detail[clear], atol=1e-3)
    far = detail < 0.3
    assert (scores[clear].min() > scores[far].max()).all()
    order = [torch.argsort(x[far]) for x in (scores, gists)]  # where there is no match, the gist decides
    assert torch.equal(*order)


def test_annotated_matches_teach_the_detail_and_meaning_teaches_the_gist() -> None:
    images, captions = gisted(6, 0), gisted(6, 1)
    relevance = torch.rand(6, 6, generator=torch.Generator().manual_seed(2))
    step = Step(images, captions, SoftMaximum(cosine), torch.eye(6, dtype=torch.bool), lambda: relevance, 0, 0)
    leaves = [side.mean for item in (images, captions) for side in item]
    by_match = torch.autograd.grad(InfoNCE().build()(step), leaves, allow_unused=True, retain_graph=True)
    by_meaning = torch.autograd.grad(DAA(temperature=0.05).build()(step), leaves, allow_unused=True)
    assert [g is not None for g in by_match] == [True, False, True, False]
    assert [g is not None and bool(g.abs().sum() > 0) for g in by_meaning] == [False, True, False, True]
    assert torch.isclose(
        InfoNCE().build()(step), losses.info_nce(cosine(images.detail, captions.detail), step.matches, 0.07)
    )


def test_the_scale_of_the_detail_is_followed_in_training_and_kept_in_evaluation() -> None:
    join = SoftMaximum(cosine)
    images, captions = gisted(30, 0), gisted(30, 1)
    join(images, captions)
    first = join.median.item(), join.reach.item()
    scores = cosine(images.detail, captions.detail).detach().numpy()
    assert first == pytest.approx((np.median(scores), np.quantile(scores, 0.95) - np.median(scores)), abs=1e-5)
    join.eval()
    join.join(5 * torch.rand(30, 30), images.gist, captions.gist)
    assert (join.median.item(), join.reach.item()) == first
    join.train()
    join.join(5 + torch.rand(30, 30), images.gist, captions.gist)
    assert first[0] < join.median.item() < first[0] + 0.1  # a hundredth of the way


def test_the_gist_gives_its_backbone_no_gradient_and_adds_biases() -> None:
    pooled = torch.randn(4, 5, requires_grad=True)
    seen = Gist(5, 3, is_image=True)
    read = Gist(5, 3, is_image=False, words=9)
    tokens = Tokens(
        torch.tensor([[1, 2], [3, 0], [4, 5], [6, 7]]), torch.tensor([[1, 1], [1, 0], [1, 1], [1, 1]]).bool()
    )
    a, b = seen(pooled, Features(pooled)).mean, read(tokens, Features(pooled)).mean
    (a @ b.T).sum().backward()
    assert pooled.grad is None
    x = seen.fc(pooled)
    words = read.words.weight  # type: ignore[union-attr]
    y = read.fc(pooled) + torch.stack(
        [(words[1] + words[2]) / 2, words[3], *[(words[i] + words[i + 1]) / 2 for i in (4, 6)]]
    )
    direct = torch.nn.functional.cosine_similarity(x[:, None], y[None], dim=2)
    biases = (torch.tanh(seen.bias(x)) + torch.tanh(read.bias(y)).T) / 2
    assert torch.allclose(a @ b.T, (direct + biases) / 2, atol=1e-6)
    assert (a @ b.T).abs().max() <= 1


def test_the_two_are_handled_as_one() -> None:
    encoder = GistEncoder(torch.nn.Identity(), PointHead(5, 4), Gist(5, 3, is_image=True))
    parts = [encoder(Features(torch.randn(n, 5))) for n in (2, 3)]
    both = concatenate(parts)
    assert count(both) == 5 and isinstance(both, GistEmbedding)
    assert torch.equal(select(both, slice(2, 5)).gist.mean, parts[1].gist.mean)
    assert torch.equal(map_tensors(both, lambda x: 2 * x).detail.mean, 2 * both.detail.mean)  # type: ignore[union-attr]
    assert detail_of(both) is both.detail and detail_of(both.gist) is both.gist
    words = [GistEmbedding(PartEmbedding(torch.ones(1, n, 2), None), Gaussian.point(torch.ones(1, 2))) for n in (2, 3)]
    assert concatenate(words).detail.local.shape == (2, 3, 2)  # type: ignore[union-attr]


def test_a_model_without_its_gist_compares_in_detail() -> None:
    sides = [
        GistEncoder(torch.nn.Identity(), PointHead(5, 4), Gist(5, 3, is_image=is_image)) for is_image in (True, False)
    ]
    model = Network(sides[0], sides[1], SoftMaximum(cosine)).eval()
    plain, seen = without_gist(model), Features(torch.randn(6, 5))
    scores = plain.scores(plain.images(seen), plain.captions(seen))
    whole = model.images(seen), model.captions(seen)
    assert torch.equal(scores, cosine(*(detail_of(side) for side in whole)))  # type: ignore[arg-type]
    assert without_gist(plain) is plain and not plain.training
    assert {id(p) for p in plain.parameters()} < {id(p) for p in model.parameters()}


@pytest.mark.parametrize(("temperature", "share", "floor"), [(0, 0.1, 0.5), (0.1, 0.6, 0.5), (0.1, 0.1, 1)])
def test_settings_without_sense_are_refused(temperature: float, share: float, floor: float) -> None:
    with pytest.raises(InputError, match="soft maximum"):
        SoftMaximum(cosine, temperature, share, floor)
