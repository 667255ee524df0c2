"""Plain JSON Lines: one image per line, with its captions and perhaps its classes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from halation import _files
from halation._files import Location
from halation.data._truth import Truth
from halation.data._truth_builder import TruthBuilder

__all__ = ["read_jsonl"]

_IMAGE = ("image_id", "image", "file")
_CLASSES = ("classes", "categories")
_FORMAT = 'each line is {"image": …, "captions": […]}'


def read_jsonl(path: str | os.PathLike[str]) -> Truth:
    """The truth of a file of lines `{"image": "dog.jpg", "captions": ["a dog", …], "classes": ["dog"]}`.

    "classes" and "caption_ids" are optional; captions without ids are called "dog.jpg#0", "dog.jpg#1", … The names
    "image_id" or "file" for "image" and "categories" for "classes" are understood; other keys are ignored.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "captions.jsonl"
    >>> _ = path.write_text('{"image": "dog.jpg", "captions": ["a dog", "a puppy"]}')
    >>> read_jsonl(path).caption_ids
    ('dog.jpg#0', 'dog.jpg#1')
    """
    gathered = TruthBuilder()
    for number, row in _files.read_jsonl(path):
        location = Location(path, f"line {number}")
        image = _first(row, _IMAGE)
        if image is None:
            raise location.error('no "image"', _FORMAT)
        gathered.add(
            location,
            image,
            _list(row, "captions", location) or [],
            _list(row, "caption_ids", location),
            _list(row, next((key for key in _CLASSES if key in row), _CLASSES[0]), location),
        )
    return gathered.truth(path, Path(path).stem)


def _first(row: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _list(row: dict[str, Any], key: str, location: Location) -> list[Any] | None:
    if key not in row:
        if key == "captions":
            raise location.error('no "captions"', _FORMAT)
        return None
    values = row[key]
    if not isinstance(values, list):
        raise location.error(f'"{key}" is a {type(values).__name__}', "it must be a list […]")
    return values
