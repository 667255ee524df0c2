"""Learning rates that fall towards the input."""

from __future__ import annotations

import pytest
import torch

from halation import InputError
from halation.encoders import EfficientNetLite0, Precomputed, SmallTransformer, Vocabulary
from halation.training._learner import layer_groups


def test_the_last_layer_has_the_full_rate_and_each_earlier_one_a_share() -> None:
    text = SmallTransformer(Vocabulary(["dog"]), 4, layers=2, heads=1)
    groups = layer_groups(text, 0.1, decay=0.5)
    assert [group["lr"] for group in groups] == pytest.approx([0.0125, 0.025, 0.05, 0.1])
    torch.optim.AdamW(groups)


@pytest.mark.parametrize("decay", [1.0, 0.7])
def test_every_parameter_that_learns_is_in_one_group(decay: float) -> None:
    net = EfficientNetLite0(weights=None)
    groups = layer_groups(net, 0.1, decay)
    listed = [id(p) for group in groups for p in group["params"]]
    assert len(listed) == len(set(listed)) and set(listed) == {id(p) for p in net.parameters()}


def test_what_is_frozen_is_left_out_and_what_is_not_listed_learns_at_the_full_rate() -> None:
    text = SmallTransformer(Vocabulary(["dog"]), 4, layers=1, heads=1)
    text.norm.requires_grad_(False)
    text.extra = torch.nn.Linear(2, 2)
    groups = layer_groups(text, 0.1, 0.5)
    assert [group["lr"] for group in groups] == pytest.approx([0.025, 0.05, 0.1])
    assert layer_groups(Precomputed(3), 0.1) == []


@pytest.mark.parametrize(("lr", "decay"), [(0, 0.5), (0.1, 0), (0.1, 1.5)])
def test_rates_that_make_no_sense_are_refused(lr: float, decay: float) -> None:
    with pytest.raises(InputError):
        layer_groups(Precomputed(3), lr, decay)
