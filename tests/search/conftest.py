"""A tiny collection and a tiny run, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from layouts import draw, write_flickr8k
from runs import write_run


@pytest.fixture(scope="session")
def flickr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen pictures, five captions each, in three splits."""
    return write_flickr8k(tmp_path_factory.mktemp("flickr") / "data")


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "tiny")


@pytest.fixture(scope="session")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "other", "train.seed=1")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of forty pictures, some in a folder below; one may break them."""
    for number in range(40):
        draw(tmp_path / "photos" / ("holiday" if number % 3 else "") / f"p{number:02d}.png", number)
    return tmp_path / "photos"
