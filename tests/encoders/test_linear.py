"""The product that oneDNN does where MKL is slow: the same numbers, the same gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import halation.encoders._linear as room
from halation.encoders import SAF, SGR, PartEmbedding
from halation.encoders._linear import linear


@pytest.fixture(params=["oneDNN", "MKL"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways, whatever the processor is."""
    if request.param == "oneDNN" and not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(room, "_is_faster", lambda: request.param == "oneDNN")
    return str(request.param)


def products_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the products that oneDNN computes from now on."""
    shapes: list[tuple[int, ...]] = []
    real = room._product

    def noted(rows: Tensor, *others: object) -> Tensor:
        shapes.append(tuple(rows.shape))
        return real(rows, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "_product", noted)
    return shapes


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (2, 3, 5), (1, 1, 4, 5), (64, 5)])
def test_values_and_gradients_are_those_of_double_precision(library: str, shape: tuple[int, ...], biased: bool) -> None:
    given = [drawn(*shape), drawn(3, 5, seed=1), *([drawn(3, seed=2)] if biased else [])]
    single, double = ([x.to(kind).requires_grad_() for x in given] for kind in (torch.float32, torch.float64))
    out, wanted = linear(*single), functional.linear(*double)
    torch.testing.assert_close(out, wanted.float(), rtol=1e-5, atol=1e-5)
    weights = drawn(*wanted.shape, seed=3)
    got = torch.autograd.grad((out * weights).sum(), single)
    for mine, true in zip(got, torch.autograd.grad((wanted * weights.double()).sum(), double), strict=True):
        torch.testing.assert_close(mine, true.float(), rtol=1e-5, atol=1e-5)


def test_rows_and_weights_may_lie_any_way_in_memory(library: str) -> None:
    x, weight = drawn(5, 8).T, drawn(5, 3, seed=1).T
    torch.testing.assert_close(linear(x, weight), x @ weight.T)
    torch.testing.assert_close(linear(x[::2], weight[1:]), x[::2] @ weight[1:].T)
    for bias in (torch.arange(6.0)[::2], torch.tensor([7.0]).expand(3), drawn(3, 2)[:, 1], torch.tensor([7.0])):
        torch.testing.assert_close(linear(x, weight, bias), x @ weight.T + bias)


def test_what_is_no_number_stays_none(library: str) -> None:
    x = drawn(2, 5)
    x[1, 2] = torch.nan
    assert linear(x, drawn(3, 5, seed=1)).isnan().tolist() == [[False] * 3, [True] * 3]
    torch.manual_seed(0)
    scorer = SGR(16, 8, regions=6).eval()
    images = drawn(2, 6, 16)
    images[1, 0, 0] = torch.nan
    with torch.no_grad():
        seen = scorer(PartEmbedding(images), PartEmbedding(drawn(3, 4, 16, seed=1))).isnan()
    assert seen.tolist() == [[False] * 3, [True] * 3]


def test_only_what_wants_a_gradient_gets_one(library: str) -> None:
    x, weight, bias = drawn(4, 5), drawn(3, 5, seed=1).requires_grad_(), drawn(3, seed=2)
    linear(x, weight, bias).sum().backward()
    assert weight.grad is not None and x.grad is None and bias.grad is None
    with torch.no_grad():
        assert not linear(x, weight, bias).requires_grad


def test_nothing_asked_is_nothing_answered(library: str) -> None:
    assert linear(torch.zeros(0, 5), torch.zeros(3, 5)).shape == (0, 3)
    assert linear(torch.zeros(2, 0, 5), torch.zeros(3, 5), torch.ones(3)).shape == (2, 0, 3)


@pytest.mark.parametrize("library", ["oneDNN"], indirect=True)
def test_onednn_is_asked_in_single_precision_and_where_the_user_lets_it(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = products_of(monkeypatch)
    x, weight = drawn(4, 5), drawn(3, 5, seed=1)
    linear(x, weight)
    assert shapes == [(4, 5)]
    for other in (torch.float64, torch.bfloat16):
        assert linear(x.to(other), weight.to(other)).dtype == other
    with torch.backends.mkldnn.flags(enabled=False):
        linear(x, weight)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    assert len(shapes) == 1


@pytest.mark.parametrize("kind", [SGR, SAF])
@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.parametrize("few", [False, True], ids=["every pair", "few pairs"])
def test_scorers_say_the_same_by_either_library(
    library: str, kind: type[SGR] | type[SAF], memory: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    scorer = kind(16, 8, regions=6, dropout=0.0, memory=memory).train(kind is SGR)
    images, captions = (drawn(5, 6, 16).requires_grad_(), drawn(5, 9, 16, seed=1).requires_grad_())
    mask = torch.arange(9) < torch.tensor([3, 9, 1, 4, 4])[:, None]
    taken = torch.eye(5) if few else torch.ones(5, 5)  # few pairs are gone through one by one on the way back
    shapes = products_of(monkeypatch)
    scores = scorer(PartEmbedding(images), PartEmbedding(captions, mask))
    got = torch.autograd.grad((taken * scores.square()).sum(), [images, captions, *scorer.parameters()])
    assert bool(shapes) == (library == "oneDNN")
    for forbidden in (torch.no_grad(), torch.inference_mode()):
        with forbidden:
            torch.testing.assert_close(scorer(PartEmbedding(images), PartEmbedding(captions, mask)), scores.detach())
    scorer.double()
    doubles = [images.detach().double().requires_grad_(), captions.detach().double().requires_grad_()]
    true = scorer(PartEmbedding(doubles[0]), PartEmbedding(doubles[1], mask))
    torch.testing.assert_close(scores, true.float(), rtol=1e-4, atol=1e-6)
    gradients = torch.autograd.grad((taken * true.square()).sum(), [*doubles, *scorer.parameters()])
    for mine, theirs in zip(got, gradients, strict=True):
        torch.testing.assert_close(mine, theirs.float(), rtol=1e-3, atol=1e-5)
