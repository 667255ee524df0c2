"""Draws the world of `scenes`: pictures, captions and which is true of which, from one seed."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from halation._errors import InputError
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation.data._scenes_files import RECIPE, file_of, image_name
from halation.data._scenes_words import TEMPLATES, Statement, state
from halation.data._scenes_world import Object, Scene, pick, random_scene

__all__ = ["draw_scene", "draw_scenes"]

_OBJECTS = {
    "red": (222, 38, 42), "green": (40, 190, 70), "blue": (40, 80, 230), "yellow": (250, 215, 40),
    "purple": (150, 50, 190), "orange": (250, 140, 25),
}  # fmt: skip
_BACKGROUNDS = {
    "white": (246, 246, 244), "black": (18, 18, 20), "grey": (128, 128, 128), "pink": (250, 190, 205),
    "green": (20, 88, 45), "blue": (25, 40, 105),
}  # fmt: skip
_RADIUS = {"small": 0.22, "large": 0.42}  # of a cell's side
_FINER = 4  # scenes are drawn this many times larger, then averaged, for smooth edges
_HELD_OUT = 0.4  # share of dev and test captions whose template training never saw
_LEVELS = ("precise", "middling", "vague")
_FORMS = {
    (level, held_out): [form for form in TEMPLATES if form.level == level and form.held_out == held_out]
    for level in _LEVELS
    for held_out in (False, True)
}
_VERSION = 1


def draw_scenes(
    folder: str | os.PathLike[str],
    *,
    train: int = 4000,
    dev: int = 500,
    test: int = 1000,
    size: int = 64,
    seed: int = 0,
    progress: Progress = silent,
) -> Path:
    """Draw a dataset in which every pair of a caption and an image is known to be true or false.

    Scenes have one to three objects (shape, colour, size, position on a 3 × 3 grid) on a coloured background; no two
    of all splits are the same. Each has five true captions: precise ("a large red circle on the left and a tiny azure
    box at the top"), middling ("a crimson disc") and vague ("something red", "two shapes"). In dev and test two
    fifths of them have a form of sentence that is not in training, made of words that are.

    Pictures are `images/{split}_00000.png`, size × size. `{split}_scenes.jsonl` has scenes, captions and the claims of
    each caption, `scenes.json` the arguments. The same arguments give the same bytes. A folder that holds the finished
    scenes already stays as it is.
    """
    root = Path(folder)
    recipe = {"version": _VERSION, "train": train, "dev": dev, "test": test, "size": size, "seed": seed}
    if min(train, dev, test) < 1 or size < 16 or seed < 0:
        raise InputError(f"scenes need an image in each split, a size of 16 or more and a seed of 0 or more: {recipe}")
    if _finished(root, recipe):
        return root
    (root / "images").mkdir(parents=True, exist_ok=True)
    drawn, total, seen, words = 0, train + dev + test, set[Any](), set[str]()
    for number, (split, count) in enumerate((("train", train), ("dev", dev), ("test", test))):
        generator = np.random.default_rng((seed, number))
        lines = []
        for position in range(count):
            scene = _new_scene(generator, seen)
            statements = list(_captions(scene, generator, None if split == "train" else words))
            if split == "train":
                words.update(word for statement in statements for word in statement.text.split())
            name = image_name(split, position)
            draw_scene(scene, size).save(root / "images" / name, compress_level=1)
            lines.append(_line(name, scene, statements))
            drawn += 1
            progress("drawing", drawn, total)
        write_text(root / file_of(split), "".join(lines))
    write_text(root / RECIPE, json.dumps(recipe, indent=2) + "\n")  # last: its presence means that all is there
    return root


def _finished(root: Path, recipe: dict[str, int]) -> bool:
    if (root / RECIPE).is_file():
        if read_json(root / RECIPE) != recipe:
            problem = f"holds scenes drawn with other arguments ({RECIPE})"
            raise InputError(problem, path=root, remedy="name another folder")
        return True
    if root.is_file():
        raise InputError("is a file", path=root, remedy="name a folder")
    strange = [path.name for path in root.iterdir() if path.name not in _OURS] if root.is_dir() else []
    if strange:
        raise InputError(f"holds other files ({strange[0]})", path=root, remedy="name an empty or new folder")
    return False


_OURS = {"images", *(file_of(split) for split in ("train", "dev", "test"))}


def _new_scene(generator: np.random.Generator, seen: set[Any]) -> Scene:
    while True:
        scene = random_scene(generator)
        if scene.essence not in seen:
            seen.add(scene.essence)
            return scene


def _captions(scene: Scene, generator: np.random.Generator, words: set[str] | None) -> Iterator[Statement]:
    """Five captions: one of each level and two more that are not vague; no sentence twice.

    `words` are those of the training split, or None to write that split. Others are used only if it has too few.
    """
    texts: list[str] = []
    for level in (*_LEVELS, *(pick(_LEVELS[:2], generator) for _ in range(2))):
        for patience in itertools.count():
            statement = _statement(scene, level, generator, unseen=words is not None)
            known = words is None or patience > 100 or words.issuperset(statement.text.split())
            if known and statement.text not in texts:
                break
        texts.append(statement.text)
        yield statement


def _statement(scene: Scene, level: str, generator: np.random.Generator, *, unseen: bool) -> Statement:
    """A statement of this level, in any form that fits the scene."""
    while True:
        held_out = unseen and bool(generator.random() < _HELD_OUT)
        statement = state(pick(_FORMS[level, held_out], generator), scene, generator)
        if statement is not None:
            return statement


def _line(name: str, scene: Scene, statements: list[Statement]) -> str:
    row = {
        "image": name,
        "background": scene.background,
        "objects": [vars(thing) for thing in scene.objects],
        "captions": [statement._asdict() for statement in statements],
    }
    return json.dumps(row) + "\n"


def draw_scene(scene: Scene, size: int = 64) -> Image.Image:
    """The picture of a scene, size × size, in RGB.

    >>> from halation.data import Object
    >>> draw_scene(Scene("white", (Object("circle", "red", "large", 1, 1),)), 48).getpixel((24, 24))
    (222, 38, 42)
    """
    side = size * _FINER
    image = Image.new("RGB", (side, side), _BACKGROUNDS[scene.background])
    brush = ImageDraw.Draw(image)
    for thing in scene.objects:
        _paint(brush, thing, side / 3)
    return image.reduce(_FINER)


def _paint(brush: ImageDraw.ImageDraw, thing: Object, cell: float) -> None:
    x, y = (thing.column + 0.5 + thing.x) * cell, (thing.row + 0.5 + thing.y) * cell
    r, colour = _RADIUS[thing.size] * cell, _OBJECTS[thing.colour]
    if thing.shape == "circle":
        brush.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    elif thing.shape == "cross":
        w = r / 3
        brush.rectangle((x - r, y - w, x + r, y + w), fill=colour)
        brush.rectangle((x - w, y - r, x + w, y + r), fill=colour)
    else:
        brush.polygon([(x + r * dx, y + r * dy) for dx, dy in _CORNERS[thing.shape]], fill=colour)


def _star() -> list[tuple[float, float]]:
    spikes = ((1.0 if k % 2 == 0 else 0.42, math.pi * k / 5) for k in range(10))
    return [(length * math.sin(angle), -length * math.cos(angle)) for length, angle in spikes]


_CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    "triangle": [(0, -1), (0.95, 0.8), (-0.95, 0.8)],
    "diamond": [(0, -1), (0.7, 0), (0, 1), (-0.7, 0)],
    "star": _star(),
}
