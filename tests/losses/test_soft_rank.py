"""Soft ranks: n sums of n sigmoids each, in far fewer than n² steps, to rounding error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from halation import InputError
from halation.losses import _soft_rank, mid_rank, soft_rank
from halation.losses._sigmoid_sums import TERMS
from halation.losses._sigmoid_sums import coefficients as coefficients_of


@pytest.fixture(scope="module", autouse=True, params=["compiled", "tensor operations"])
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to the sums: the compiled loop of the host, and the tensor operations that other devices take."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "compiled":
            patch.setattr(_soft_rank, "on_host", lambda values: False)
        yield


def direct(scores: Tensor, temperature: float, mask: Tensor | None = None) -> Tensor:
    """The (q, n, n) form of the definition, in float64."""
    s = scores.double()
    sigmoids = torch.sigmoid((s[:, None, :] - s[:, :, None]) / temperature)  # (q, i, j)
    sigmoids = sigmoids * (1 - torch.eye(s.shape[1], dtype=torch.float64))
    if mask is None:
        return 1 + sigmoids.sum(dim=2)
    return (1 + (sigmoids * mask[:, None, :]).sum(dim=2)) * mask


def gradient(ranks: Tensor, scores: Tensor, seed: int = 0) -> Tensor:
    incoming = torch.randn(ranks.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.autograd.grad((ranks * incoming.to(ranks.dtype)).sum(), scores)[0]


def rows(kind: str, q: int, n: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    scores = {
        "uniform": lambda: torch.rand(q, n, generator=g, dtype=torch.float64),
        "normal": lambda: 0.1 * torch.randn(q, n, generator=g, dtype=torch.float64),
        "tied": lambda: torch.randint(0, 4, (q, n), generator=g).double() / 4,
        "clustered": lambda: (
            torch.randint(-2, 3, (q, n), generator=g) * 100.0 + 1e-3 * torch.randn(q, n, generator=g).double()
        ),
        "constant": lambda: torch.full((q, n), 0.3, dtype=torch.float64),
    }[kind]()
    return scores.to(dtype).requires_grad_()


KINDS = ["uniform", "normal", "tied", "clustered", "constant"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1e-6, 1e-3, 1e-2, 0.3, 50.0])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 33, 150])
def test_soft_ranks_and_their_gradients_equal_the_direct_form(kind: str, temperature: float, n: int) -> None:
    scores = rows(kind, 3, n, seed=n)
    fast, slow = soft_rank(scores, temperature), direct(scores, temperature)
    torch.testing.assert_close(fast, slow, rtol=1e-13, atol=0)
    # a saturated sigmoid leaves the direct form's own σ(1 − σ) with an error of 1e-16, hence the floor of 1e-14/τ
    torch.testing.assert_close(gradient(fast, scores), gradient(slow, scores), rtol=1e-11, atol=n * 1e-14 / temperature)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1e-3, 1e-2, 0.3, 1.0, 5.0])
def test_single_precision_ranks_to_single_precision(kind: str, temperature: float) -> None:
    """With the errors that docs/losses.md states for either engine, and some room."""
    scores = rows(kind, 4, 300, seed=5, dtype=torch.float32)
    fast, slow = soft_rank(scores, temperature), direct(scores, temperature)
    assert fast.dtype == torch.float32
    compiled = _soft_rank.on_host(scores)
    torch.testing.assert_close(fast.double(), slow, rtol=3e-7 if compiled else 4e-6, atol=0)
    ours, exact = gradient(fast, scores), gradient(slow, scores)
    error = 1e-6 if compiled else 5e-6 if temperature <= 0.01 else 3e-5
    assert (ours - exact).abs().max() <= error * exact.abs().max() + 1e-6 / temperature


def test_soft_rank_equals_a_loop_over_its_equation() -> None:
    scores = rows("uniform", 2, 12, seed=1)
    ranks = soft_rank(scores, 0.05)
    for q in range(2):
        s = scores[q].tolist()
        for i in range(12):
            expected = 1 + sum(1 / (1 + math.exp(-(s[j] - s[i]) / 0.05)) for j in range(12) if j != i)
            assert ranks[q, i].item() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("n", [5, 20])
def test_the_gradient_passes_gradcheck_with_and_without_a_mask(n: int) -> None:
    scores = rows("normal", 2, n, seed=2)
    mask = torch.rand(2, n, generator=torch.Generator().manual_seed(0)) < 0.7
    assert torch.autograd.gradcheck(lambda s: soft_rank(s, 0.1), scores)
    assert torch.autograd.gradcheck(lambda s: soft_rank(s, 0.1, mask=mask), scores)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 9999), st.sampled_from(KINDS), st.sampled_from([1e-4, 0.02, 1.0]))
def test_a_masked_candidate_might_as_well_not_be_there(n: int, seed: int, kind: str, temperature: float) -> None:
    scores = rows(kind, 3, n, seed)
    mask = torch.rand(n, generator=torch.Generator().manual_seed(seed)) < 0.6
    with_mask = soft_rank(scores, temperature, mask=mask)
    assert (with_mask[:, ~mask] == 0).all()
    assert (gradient(with_mask, scores)[:, ~mask] == 0).all()
    if mask.any():
        torch.testing.assert_close(with_mask[:, mask], soft_rank(scores[:, mask], temperature), rtol=1e-12, atol=0)


def test_a_mask_may_differ_from_row_to_row_and_hide_infinities() -> None:
    scores = rows("uniform", 6, 30, seed=3)
    mask = torch.rand(6, 30, generator=torch.Generator().manual_seed(1)) < 0.5
    torch.testing.assert_close(soft_rank(scores, 0.02, mask=mask), direct(scores, 0.02, mask), rtol=1e-12, atol=0)
    hidden = scores.detach().masked_fill(~mask, -math.inf).requires_grad_()
    ranks = soft_rank(hidden, 0.02, mask=mask)
    torch.testing.assert_close(ranks, soft_rank(scores, 0.02, mask=mask), rtol=1e-12, atol=0)
    assert torch.isfinite(gradient(ranks, hidden)).all()


def test_a_row_in_which_nothing_counts_has_no_ranks() -> None:
    scores = rows("uniform", 2, 5, seed=0)
    mask = torch.tensor([[False] * 5, [True] * 5])
    ranks = soft_rank(scores, 0.1, mask=mask)
    assert (ranks[0] == 0).all()
    assert torch.isfinite(gradient(ranks, scores)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 9999), st.sampled_from(KINDS))
def test_ranks_of_a_row_always_sum_to_those_of_a_permutation(n: int, seed: int, kind: str) -> None:
    total = soft_rank(rows(kind, 3, n, seed), 0.05).sum(dim=1)  # σ(x) + σ(−x) = 1 for every pair
    torch.testing.assert_close(total, torch.full_like(total, n * (n + 1) / 2), rtol=1e-12, atol=0)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 9999), st.sampled_from(KINDS))
def test_permuting_the_candidates_permutes_their_ranks(n: int, seed: int, kind: str) -> None:
    scores = rows(kind, 2, n, seed)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(soft_rank(scores[:, order], 0.03), soft_rank(scores, 0.03)[:, order], rtol=1e-12, atol=0)


def test_scores_shifted_by_a_constant_rank_the_same() -> None:
    scores = torch.randint(0, 1000, (3, 50), generator=torch.Generator().manual_seed(0)).double() / 1024
    torch.testing.assert_close(soft_rank(scores + 4096, 0.01), soft_rank(scores, 0.01), rtol=1e-12, atol=0)


def test_as_the_temperature_falls_soft_ranks_become_mid_ranks() -> None:
    for kind in ("uniform", "tied", "constant"):
        scores = rows(kind, 3, 60, seed=9).detach()
        torch.testing.assert_close(soft_rank(scores, 1e-9), mid_rank(scores), rtol=1e-6, atol=0)


def test_mid_ranks_equal_scipys() -> None:
    scores = rows("tied", 5, 40, seed=4).detach()
    np.testing.assert_array_equal(mid_rank(scores), scipy.stats.rankdata(-scores.numpy(), method="average", axis=1))
    mask = torch.rand(40, generator=torch.Generator().manual_seed(0)) < 0.5
    masked = mid_rank(scores, mask=mask)
    np.testing.assert_array_equal(masked[:, mask], mid_rank(scores[:, mask]))
    assert (masked[:, ~mask] == 0).all()


def test_working_in_chunks_of_rows_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_soft_rank, "on_host", lambda values: False)  # the compiled loop knows no chunks
    scores = rows("normal", 7, 80, seed=6)
    whole = soft_rank(scores, 0.02)
    expected = gradient(whole, scores)
    monkeypatch.setattr(_soft_rank, "CHUNK", 160)
    assert len(_soft_rank._chunks(scores)) == 4
    parts = soft_rank(scores, 0.02)
    torch.testing.assert_close(parts, whole, rtol=1e-14, atol=0)  # vector ends round exp differently
    torch.testing.assert_close(gradient(parts, scores), expected, rtol=1e-14, atol=1e-13)


class Calls(TorchDispatchMode):
    """Counts the operations that are sent to a device."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_a_device_is_sent_few_large_operations() -> None:
    scores = torch.empty(4096, 4096, device="meta")  # a device without numbers: only the calls are there
    with Calls() as calls:
        ranks, slopes = _soft_rank.blocked_sums(scores, None, 0.01)
    assert ranks.shape == slopes.shape == scores.shape
    assert calls.count < 5000


def test_a_second_derivative_is_refused_rather_than_zero() -> None:
    scores = rows("normal", 3, 9, seed=2)
    with pytest.raises(InputError, match="create_graph"):
        torch.autograd.grad(soft_rank(scores, 0.1).square().sum(), scores, create_graph=True)
    torch.autograd.grad(soft_rank(scores, 0.1).square().sum(), scores)


def test_mid_ranks_take_whole_numbers_and_infinities_and_hand_on_nan() -> None:
    big = 2**53 + 2 * np.arange(3)[None]  # float32 cannot tell these apart
    assert mid_rank(big).tolist() == [[3.0, 2.0, 1.0]]
    assert mid_rank([[True, False, True]]).tolist() == [[1.5, 3.0, 1.5]]
    values = torch.tensor([[1.0, -math.inf, 2.0], [1.0, math.nan, 2.0]])
    mask = torch.tensor([True, True, False])
    assert mid_rank(values, mask=mask)[0].tolist() == [1.0, 2.0, 0.0]
    ranks = mid_rank(values)
    assert ranks[0].tolist() == [2.0, 3.0, 1.0]
    assert ranks[1].isnan().all()
    assert mid_rank(values, mask=np.array([True, False, True]))[1].tolist() == [2.0, 0.0, 1.0]
    with pytest.raises(InputError, match="values must be a matrix"):
        mid_rank([1.0, 2.0])
    with pytest.raises(InputError, match="real numbers"):
        mid_rank(torch.ones(2, 2, dtype=torch.complex64))


def test_what_the_mask_hides_is_not_checked() -> None:
    scores = rows("uniform", 3, 20, seed=0).detach()
    scores[1, 4] = math.nan
    mask = torch.ones(3, 20, dtype=torch.bool)
    mask[1, 4] = False
    assert torch.isfinite(soft_rank(scores, 0.1, mask=mask, check=True)).all()
    with pytest.raises(InputError, match=r"scores\[1, 4\] is nan"):
        soft_rank(scores, 0.1, mask=~mask, check=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_scores_are_ranked_in_single_precision(dtype: torch.dtype) -> None:
    scores = rows("uniform", 3, 300, seed=0, dtype=dtype)
    ranks = soft_rank(scores, 0.01)
    assert ranks.dtype == torch.float32  # bfloat16 cannot tell rank 257 from 258
    torch.testing.assert_close(ranks, soft_rank(scores.detach().float(), 0.01), rtol=0, atol=0)
    grad = gradient(soft_rank(scores, 1e-6), scores)
    assert grad.dtype == dtype
    assert torch.isfinite(grad).all()


def test_the_polynomials_meet_the_error_that_is_stated() -> None:
    x = np.linspace(0, 1, 20001)[1:].astype(np.longdouble)
    for dtype, tail_error, slope_error in ((torch.float32, 8e-9, 1.3e-7), (torch.float64, 4e-15, 4e-14)):
        tail, slope = coefficients_of(dtype)
        assert len(tail) == len(slope) == TERMS[dtype]
        for coefficients, exact, error in ((tail, x / (1 + x), tail_error), (slope, x / (1 + x) ** 2, slope_error)):
            value = sum(c * x ** (k + 1) for k, c in enumerate(coefficients))
            assert float(np.abs(value / exact - 1).max()) < error
    chebyshev_at_three = np.cosh(11 * np.arccosh(3.0))
    assert 1 / chebyshev_at_three == pytest.approx(7.6e-9, rel=0.01)


@pytest.mark.parametrize(
    ("scores", "temperature", "mask", "message"),
    [
        (torch.ones(3), 0.1, None, "must be a matrix"),
        (torch.ones(2, 0), 0.1, None, "scores is empty"),
        (np.ones((2, 2)), 0.1, None, "must be a tensor"),
        (torch.ones(2, 2), None, None, "positive number, not None"),
        (torch.ones(2, 2), "0.1", None, "positive number, not '0.1'"),
        (torch.ones(2, 2), torch.tensor(0.1), None, "cannot be learnt"),
        (torch.ones(2, 2, dtype=torch.long), 0.1, None, "floating type"),
        (torch.ones(2, 2), 0.0, None, "positive"),
        (torch.ones(2, 2), -1.0, None, "positive"),
        (torch.ones(2, 2), math.nan, None, "positive"),
        (torch.ones(2, 2), 0.1, torch.ones(2, 2), "boolean"),
        (torch.ones(2, 2), 0.1, torch.ones(3, dtype=torch.bool), r"mask has shape \(3,\)"),
    ],
)
def test_what_cannot_be_ranked_is_refused_by_name(
    scores: Tensor, temperature: float, mask: Tensor | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        soft_rank(scores, temperature, mask=mask)


def test_nan_is_named_with_check_and_stays_in_its_row_without() -> None:
    scores = rows("uniform", 3, 20, seed=0).detach()
    scores[1, 4] = math.nan
    with pytest.raises(InputError, match=r"scores\[1, 4\] is nan"):
        soft_rank(scores, 0.1, check=True)
    finite = torch.isfinite(soft_rank(scores, 0.1)).all(dim=1)
    assert finite.tolist() == [True, False, True]


def test_every_order_of_a_small_row_is_ranked_exactly_when_sharp() -> None:
    for order in itertools.permutations(range(4)):
        ranks = soft_rank(torch.tensor([order], dtype=torch.float64), 1e-3)
        assert ranks[0].tolist() == [4.0 - position for position in order]
