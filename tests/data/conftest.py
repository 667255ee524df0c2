"""Datasets small enough to make in a moment; every picture is drawn, every caption invented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from halation.data import Dataset, Truth, draw_scenes


def draw(path: Path, colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (24, 16)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)
    return path


@pytest.fixture
def flickr8k(tmp_path: Path) -> Path:
    """Eight pictures with five captions each: four to train on, two for dev, two to test on."""
    root = tmp_path / "flickr8k"
    lines = []
    for k in range(8):
        draw(root / "images" / f"p{k}.jpg", (30 * k, 255 - 30 * k, 128))
        lines += [f"p{k}.jpg#{c}\tcaption {c} of picture {k} ." for c in range(5)]
    (root / "Flickr8k.token.txt").write_text("\n".join(lines), encoding="utf-8")
    for split, images in (("train", range(4)), ("dev", range(4, 6)), ("test", range(6, 8))):
        (root / f"Flickr_8k.{split}Images.txt").write_text("\n".join(f"p{k}.jpg" for k in images), encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def scenes_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_scenes(tmp_path_factory.mktemp("world") / "scenes", train=200, dev=60, test=120, size=32, seed=3)


@pytest.fixture
def dataset() -> Callable[..., Dataset]:
    """A dataset of captions alone: n images, each with `captions` captions, of `classes` classes."""

    def make(n: int, captions: int = 5, classes: int | None = None) -> Dataset:
        image_of = np.repeat(np.arange(n), captions)
        truth = Truth.from_captions([f"caption {k}" for k in range(n * captions)], image_of)
        return Dataset("tiny", truth, labels=None if classes is None else np.arange(n) % classes)

    return make
