"""The GRU against torch's own, and what a recurrent reader must not see."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from halation import InputError
from halation.encoders import BiGRU


def ragged(lengths: list[int], dim: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(len(lengths))
    x = torch.randn(len(lengths), max(lengths) + 1, dim, generator=g, dtype=torch.float64).to(dtype)
    return x, torch.arange(max(lengths) + 1) < torch.tensor(lengths)[:, None]


def one_by_one(gru: nn.GRU, x: Tensor, lengths: list[int]) -> list[tuple[Tensor, Tensor]]:
    """torch's own GRU on each sequence alone, no padding anywhere."""
    return [(o[0], h.flatten()) for o, h in (gru(row[None, :n]) for row, n in zip(x, lengths, strict=True))]


@pytest.mark.parametrize("lengths", [[3, 1, 5, 5, 2], [4], [1, 1], [2, 7]])
def test_each_sequence_reads_as_if_it_were_alone(lengths: list[int]) -> None:
    module = BiGRU(3, 8).double()
    x, mask = ragged(lengths, 3)
    states, final = module(x, mask)
    for i, (alone, last) in enumerate(one_by_one(module.gru, x, lengths)):
        torch.testing.assert_close(states[i, : lengths[i]], alone, rtol=0, atol=1e-12)
        torch.testing.assert_close(final[i], last, rtol=0, atol=1e-12)
        assert not states[i, lengths[i] :].any()


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("merge", ["concat", "mean"])
def test_gradients_are_those_of_the_numbers(merge: Any, variant: Any) -> None:
    module = BiGRU(2, 4, merge, variant).double()
    x, mask = ragged([3, 1, 4], 2)
    weights = [w.detach().requires_grad_() for w in module.parameters()]
    names = [name for name, _ in module.named_parameters()]

    def run(x: Tensor, *weights: Tensor) -> Any:
        return torch.func.functional_call(module, dict(zip(names, weights, strict=True)), (x, mask))

    assert torch.autograd.gradcheck(run, (x.requires_grad_(), *weights))


def test_gradients_in_single_precision_equal_torchs_own() -> None:
    module = BiGRU(5, 6)
    lengths = [6, 2, 4]
    x, mask = ragged(lengths, 5, torch.float32)
    states, final = module(x, mask)
    (states.square().sum() + final.sum()).backward()
    ours = [w.grad.clone() for w in module.parameters() if w.grad is not None]
    module.zero_grad()
    sum(o.square().sum() + h.sum() for o, h in one_by_one(module.gru, x, lengths)).backward()  # type: ignore[union-attr]
    theirs = [w.grad for w in module.parameters() if w.grad is not None]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_what_stands_in_the_padding_changes_nothing() -> None:
    module = BiGRU(3, 4)
    x, mask = ragged([4, 2], 3, torch.float32)
    noisy = torch.where(mask[:, :, None], x, torch.full_like(x, 1e6))
    torch.testing.assert_close(module(noisy, mask), module(x, mask), rtol=0, atol=0)


def test_no_mask_means_that_every_position_is_real() -> None:
    module = BiGRU(3, 4)
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(module(x), module(x, torch.ones(2, 5, dtype=torch.bool)))


def test_the_released_variant_has_read_only_the_last_word_backwards() -> None:
    paper, released = BiGRU(3, 8), BiGRU(3, 8, variant="released")
    released.load_state_dict(paper.state_dict())
    x, mask = ragged([5, 3], 3, torch.float32)
    other = x.clone()
    other[:, 0] += 1  # the first word changes
    (_, a), (_, b) = released(x, mask), released(other, mask)
    assert torch.equal(a[:, 4:], b[:, 4:]) and not torch.equal(a[:, :4], b[:, :4])
    (_, a), (_, b) = paper(x, mask), paper(other, mask)
    assert not torch.equal(a[:, 4:], b[:, 4:])


def test_the_mean_of_both_directions_is_the_mean_of_their_states() -> None:
    side_by_side, averaged = BiGRU(3, 8), BiGRU(3, 4, merge="mean")
    averaged.load_state_dict(side_by_side.state_dict())
    x, mask = ragged([5, 3], 3, torch.float32)
    states, final = side_by_side(x, mask)
    means, last = averaged(x, mask)
    torch.testing.assert_close(means, (states[..., :4] + states[..., 4:]) / 2)
    torch.testing.assert_close(last, (final[..., :4] + final[..., 4:]) / 2)


def test_autocast_keeps_the_recurrence_in_full_precision() -> None:
    module = BiGRU(3, 4)
    x, mask = ragged([5, 3], 3, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        states, final = module(x, mask)
    assert states.dtype == torch.float32
    torch.testing.assert_close(final, module(x, mask)[1], rtol=0, atol=0.03)
    final.sum().backward()


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ([[True, False, True]], "after padding"),
        ([[False, False, False]], "every row needs one"),
        ([[True, True]], "shape"),
    ],
)
def test_a_mask_that_no_gru_can_read_is_refused(mask: list[list[bool]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        BiGRU(2, 4)(torch.zeros(1, 3, 2), torch.tensor(mask))


def test_two_directions_cannot_share_an_odd_dimension() -> None:
    with pytest.raises(InputError, match="even"):
        BiGRU(2, 5)
