"""Images and captions as a reader meets them, collected into a `Truth`; complaints say where in the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from halation._errors import InputError
from halation.data._truth import Truth
from halation.data._truth_input import Id

__all__ = ["TruthBuilder", "objects_in"]


class TruthBuilder:
    """Add images one by one, then take `truth()`. `where` is where an image was found: "captions.jsonl line 12"."""

    def __init__(self) -> None:
        self._image_at: dict[str, str] = {}
        self._caption_at: dict[str, str] = {}
        self._image_ids: list[Id] = []
        self._caption_ids: list[Id] = []
        self._captions: list[str] = []
        self._image_of: list[int] = []
        self._classes: list[Sequence[str]] = []
        self._has_classes = False

    def add(
        self,
        where: str,
        image: Id,
        captions: Sequence[str],
        caption_ids: Sequence[Id] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> None:
        """One image with its captions; without ids the captions are called image#0, image#1, …"""
        if not len(captions):
            raise InputError(
                f'{where}: "captions" of {image!r} is empty; every image needs at least one (leave the image out)'
            )
        if caption_ids is not None and len(caption_ids) != len(captions):
            raise InputError(f"{where}: {len(caption_ids)} caption ids for the {len(captions)} captions of {image!r}")
        names = [f"{image}#{k}" for k in range(len(captions))] if caption_ids is None else caption_ids
        self._once(self._image_at, image, where, "image")
        for text, name in zip(captions, names, strict=True):
            if not isinstance(text, str):
                raise InputError(f"{where}: a caption of {image!r} is a {type(text).__name__}; captions are texts")
            self._once(self._caption_at, name, where, "caption")
            self._captions.append(text)
            self._caption_ids.append(name)
            self._image_of.append(len(self._image_ids))
        self._image_ids.append(image)
        self._classes.append([self._class(name, where) for name in classes or ()])
        self._has_classes = self._has_classes or classes is not None

    @staticmethod
    def _class(name: Any, where: str) -> str:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise InputError(f"{where}: {name!r} is not a class; classes are texts or whole numbers")
        return str(name)

    @staticmethod
    def _once(seen: dict[str, str], name: Any, where: str, what: str) -> None:
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise InputError(f"{where}: {name!r} is not a valid {what} id; ids are texts or whole numbers")
        if str(name) in seen:
            first = seen[str(name)]
            raise InputError(f"{where}: the {what} id {name!r} was used already ({first}); each {what} needs its own")
        seen[str(name)] = where

    def truth(self, source: str, name: str, class_names: Sequence[str] | None = None) -> Truth:
        """All that was added; images without classes count as not annotated."""
        if not self._image_ids:
            raise InputError(f"{source} holds no image; was it written completely?")
        return Truth.from_captions(
            self._captions,
            self._image_of,
            image_ids=self._image_ids,
            caption_ids=self._caption_ids,
            classes=self._classes if self._has_classes else None,
            class_names=class_names if self._has_classes else None,
            name=name,
        )


def objects_in(document: Any, key: str, where: str, remedy: str) -> list[dict[str, Any]]:
    """`document[key]` as a list of objects, or an error that says what the file should have been."""
    rows = document.get(key) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f'{where} has no list of objects "{key}"; {remedy}')
    return rows
