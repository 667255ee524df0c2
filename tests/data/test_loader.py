"""What a step is given is what its indices name, however it was fetched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from halation import InputError, Truth
from halation.data import Batches, Dataset, FeatureArray, Features, FeatureStore, Loader, Tokens, open_dataset


def pixels(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1)


def letters(captions: Sequence[str]) -> Tokens:
    width = max(len(caption) for caption in captions)
    ids = torch.tensor([[ord(letter) for letter in caption.ljust(width, "\0")] for caption in captions])
    return Tokens(ids, ids > 0)


def texts_of(tokens: Tokens) -> list[str]:
    rows = zip(tokens.ids, tokens.mask, strict=True)
    return ["".join(chr(code) for code in ids[mask]) for ids, mask in rows]


@pytest.mark.parametrize("memory", [0, 1 << 20])
@pytest.mark.parametrize("workers", [1, 3])
def test_an_epoch_of_pictures_is_what_one_would_open_by_hand(scenes_folder: Path, workers: int, memory: int) -> None:
    data = open_dataset(scenes_folder, "dev")
    assert data.photos is not None
    loader = Loader(data, pixels, letters, workers=workers, memory=memory)
    batches = Batches(data, 20, seed=1, unit="images", captions_per_image=2)
    for epoch in (0, 1):  # the second time from memory, where it is allowed
        count = 0
        for batch, items in loader.epoch(batches, epoch):
            assert isinstance(items.images, Tensor)
            assert torch.equal(items.images, torch.stack([pixels(data.photos[image]) for image in batch.images]))
            assert texts_of(items.tokens) == [data.captions[caption] for caption in batch.captions]
            count += 1
        assert count == 3


def test_each_rank_loads_its_own_part(scenes_folder: Path) -> None:
    data = open_dataset(scenes_folder, "dev")
    loader = Loader(data, pixels, letters)
    _, whole = next(loader.epoch(Batches(data, 8, seed=0), 0))
    parts = [next(loader.epoch(Batches(data, 8, seed=0, rank=rank, world=2), 0))[1] for rank in (0, 1)]
    assert torch.equal(torch.cat([part.images for part in parts]), whole.images)  # type: ignore[misc,arg-type]
    assert [text for part in parts for text in texts_of(part.tokens)] == texts_of(whole.tokens)


def test_everything_in_order_for_an_evaluation(scenes_folder: Path) -> None:
    data = open_dataset(scenes_folder, "dev")
    loader = Loader(data, pixels, letters)
    seen = torch.cat(list(loader.all_images(7)))  # type: ignore[arg-type]
    assert torch.equal(seen, loader.images(np.arange(60)))  # type: ignore[arg-type]
    assert [text for tokens in loader.all_captions(9) for text in texts_of(tokens)] == list(data.captions)


def test_tokens_are_no_wider_than_the_longest_caption_asked_for() -> None:
    truth = Truth.from_captions(["a", "a longer one", "abc"], [0, 0, 1])
    loader = Loader(Dataset("tiny", truth, features=FeatureStore(FeatureArray(np.eye(2)))), tokenize=letters)
    assert loader.tokens([0, 2]).ids.shape == (2, 3) and loader.tokens([1]).ids.shape == (1, 12)
    assert loader.tokens([0]).ids.dtype == torch.int64


def test_features_come_as_features(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(6, 4)).astype(np.float32)
    truth = Truth.from_captions([f"caption {k}" for k in range(12)], np.repeat(np.arange(6), 2))
    data = Dataset("tiny", truth, features=FeatureStore(FeatureArray(rows)))
    loader = Loader(data, tokenize=letters)
    for batch, items in loader.epoch(Batches(data, 4, seed=0), 0):
        assert isinstance(items.images, Features)
        assert np.array_equal(items.images.pooled.numpy(), rows[batch.images])


def test_a_broken_picture_stops_the_epoch_with_its_name(flickr8k: Path) -> None:
    (flickr8k / "images" / "p2.jpg").write_bytes(b"\xff\xd8 not much of a picture")
    data = open_dataset(flickr8k, "train")
    with pytest.raises(InputError, match=r"p2\.jpg is not a readable picture"):
        list(Loader(data, pixels, letters).epoch(Batches(data, 4, seed=0), 0))


def test_missing_inputs_are_refused(flickr8k: Path) -> None:
    Image.new("RGB", (5, 5)).save(flickr8k / "images" / "p3.jpg")
    data = open_dataset(flickr8k, "train")
    with pytest.raises(InputError, match="one shape"):
        Loader(data, pixels).images([0, 3])
    with pytest.raises(InputError, match="has no features"):
        Loader(data)
    with pytest.raises(InputError, match="without tokenize"):
        Loader(data, pixels).tokens([0])
    with pytest.raises(InputError, match="has no pictures"):
        Loader(Dataset("tiny", data.truth), pixels)
