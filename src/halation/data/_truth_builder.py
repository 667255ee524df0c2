"""Images and captions, collected one by one into a `Truth`; errors name the file and the line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from halation._errors import InputError
from halation._files import Location
from halation.data._truth import Truth
from halation.data._truth_input import Id

__all__ = ["TruthBuilder", "objects_in"]


class TruthBuilder:
    """Collects images with `add`, then makes their `truth()`."""

    def __init__(self) -> None:
        self._image_at: dict[str, Location] = {}
        self._caption_at: dict[str, Location] = {}
        self._image_ids: list[Id] = []
        self._caption_ids: list[Id] = []
        self._captions: list[str] = []
        self._image_of: list[int] = []
        self._classes: list[Sequence[str]] = []
        self._has_classes = False

    def add(
        self,
        location: Location,
        image: Id,
        captions: Sequence[str],
        caption_ids: Sequence[Id] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> None:
        """Add an image with its captions; without ids the captions are called image#0, image#1, …

        location   of the image in its file
        """
        if not len(captions):
            problem = f'"captions" of {image!r} is empty'
            raise location.error(problem, "every image needs at least one (leave the image out)")
        if caption_ids is not None and len(caption_ids) != len(captions):
            problem = f"{len(caption_ids)} caption ids for the {len(captions)} captions of {image!r}"
            raise location.error(problem, "give each caption one id")
        names = [f"{image}#{k}" for k in range(len(captions))] if caption_ids is None else caption_ids
        self._once(self._image_at, image, location, "image")
        for text, name in zip(captions, names, strict=True):
            if not isinstance(text, str):
                raise location.error(f"a caption of {image!r} is a {type(text).__name__}", "captions are texts")
            self._once(self._caption_at, name, location, "caption")
            self._captions.append(text)
            self._caption_ids.append(name)
            self._image_of.append(len(self._image_ids))
        self._image_ids.append(image)
        self._classes.append([self._class(name, location) for name in classes or ()])
        self._has_classes = self._has_classes or classes is not None

    @staticmethod
    def _class(name: Any, location: Location) -> str:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise location.error(f"{name!r} is not a class", "classes are texts or whole numbers")
        return str(name)

    @staticmethod
    def _once(locations: dict[str, Location], name: Any, location: Location, what: str) -> None:
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise location.error(f"{name!r} is not a valid {what} id", "ids are texts or whole numbers")
        if str(name) in locations:
            first = locations[str(name)]
            earlier = " ".join(filter(None, (Path(first.path).name, first.part)))
            problem = f"the {what} id {name!r} was used already ({earlier})"
            raise location.error(problem, f"each {what} needs an id of its own")
        locations[str(name)] = location

    def truth(self, source: str | os.PathLike[str], name: str, class_names: Sequence[str] | None = None) -> Truth:
        """The truth of all images that were added; those without classes count as not annotated."""
        if not self._image_ids:
            raise InputError("holds no image", path=source, remedy="was it written completely?")
        return Truth.from_captions(
            self._captions,
            self._image_of,
            image_ids=self._image_ids,
            caption_ids=self._caption_ids,
            classes=self._classes if self._has_classes else None,
            class_names=class_names if self._has_classes else None,
            name=name,
        )


def objects_in(document: Any, key: str, location: Location, remedy: str) -> list[dict[str, Any]]:
    """`document[key]` as a list of objects; the error describes the format in its `remedy`."""
    rows = document.get(key) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise location.error(f'no list of objects "{key}"', remedy)
    return rows
