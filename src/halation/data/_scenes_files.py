"""Reads drawn scenes: their captions, the claims of each, and which is true of which picture."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from halation._arrays import BoolArray, IntArray
from halation._errors import InputError
from halation._files import Location, read_jsonl
from halation.data._scenes_world import ATTRIBUTES, BACKGROUNDS, MOST, Object, Predicate, Scene, truths
from halation.data._truth import Truth

__all__ = ["RECIPE", "Scenes", "file_of", "image_name", "read_scenes", "splits", "vagueness"]

RECIPE = "scenes.json"


def file_of(split: str) -> str:
    return f"{split}_scenes.jsonl"


def image_name(split: str, number: int) -> str:
    return f"{split}_{number:05d}.png"


def splits(folder: Path) -> tuple[str, ...]:
    """The splits of a folder that `draw_scenes` finished."""
    if not (folder / RECIPE).is_file():
        return ()
    return tuple(split for split in ("train", "dev", "test") if (folder / file_of(split)).is_file())


@dataclass(frozen=True, eq=False)
class Scenes:
    """One split of drawn scenes; captions are in the order of `open_dataset`.

    images      file names, (n_images,)
    scenes      the content of each image
    captions    texts, (n_captions,), five for each image in turn
    predicates  the claims of each caption
    templates   the form of each sentence; held_out: forms that no training caption has
    """

    images: tuple[str, ...]
    scenes: tuple[Scene, ...]
    captions: tuple[str, ...]
    image_of: IntArray
    predicates: tuple[Predicate, ...]
    templates: tuple[str, ...]
    held_out: BoolArray
    name: str = "scenes"

    @cached_property
    def true(self) -> BoolArray:
        """(n_images, n_captions): the caption is true of the image, annotated or not."""
        return truths(self.predicates, self.scenes)

    def truth(self, *, annotated: bool = False) -> Truth:
        """The truth in which a caption is relevant to every image it is true of; `image_of` has the annotated pairs.

        With `annotated=True` only these pairs are relevant, as in a real dataset. `open_dataset` uses them for the
        training split, so that no model can learn from pairs that no annotator wrote.
        """
        ids = tuple(f"{self.images[image]}#{k % 5}" for k, image in enumerate(self.image_of))
        kept = Truth.from_captions(self.captions, self.image_of, image_ids=self.images, caption_ids=ids, name=self.name)
        return kept if annotated else kept.replace(i2t=csr_array(self.true), kind="pairs")


def vagueness(truth: Truth) -> IntArray:
    """(n_captions,): the number of images each caption is true of."""
    return truth.n_positives("t2i")


def read_scenes(folder: str | os.PathLike[str], split: str) -> Scenes:
    """Read one split that `draw_scenes` drew."""
    path = Path(folder) / file_of(split)
    images, scenes, image_of, statements = [], [], [], []
    for number, row in read_jsonl(path):
        try:
            scenes.append(_scene(row))
            images.append(str(row["image"]))
            for caption in row["captions"]:
                statements.append((str(caption["text"]), _predicate(caption["predicate"]), caption))
                image_of.append(len(images) - 1)
        except (KeyError, TypeError, ValueError) as error:
            problem = f"not a scene as halation writes it ({error!r})"
            raise Location(path, f"line {number}").error(problem, "draw the scenes anew") from None
    if not images:
        raise InputError("holds no scene", path=path, remedy="draw the scenes anew")
    return Scenes(
        images=tuple(images),
        scenes=tuple(scenes),
        captions=tuple(text for text, _, _ in statements),
        image_of=np.array(image_of),
        predicates=tuple(predicate for _, predicate, _ in statements),
        templates=tuple(str(caption["template"]) for _, _, caption in statements),
        held_out=np.array([bool(caption["held_out"]) for _, _, caption in statements]),
        name=f"scenes-{split}",
    )


def _scene(row: Mapping[str, Any]) -> Scene:
    objects = tuple(Object(**thing) for thing in row["objects"])
    if row["background"] not in BACKGROUNDS or not 1 <= len(objects) <= MOST:
        raise ValueError(f"a background {row['background']!r} and {len(objects)} objects")
    for thing in objects:
        _check(vars(thing), [*ATTRIBUTES, "x", "y"])
    return Scene(row["background"], objects)


def _predicate(clauses: Any) -> Predicate:
    for clause in clauses:
        kinds = clause.get("pair") or [clause.get("some") or clause.get("of") or {}]
        for kind in kinds:
            _check(kind, list(ATTRIBUTES))
        if not clause.keys() <= {"some", "pair", "where", "count", "of", "background"}:
            raise ValueError(f"the clause {clause}")
        if clause.get("background", BACKGROUNDS[0]) not in BACKGROUNDS:
            raise ValueError(f"the background {clause['background']!r}")
    return list(clauses)


def _check(kind: Mapping[str, Any], known: list[str]) -> None:
    for name, value in kind.items():
        if name not in known or (name in ATTRIBUTES and value not in ATTRIBUTES[name]):
            raise ValueError(f"{name} {value!r}")
