"""A small world to train on: features that say what captions say, through noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

THINGS = ("dog", "cat", "bus", "boat", "bird", "horse", "kite", "tree")
COLOURS = ("red", "blue", "green", "white", "black")
PLACES = ("grass", "snow", "street", "water")


def write_world(folder: Path, sizes: dict[str, int] | None = None, seed: int = 0) -> Path:
    """JSON Lines per split, and a feature store with pooled vectors and cells."""
    generator = np.random.default_rng(seed)
    names, pooled, cells = [], [], []
    look = generator.normal(size=(len(THINGS) + len(COLOURS) + len(PLACES), 24))
    for split, size in (sizes or {"train": 160, "dev": 40, "test": 40}).items():
        rows = []
        for number in range(size):
            t, c, p = (int(generator.integers(len(kind))) for kind in (THINGS, COLOURS, PLACES))
            thing, colour, place = THINGS[t], COLOURS[c], PLACES[p]
            captions = [
                f"a {colour} {thing} on the {place}",
                f"the {thing} is {colour}",
                f"a {thing}, {place} around it",
            ]
            name = f"{split}{number}.png"
            rows.append({"image": name, "captions": captions})
            parts = look[[t, len(THINGS) + c, len(THINGS) + len(COLOURS) + p]]
            names.append(name)
            pooled.append(parts.sum(0) + 0.3 * generator.normal(size=24))
            cells.append(parts[[0, 1, 2, 0]] + 0.3 * generator.normal(size=(4, 24)))
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    features = folder / "features"
    features.mkdir()
    np.save(features / "toy_pooled.npy", np.array(pooled, dtype=np.float16))
    np.save(features / "toy_local.npy", np.array(cells, dtype=np.float16))
    (features / "images.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    return folder


RECIPE = """
name = "toy"
[data]
features = "features"
[text]
dim = 16
min_count = 1
[model]
dim = 16
dropout = 0.1
[loss.infonce]
weight = 1.0
[train]
epochs = 3
batch_size = 32
lr = 0.01
warmup = 5
"""


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small dataset with features."""
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def recipe_text() -> str:
    """A recipe for the small world: three epochs in a second."""
    return RECIPE
