"""DAA and Smooth-AP against the published code, the paper's equation in loops, and the metric they approximate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import halation
from halation import InputError, metrics
from halation.losses import DAA, SmoothAP, _soft_rank, daa, smooth_ap, soft_rank

GOLDEN = np.load(Path(__file__).resolve().parents[1] / "golden" / "losses" / "daa.npz")
CASES = ["N4/wide", "N16/wide", "N16/symm"]


@pytest.fixture(scope="module", autouse=True, params=["compiled", "tensor operations"])
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to DAA: the compiled loop of the host, and the tensor operations that other devices take."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "compiled":
            patch.setattr(_soft_rank, "on_host", lambda values: False)
        yield


def inputs(case: str, dtype: str, direction: str = "i2t") -> tuple[Tensor, Tensor, Tensor]:
    scores = torch.from_numpy(GOLDEN[f"{case}/scores"].astype(dtype)).requires_grad_()
    relevance = torch.from_numpy(GOLDEN[f"{case}/sems"].astype(dtype))
    return (scores, scores, relevance) if direction == "i2t" else (scores, scores.T, relevance.T)


def random(q: int, n: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return (
        torch.rand(q, n, generator=g, dtype=torch.float64).to(dtype).requires_grad_(),
        torch.rand(q, n, generator=g, dtype=torch.float64).to(dtype),
    )


def slow_rank(values: list[float], i: int, tau: float, among: list[int] | None = None) -> float:
    others = [j for j in (range(len(values)) if among is None else among) if j != i]
    return 1 + sum(1 / (1 + math.exp(min(700, -(values[j] - values[i]) / tau))) for j in others)


def slow_daa(scores: Tensor, relevance: Tensor, tau: float) -> float:
    terms = []
    for s, c in zip(scores.tolist(), relevance.tolist(), strict=True):
        if len(set(c)) > 1:
            pairs = [(slow_rank(s, i, tau), slow_rank(c, i, tau)) for i in range(len(s))]
            terms.append(sum(min(p) / max(p) for p in pairs) / len(pairs))
    return 1 - sum(terms) / len(terms)


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("tau", [0.001, 0.01])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("variant", "dtype", "errors"),  # errors: of the value, of the gradient
    [
        ("released", "float64", (1e-12, 1e-12)),
        ("released", "float32", (1e-6, 1e-5)),
        ("paper", "float64", (1e-12, 1e-9)),
    ],
)
def test_value_and_gradient_equal_the_published_ones(
    case: str, tau: float, direction: str, variant: Any, dtype: str, errors: tuple[float, float]
) -> None:
    leaf, scores, relevance = inputs(case, dtype, direction)
    loss = 25 * daa(scores, relevance, tau, variant)
    key = f"{case}/tau{tau}/{dtype}/{direction}/{'paper_' if variant == 'paper' else ''}"
    assert loss.item() == pytest.approx(float(GOLDEN[key + "value"]), rel=errors[0])
    (grad,) = torch.autograd.grad(loss, leaf)
    expected = GOLDEN[key + "grad"]
    assert np.abs(grad.numpy() - expected).max() <= errors[1] * np.abs(expected).max()


@pytest.mark.parametrize("case", CASES)
def test_the_module_sums_both_directions(case: str) -> None:
    _, scores, relevance = inputs(case, "float64")
    both = DAA(0.01)(scores, relevance)
    one = DAA(0.01, symmetric=False)
    torch.testing.assert_close(both, one(scores, relevance) + one(scores.T, relevance.T))
    golden = sum(float(GOLDEN[f"{case}/tau0.01/float64/{d}/paper_value"]) for d in ("i2t", "t2i"))
    assert 25 * both.item() == pytest.approx(golden, rel=1e-12)


@pytest.mark.parametrize(("q", "n"), [(1, 6), (5, 3), (4, 40)])
def test_daa_equals_a_loop_over_its_equation(q: int, n: int) -> None:
    scores, relevance = random(q, n, seed=n)
    relevance[0, : n // 2] = relevance[0, 0]
    assert daa(scores, relevance, 0.03).item() == pytest.approx(slow_daa(scores, relevance, 0.03), rel=1e-12)


def test_the_released_variant_equals_a_loop_over_what_the_released_code_does() -> None:
    scores, relevance = random(12, 12, seed=0)

    def rank(x: list[list[float]], b: int, c: int) -> float:
        return 1 + sum(1 / (1 + math.exp(-(x[a][b] - x[b][c]) / 0.02)) for a in range(12) if a != c)

    s, r = scores.tolist(), relevance.tolist()
    pairs = [(rank(s, b, c), rank(r, b, c)) for b in range(12) for c in range(12)]
    expected = 1 - sum(min(p) / max(p) for p in pairs) / 144
    assert daa(scores, relevance, 0.02, "released").item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("n", [4, 10])
def test_the_gradient_passes_gradcheck(variant: Any, n: int) -> None:
    q = n if variant == "released" else 3
    scores, relevance = random(q, n, seed=3)
    assert torch.autograd.gradcheck(lambda s: daa(s, relevance, 0.1, variant), scores)
    if variant == "paper":
        mask = torch.rand(q, n, generator=torch.Generator().manual_seed(0)) < 0.8
        assert torch.autograd.gradcheck(lambda s: daa(s, relevance, 0.1, mask=mask), scores)
        assert torch.autograd.gradcheck(lambda s: daa(s, relevance, 0.1, relevance_temperature=0.0), scores)


def test_no_gradient_reaches_the_relevance() -> None:
    scores, relevance = random(4, 9, seed=0)
    relevance.requires_grad_()
    daa(scores, relevance, 0.1).backward()
    assert relevance.grad is None
    assert scores.grad is not None


def test_daa_is_zero_when_every_row_is_ordered_by_meaning() -> None:
    _, relevance = random(6, 30, seed=1)
    slopes = torch.arange(1, 7, dtype=torch.float64)[:, None]
    scores = slopes * relevance**3 - 10 * slopes  # an increasing map that differs from row to row
    losses = [daa(scores, relevance, tau).item() for tau in (1e-2, 1e-4, 1e-6, 1e-9)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(0, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(2, 40), st.integers(0, 9999))
def test_permuting_columns_of_both_changes_nothing(q: int, n: int, seed: int) -> None:
    scores, relevance = random(q, n, seed)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    loss = daa(scores, relevance, 0.05)
    torch.testing.assert_close(daa(scores[:, order], relevance[:, order], 0.05), loss, rtol=1e-12, atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(2, 30), st.integers(0, 9999), st.booleans())
def test_at_a_vanishing_temperature_it_is_the_metric_over_rows_that_carry_signal(
    q: int, n: int, seed: int, tied: bool
) -> None:
    scores, relevance = (t.detach() for t in random(q, n, seed))
    if tied:
        scores, relevance = (scores * 4).round() / 4, (relevance * 3).round() / 3
    signal = relevance.amin(1) < relevance.amax(1)
    loss = daa(scores, relevance, 1e-9)
    if not signal.any():
        assert loss.item() == 0
    else:
        asp = metrics.asp(scores[signal].numpy(), relevance[signal].numpy(), ties="average")
        assert 1 - loss.item() == pytest.approx(float(asp.mean()), rel=1e-9)


def test_with_a_relevance_temperature_of_zero_the_relevance_ranks_are_exact_at_any_temperature() -> None:
    scores, _ = random(3, 25, seed=2)
    relevance = torch.randint(0, 5, (3, 25), generator=torch.Generator().manual_seed(0)).double()
    above = (relevance[:, None, :] > relevance[:, :, None]).double().sum(2)
    equal = (relevance[:, None, :] == relevance[:, :, None]).double().sum(2) - 1
    mid = 1 + above + 0.5 * equal
    for tau in (1e-3, 0.1, 10.0):
        by_score = soft_rank(scores, tau)
        expected = 1 - (torch.minimum(by_score, mid) / torch.maximum(by_score, mid)).mean()
        torch.testing.assert_close(daa(scores, relevance, tau, relevance_temperature=0), expected)
    assert daa(scores, relevance, 0.1, relevance_temperature=0.1) == daa(scores, relevance, 0.1)


def test_a_row_of_constant_relevance_leaves_the_mean() -> None:
    scores, relevance = random(5, 12, seed=4)
    relevance[2] = 0.7
    keep = torch.tensor([0, 1, 3, 4])
    loss = daa(scores, relevance, 0.02)
    torch.testing.assert_close(loss, daa(scores[keep], relevance[keep], 0.02))
    (grad,) = torch.autograd.grad(loss, scores)
    assert (grad[2] == 0).all()
    assert (grad[0] != 0).any()
    nothing = daa(scores, torch.ones_like(relevance), 0.02)
    assert nothing.item() == 0
    assert (torch.autograd.grad(nothing, scores)[0] == 0).all()


def test_a_masked_candidate_might_as_well_not_be_there() -> None:
    scores, relevance = random(5, 20, seed=5)
    mask = torch.arange(20) % 3 != 0
    torch.testing.assert_close(daa(scores, relevance, 0.02, mask=mask), daa(scores[:, mask], relevance[:, mask], 0.02))
    two_ways = torch.rand(5, 5, generator=torch.Generator().manual_seed(0)) < 0.7
    square, c = scores[:, :5], relevance[:, :5]
    torch.testing.assert_close(
        DAA(0.02)(square, c, two_ways),
        daa(square, c, 0.02, mask=two_ways) + daa(square.T, c.T, 0.02, mask=two_ways.T),
    )
    # constant where it counts: no signal, whatever the hidden candidates say
    relevance[0, mask] = 0.5
    (grad,) = torch.autograd.grad(daa(scores, relevance, 0.02, mask=mask), scores)
    assert (grad[0] == 0).all()


def test_the_released_variant_ignores_a_ranking_that_is_already_right() -> None:
    """The released code's deviation: rows in perfect order still cost dearly, unless the matrix is symmetric."""
    _, relevance = random(32, 32, seed=6)
    scores = torch.linspace(0.5, 2, 32)[:, None] * relevance
    assert daa(scores, relevance, 1e-3).item() < 0.02
    assert daa(scores, relevance, 1e-3, "released").item() > 0.1
    symmetric = relevance + relevance.T
    torch.testing.assert_close(
        daa(symmetric.square(), symmetric, 1e-3), daa(symmetric.square(), symmetric, 1e-3, "released")
    )


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("case", CASES)
def test_smooth_ap_equals_the_published_one(case: str, direction: str) -> None:
    leaf, scores, _ = inputs(case, "float64", direction)
    loss = 25 * smooth_ap(scores, torch.eye(len(scores), dtype=torch.bool), 0.01)
    assert loss.item() == pytest.approx(float(GOLDEN[f"{case}/smoothap_{direction}/value"]), rel=1e-12)
    (grad,) = torch.autograd.grad(loss, leaf)
    np.testing.assert_allclose(grad, GOLDEN[f"{case}/smoothap_{direction}/grad"], rtol=1e-9, atol=1e-11)


def test_smooth_ap_equals_a_loop_over_its_equation() -> None:
    scores, _ = random(6, 15, seed=8)
    matches = torch.rand(6, 15, generator=torch.Generator().manual_seed(1)) < 0.3
    matches[3] = False
    matches[:, 0] = torch.tensor([True, True, False, False, True, False])
    terms = []
    for s, m in zip(scores.tolist(), matches.tolist(), strict=True):
        positives = [i for i, p in enumerate(m) if p]
        if positives:
            terms.append(
                sum(slow_rank(s, i, 0.05, positives) / slow_rank(s, i, 0.05) for i in positives) / len(positives)
            )
    assert smooth_ap(scores, matches, 0.05).item() == pytest.approx(1 - sum(terms) / len(terms), rel=1e-12)
    assert torch.autograd.gradcheck(lambda x: smooth_ap(x, matches, 0.1), scores)
    one_way = SmoothAP(0.05, symmetric=False)
    torch.testing.assert_close(SmoothAP(0.05)(scores, matches), one_way(scores, matches) + one_way(scores.T, matches.T))


def test_smooth_ap_is_average_precision_when_sharp() -> None:
    scores, _ = random(8, 40, seed=9)
    matches = torch.rand(8, 40, generator=torch.Generator().manual_seed(2)) < 0.2
    matches[:, 0] = True
    exact = metrics.average_precision(scores.detach().numpy(), matches.numpy()).mean()
    assert 1 - smooth_ap(scores, matches, 1e-9).item() == pytest.approx(float(exact), rel=1e-9)
    mask = torch.arange(40) < 25
    assert smooth_ap(scores, matches, 0.02, mask=mask).item() == pytest.approx(
        smooth_ap(scores[:, :25], matches[:, :25], 0.02).item(), rel=1e-12
    )


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float64", "float32"), ("bfloat16", "float32")])
def test_both_engines_agree_whatever_the_types(
    hard: bool, dtypes: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, relevance = (x.detach() for x in random(19, 30, seed=7))
    relevance = (relevance * 6).round() / 6
    relevance[4] = 0.5
    scores, relevance = (x.to(getattr(torch, name)) for x, name in zip((scores, relevance), dtypes, strict=True))
    mask = torch.rand(19, 30, generator=torch.Generator().manual_seed(1)) < 0.7
    mask[11] = False
    for some in (None, mask):
        results = []
        for host in (True, False):
            monkeypatch.setattr(_soft_rank, "on_host", lambda values, host=host: host)
            leaf = scores.clone().requires_grad_()
            loss = daa(leaf, relevance, 0.02, relevance_temperature=0 if hard else None, mask=some)
            results.append((loss.detach(), torch.autograd.grad(loss, leaf)[0]))
        assert results[0][0].dtype == results[1][0].dtype
        torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-6, atol=0)
        assert results[0][1].dtype == scores.dtype
        scale = results[1][1].abs().max()
        tolerance = 1e-2 if dtypes[0] == "bfloat16" else 2e-6
        assert (results[0][1] - results[1][1]).abs().max() <= tolerance * scale


def test_a_value_without_a_gradient_is_the_same_value() -> None:
    scores, relevance = random(5, 12, seed=4)
    torch.testing.assert_close(daa(scores.detach(), relevance, 0.02), daa(scores, relevance, 0.02).detach())
    with torch.no_grad():
        assert not daa(scores, relevance, 0.02).requires_grad


def test_the_incoming_gradient_scales_the_outgoing() -> None:
    scores, relevance = random(5, 12, seed=4)
    (one,) = torch.autograd.grad(daa(scores, relevance, 0.02), scores)
    (many,) = torch.autograd.grad(-7 * daa(scores, relevance, 0.02), scores)
    torch.testing.assert_close(many, -7 * one)


def test_nan_makes_the_loss_nan_and_not_a_number_to_trust() -> None:
    for tau in (None, 0.0):
        for broken in (0, 1):
            scores, relevance = (x.detach() for x in random(4, 9, seed=1))
            (scores, relevance)[broken][1, 3] = math.nan
            assert daa(scores, relevance, 0.02, relevance_temperature=tau).isnan()
            mask = torch.ones(4, 9, dtype=torch.bool)
            mask[1, 3] = False
            assert daa(scores, relevance, 0.02, relevance_temperature=tau, mask=mask, check=True).isfinite()


def test_relevance_of_captions_goes_straight_into_the_loss() -> None:
    captions = [
        "a red kite over the sea",
        "a kite",
        "two dogs run",
        "hounds in a yard",
        "a blue boat",
        "the boat at sea",
    ]
    relevance = halation.caption_relevance(captions, [0, 0, 1, 1, 2, 2])  # (3, 6), NumPy
    assert isinstance(relevance, np.ndarray)
    scores = torch.from_numpy(relevance.copy()).requires_grad_()
    assert DAA(0.01)(scores, relevance).item() < 0.05
    assert DAA(0.01)(-scores, relevance).item() > 0.3


def test_arrays_serve_as_relevance_matches_and_mask() -> None:
    scores, relevance = random(4, 6, seed=2)
    mask, matches = relevance > 0.2, relevance > 0.6
    arrays = [x.detach().numpy().copy() for x in (relevance, mask, matches)]
    for array in arrays:
        array.flags.writeable = False  # as a memory-mapped file is
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DAA(0.05)(scores, arrays[0], arrays[1]) == DAA(0.05)(scores, relevance, mask)
        assert daa(scores, arrays[0], mask=arrays[1]) == daa(scores, relevance, mask=mask)
        assert SmoothAP(0.05)(scores, arrays[2], arrays[1]) == SmoothAP(0.05)(scores, matches, mask)
    torch.testing.assert_close(daa(scores, relevance.tolist(), 0.05), daa(scores, relevance, 0.05), rtol=1e-5, atol=0)


def test_whole_numbers_of_relevance_keep_their_order() -> None:
    scores = torch.tensor([[3.0, 2.0, 1.0]])
    assert daa(scores, [[2**40 + 2, 2**40 + 1, 2**40]], 1e-3).item() == pytest.approx(0, abs=1e-6)
    assert daa(scores, [[3, 2, 1]], 1e-3).dtype == torch.float32


def test_a_second_derivative_is_refused_rather_than_zero() -> None:
    scores, relevance = random(4, 4, seed=0)
    for loss in (daa(scores, relevance, 0.1), daa(scores, relevance, 0.1, "released")):
        with pytest.raises(InputError, match="create_graph"):
            torch.autograd.grad(loss, scores, create_graph=True)


def test_check_looks_only_where_the_mask_is_true() -> None:
    scores, relevance = (x.detach() for x in random(3, 5, seed=0))
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 4] = False
    scores[:, 4], relevance[:, 4] = -math.inf, math.nan
    assert daa(scores, relevance, 0.1, mask=mask, check=True).isfinite()
    assert DAA(0.1, check=True)(scores, relevance, mask).isfinite()
    assert smooth_ap(scores, torch.eye(3, 5), 0.1, mask, check=True).isfinite()
    with pytest.raises(InputError, match=r"scores\[0, 4\] is -inf"):
        daa(scores, relevance, 0.1, mask=~mask, check=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, c: daa(s, c.T), r"fits transposed"),
        (lambda s, c: daa(s, c.to(torch.complex64)), "real numbers"),
        (lambda s, c: daa(s, "high"), "relevance must be an array"),
        (lambda s, c: daa(s, c, torch.tensor(0.1)), "cannot be learnt"),
        (lambda s, c: daa(s, c, None), "temperature must be a positive number, not None"),
        (lambda s, c: daa(s, c, relevance_temperature=-1), "relevance_temperature must be"),
        (lambda s, c: daa(s[:0], c[:0]), "scores is empty"),
        (lambda s, c: smooth_ap(s[:, :0], c[:, :0]), "scores is empty"),
        (lambda s, c: DAA(variant="relased"), "did you mean 'released'"),
        (lambda s, c: DAA(0), "temperature must be a positive number"),
        (lambda s, c: DAA(relevance_temperature=math.nan), "relevance_temperature must be"),
        (lambda s, c: DAA(variant="released", relevance_temperature=0), "hard ranks"),
        (lambda s, c: SmoothAP("sharp"), "temperature must be a positive number"),
        (lambda s, c: daa(s, c, variant="relased"), "did you mean 'released'"),
        (lambda s, c: daa(s, c, variant="released"), "square"),
        (lambda s, c: daa(s[:, :3], c[:, :3], variant="released", relevance_temperature=0), "hard ranks"),
        (lambda s, c: daa(s, c, temperature=0), "positive"),
        (lambda s, c: daa(s, c.masked_fill(c < 0.5, math.nan), check=True), r"relevance\[.*\] is nan"),
        (lambda s, c: DAA(check=True)(s.masked_fill(s < 0.5, math.inf), c), r"scores\[.*\] is inf"),
        (lambda s, c: smooth_ap(s, c), "true or false"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call: Any, message: str) -> None:
    scores, relevance = random(3, 4, seed=0)
    with pytest.raises(InputError, match=message):
        call(scores, relevance)
