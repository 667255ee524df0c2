"""Made-up worlds for the tests.

`sample_truth`: pictures that share subjects, colours and places, captions that fit several of them; `sample_scores`: a
made-up model that sees these through noise. `write_world`: a small dataset on disk, with features to train on.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from halation._arrays import FloatArray
from halation.data import Truth

_SUBJECTS = (("dog", "puppy"), ("cat", "kitten"), ("boy", "young child"), ("woman", "lady"), ("bird", "small bird"))
_COLOURS = ("black", "white", "brown", "red")
_ACTIONS = (("running", "racing"), ("sleeping", "lying down"), ("jumping", "leaping"), ("looking around", "watching"))
_PLACES = (
    ("on the grass", "in a green field"),
    ("in the snow", "on a snowy slope"),
    ("on a sofa", "in the living room"),
    ("by the sea", "on the beach"),
)
_SENTENCES = (
    "A {colour} {subject} {action} {place}.",
    "There is a {subject} {place}, {action}.",
    "The {colour} {subject} is {action}.",
    "Somebody photographed a {colour} {subject} {place}.",
    "A {subject} {action}.",
)


def sample_truth(images: int = 200, seed: int = 0) -> Truth:
    """`images` pictures × five captions; the classes are what is in the picture."""
    generator = np.random.default_rng(seed)
    sizes = (len(_SUBJECTS), len(_COLOURS), len(_ACTIONS), len(_PLACES))
    scenes = np.stack([generator.integers(size, size=images) for size in sizes], axis=1)  # (images, 4)
    captions = []
    for subject, colour, action, place in scenes:
        for sentence in _SENTENCES:
            which = generator.integers(2, size=3)
            captions.append(
                sentence.format(
                    subject=_SUBJECTS[subject][which[0]],
                    colour=_COLOURS[colour],
                    action=_ACTIONS[action][which[1]],
                    place=_PLACES[place][which[2]],
                )
            )
    names = [
        [_SUBJECTS[subject][0], _COLOURS[colour], _ACTIONS[action][0], _PLACES[place][0]]
        for subject, colour, action, place in scenes
    ]
    image_of = np.repeat(np.arange(images), len(_SENTENCES))
    return Truth.from_captions(captions, image_of, classes=names, name="demo world")


def sample_scores(truth: Truth, noise: float, seed: int) -> FloatArray:
    """Cosines between what a model of this noise sees in the pictures and reads in the captions; (images, captions)."""
    assert truth.classes is not None and truth.image_of is not None
    generator = np.random.default_rng(seed)
    own = generator.normal(size=(truth.n_images, 8))  # what only this picture and its captions have
    seen = np.hstack([truth.classes.astype(np.float64), 0.5 * own])
    images = seen + noise * generator.normal(size=seen.shape)
    captions = seen[truth.image_of] + noise * generator.normal(size=(truth.n_captions, seen.shape[1]))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    captions /= np.linalg.norm(captions, axis=1, keepdims=True)
    return np.asarray(images @ captions.T, dtype=np.float32)


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
