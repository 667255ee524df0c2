"""Batches depend on seed, epoch and step alone, and show what they promise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halation import InputError, Truth
from halation.data import Batches, Dataset

Make = Callable[..., Dataset]


def test_by_captions_every_pair_is_seen_once_an_epoch(dataset: Make) -> None:
    data = dataset(24)
    seen = list(Batches(data, 8, seed=0).epoch(2))
    captions = np.concatenate([batch.captions for batch in seen])
    assert sorted(captions) == list(range(120))
    assert all((data.image_of[batch.captions] == batch.images).all() for batch in seen)


def test_by_images_every_image_is_seen_once_with_different_captions_of_its_own(dataset: Make) -> None:
    data = dataset(24)
    batches = Batches(data, 6, seed=0, unit="images", captions_per_image=3)
    seen = list(batches.epoch(0))
    assert len(batches) == 4 and sorted(np.concatenate([batch.images for batch in seen])) == list(range(24))
    for batch in seen:
        assert (data.image_of[batch.captions] == batch.images[batch.image_of_caption]).all()
        assert len(set(batch.captions)) == 18
    drawn = {tuple(sorted(batch.captions % 5)) for e in range(20) for batch in batches.epoch(e)}
    assert len(drawn) > 10  # other captions in other epochs


def test_any_step_is_reached_without_those_before_it(dataset: Make) -> None:
    data = dataset(40)
    walked = list(Batches(data, 16, seed=5).epoch(7))
    fresh = Batches(data, 16, seed=5)
    for step in (11, 0, 4):
        assert (fresh.batch(7, step).captions == walked[step].captions).all()
    later = list(Batches(data, 16, seed=5).epoch(7, start=10))
    assert [b.captions.tolist() for b in later] == [b.captions.tolist() for b in walked[10:]]


def test_epochs_and_seeds_shuffle_differently(dataset: Make) -> None:
    data = dataset(40)
    orders = {tuple(Batches(data, 40, seed=s).batch(e, 0).captions) for s in (0, 1, 2) for e in (0, 1, 2)}
    assert len(orders) == 9


def test_ranks_share_one_global_batch_in_equal_parts(dataset: Make) -> None:
    data = dataset(24)
    parts = [
        Batches(data, 8, seed=0, unit="images", captions_per_image=2, rank=r, world=4).batch(1, 2) for r in range(4)
    ]
    whole = Batches(data, 8, seed=0, unit="images", captions_per_image=2).batch(1, 2)
    assert np.concatenate([part.images[part.my_images] for part in parts]).tolist() == whole.images.tolist()
    assert np.concatenate([part.captions[part.my_captions] for part in parts]).tolist() == whole.captions.tolist()


def test_an_image_that_stands_in_a_batch_twice_matches_both_its_captions(dataset: Make) -> None:
    batch = Batches(dataset(4), 16, seed=0).batch(0, 0)
    same = batch.images[:, None] == batch.images[None, :]
    assert (batch.matches == same).all() and batch.matches.sum() > 16


@given(st.lists(st.integers(1, 12), min_size=3, max_size=12), st.integers(1, 3), st.integers(0, 5))
def test_one_item_a_class_in_as_many_batches_as_that_allows(sizes: list[int], size: int, seed: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    truth = Truth.from_captions([f"bird {k}" for k in range(len(labels))], np.arange(len(labels)))
    batches = Batches(Dataset("birds", truth, labels=labels), size, seed=seed, unit="images", one_per_class=True)
    seen = list(batches.epoch(1))
    assert all(len(set(labels[batch.images])) == size for batch in seen)
    images = np.concatenate([batch.images for batch in seen])
    assert len(set(images)) == len(images) == size * len(batches)
    counts = sorted(sizes)
    most = 0  # one by one: always take of the classes with the most left
    while sum(count > 0 for count in counts) >= size:
        counts = sorted([*counts[:-size], *(count - 1 for count in counts[-size:])])
        most += 1
    assert len(batches) == most


def test_impossible_batches_are_refused(dataset: Make) -> None:
    data = dataset(10)
    for arguments, words in [
        ({"batch_size": 0}, "at least 1"),
        ({"batch_size": 51}, "take a smaller"),
        ({"batch_size": 9, "rank": 0, "world": 2}, "equal part"),
        ({"batch_size": 4, "captions_per_image": 2}, 'unit="images"'),
        ({"batch_size": 4, "unit": "images", "captions_per_image": 6}, r"1 … 5"),
        ({"batch_size": 4, "one_per_class": True}, "class for each image"),
        ({"batch_size": 4, "unit": "pairs"}, "unknown unit"),
    ]:
        with pytest.raises(InputError, match=words):
            Batches(data, seed=0, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs more classes than 3"):
        Batches(dataset(12, classes=3), 4, seed=0, one_per_class=True)
    with pytest.raises(InputError, match="step 2"):
        Batches(data, 25, seed=0).batch(0, 2)
