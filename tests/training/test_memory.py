"""The memory of earlier batches: what it holds, for how long, and which items a query meets."""

from __future__ import annotations

import pytest
import torch

from halation import losses, similarity, training
from halation._errors import InputError
from halation.similarity import Gaussian
from halation.training._spread import Memory


def test_the_oldest_is_forgotten_first() -> None:
    memory = Memory(3, 1)
    for number in range(5):
        memory.add(torch.tensor([[float(number)]]), torch.tensor([number]))
    assert sorted(memory.points[:, 0].tolist()) == [2.0, 3.0, 4.0]
    assert sorted(memory.owner.tolist()) == [2, 3, 4]
    memory.add(torch.arange(10.0)[:, None], torch.arange(10))  # more than it holds: the last of them
    assert sorted(memory.owner.tolist()) == [7, 8, 9]


def test_nobody_meets_what_is_of_the_own_image_or_not_there_yet() -> None:
    memory = Memory(4, 2)
    assert not memory.others(torch.tensor([0, 1])).meets.any()
    memory.add(torch.ones(3, 2), torch.tensor([5, 6, 5]))
    assert memory.others(torch.tensor([5, 6, 7])).meets.tolist() == [
        [False, True, False, False],
        [True, False, True, False],
        [True, True, True, False],
    ]


def step(number: int, owners: torch.Tensor, seed: int) -> training.Step:
    generator = torch.Generator().manual_seed(seed)
    sides = [Gaussian(torch.randn(4, 3, generator=generator), torch.full((4, 3), -1.0)) for _ in range(2)]
    eye = torch.eye(4, dtype=torch.bool)
    return training.Step(*sides, similarity.cosine, eye, lambda: eye.float(), 0, number, lambda: (owners, owners))


def test_a_step_is_told_from_earlier_ones_by_what_is_not_its_own() -> None:
    term = training.Spread(scale=2.0, memory=8).build(dim=3)
    first, second = step(0, torch.tensor([0, 1, 2, 3]), 1), step(1, torch.tensor([3, 4, 5, 6]), 2)
    assert torch.isclose(term(first), losses.spread(*first.gaussians(), first.matches, scale=2.0))  # nothing before it
    images, captions = first.gaussians()
    meets = torch.ones(4, 4, dtype=torch.bool)
    meets[0, 3] = False  # both are of image 3
    expected = losses.spread(
        *second.gaussians(),
        second.matches,
        scale=2.0,
        others_a=losses.Others(images.mean, meets),
        others_b=losses.Others(captions.mean, meets),
    )
    assert torch.isclose(term(second), expected)


def test_what_is_not_training_is_not_remembered() -> None:
    term = training.Spread(scale=2.0, memory=8).build(dim=3).eval()
    term(step(0, torch.arange(4), 1))
    assert term.images is not None
    assert bool((term.images.owner < 0).all())


def test_a_memory_needs_to_know_whose_items_these_are() -> None:
    known = step(0, torch.arange(4), 1)
    unknown = training.Step(known.images, known.captions, known.compare, known.matches, known.find_relevance, 0, 0)
    with pytest.raises(InputError, match="which image each item belongs to"):
        training.Spread(scale=2.0, memory=8).build(dim=3)(unknown)
