"""Drawn scenes read back: captions, what they claim, and what is true of what."""

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
from halation._files import read_jsonl
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
    """One split of drawn scenes; captions in the order of `open_dataset`'s.

    images      file names, (n_images,)
    scenes      what each image shows
    captions    texts, (n_captions,), five for each image in turn
    predicates  what each caption claims
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
        """All that is true as the relevance of both directions; `image_of` says which pairs were annotated.

        `annotated=True`: these pairs alone, as a real dataset's. `open_dataset` takes them for the training split, so
        that nothing can learn from what no annotator wrote.
        """
        ids = tuple(f"{self.images[image]}#{k % 5}" for k, image in enumerate(self.image_of))
        kept = Truth.from_captions(self.captions, self.image_of, image_ids=self.images, caption_ids=ids, name=self.name)
        return kept if annotated else kept.replace(i2t=csr_array(self.true), kind="pairs")


def vagueness(truth: Truth) -> IntArray:
    """(n_captions,): of how many images each caption is true."""
    return truth.n_positives("t2i")


def read_scenes(folder: str | os.PathLike[str], split: str) -> Scenes:
    """One split that `draw_scenes` drew."""
    path = Path(folder) / file_of(split)
    images, scenes, image_of, statements = [], [], [], []
    for number, row in read_jsonl(path):
        where = f"{path} line {number}"
        try:
            scenes.append(_scene(row))
            images.append(str(row["image"]))
            for caption in row["captions"]:
                statements.append((str(caption["text"]), _predicate(caption["predicate"]), caption))
                image_of.append(len(images) - 1)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where}: not a scene as halation writes it ({error!r}); draw the scenes anew") from None
    if not images:
        raise InputError(f"{path} holds no scene; draw the scenes anew")
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
