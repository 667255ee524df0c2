"""COCO's own annotation files, whole or cut to a split."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from halation._arrays import Array, to_numpy
from halation._errors import InputError
from halation._files import read_json, read_lines, read_npy
from halation.data._karpathy import images_of_split
from halation.data._truth import Truth
from halation.data._truth_builder import Gatherer, listed

__all__ = ["from_document", "read_coco"]

PathLike = str | os.PathLike[str]
_CAPTIONS = 'an official captions file is {"images": […], "annotations": [{"id", "image_id", "caption"}]}'
_INSTANCES = (
    'an official instances file is {"categories": [{"id", "name"}], "annotations": [{"image_id", "category_id"}]}'
)


def read_coco(
    captions: PathLike | Sequence[PathLike],
    *,
    instances: PathLike | Sequence[PathLike] | None = None,
    karpathy: PathLike | None = None,
    split: str = "test",
    ids: PathLike | Array | None = None,
) -> Truth:
    """COCO captions (Lin et al., 2014; Chen et al., 2015) from the official JSON files.

    captions   captions_val2014.json, or several files (Karpathy's splits need train2014 and val2014)
    instances  instances_*.json for the classes; or lines "image id, tab, name,name"
    karpathy   dataset_coco.json: only the images and sentences of its `split`
    ids        VSE++'s caption ids, `.npy` or array: exactly these captions in this order (5,000 × 5 for the test split)

    Without `karpathy` and `ids`: every image in the order of the files.
    """
    if karpathy is not None and ids is not None:
        raise InputError("give karpathy or ids, not both: each says which captions to take")
    if karpathy is not None:
        images = images_of_split(read_json(karpathy), str(karpathy), split)
        ids = [sentence for place, image in images for sentence in _sentence_ids(image, place)]
    elif isinstance(ids, str | os.PathLike):
        ids = read_npy(ids, mmap=False)
    documents = [(read_json(path), str(path)) for path in _several(captions)]
    return from_document(documents, ids, [] if instances is None else _several(instances))


def _sentence_ids(image: dict[str, Any], place: str) -> list[int]:
    ids = image.get("sentids")
    if not isinstance(ids, list) or not all(type(name) is int for name in ids):
        raise InputError(f'{place}: "sentids" is {str(ids)[:60]}; COCO needs a list of whole numbers, its caption ids')
    return ids


def _several(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def from_document(documents: Sequence[tuple[Any, str]], ids: Array | None, instances: Sequence[PathLike]) -> Truth:
    """`read_coco` of files that are read already: (document, path) each."""
    source = ", ".join(path for _, path in documents)
    texts, order = _annotations(documents)
    if ids is not None:
        order = _by_ids(to_numpy(ids).reshape(-1).tolist(), texts, source)
    classes, names = _classes(instances)
    gathered = Gatherer()
    for image, captions in order.items():
        in_image = None if classes is None else sorted(classes.get(image, ()))
        gathered.add(f"{source} image {image}", image, [texts[k][1] for k in captions], captions, in_image)
    return gathered.truth(source, "coco", names)


def _annotations(documents: Sequence[tuple[Any, str]]) -> tuple[dict[int, tuple[int, str]], dict[int, list[int]]]:
    """Caption id → (image, text), and image → its caption ids, both in the order of the files."""
    texts: dict[int, tuple[int, str]] = {}
    order: dict[int, list[int]] = {}
    for document, path in documents:
        for number, image in enumerate(listed(document, "images", path, _CAPTIONS)):
            name = _number(image, "id", f"{path} images[{number}]")
            if name in order:
                raise InputError(f"{path} images[{number}]: image {name} is listed twice; each image needs its own id")
            order[name] = []
        for number, row in enumerate(listed(document, "annotations", path, _CAPTIONS)):
            place = f"{path} annotations[{number}]"
            caption, image_id = _number(row, "id", place), _number(row, "image_id", place)
            if not isinstance(row.get("caption"), str):
                raise InputError(f'{place}: no "caption"; {_CAPTIONS}')
            if caption in texts:
                raise InputError(f"{place}: caption id {caption} occurs twice; each caption needs its own id")
            if image_id not in order:
                raise InputError(f'{place}: image {image_id} is not among "images"; was the file cut?')
            texts[caption] = (image_id, row["caption"])
            order[image_id].append(caption)
    return texts, order


def _by_ids(ids: Iterable[Any], texts: dict[int, tuple[int, str]], source: str) -> dict[int, list[int]]:
    order: dict[int, list[int]] = {}
    for caption in ids:
        if type(caption) is not int or caption not in texts:
            raise InputError(
                f"caption id {caption!r} of the split is not in {source}; name every captions file the split draws "
                "from (Karpathy's: train2014 and val2014)"
            )
        order.setdefault(texts[caption][0], []).append(caption)
    return order


def _classes(paths: Sequence[PathLike]) -> tuple[dict[int, set[str]] | None, list[str] | None]:
    """Image → names of what is in it, and all names."""
    if not paths:
        return None, None
    found: dict[int, set[str]] = {}
    names: dict[str, None] = {}  # a set that keeps the order
    for path in paths:
        rows = _instances_json(path) if Path(path).suffix == ".json" else _instances_lines(path)
        for image, categories in rows:
            names.update(dict.fromkeys(categories))
            if image is not None:
                found.setdefault(image, set()).update(categories)
    return found, list(names)


def _instances_json(path: PathLike) -> Iterable[tuple[int | None, list[str]]]:
    document = read_json(path)
    name = {}
    for number, row in enumerate(listed(document, "categories", str(path), _INSTANCES)):
        category = _number(row, "id", f"{path} categories[{number}]")
        if not isinstance(row.get("name"), str):
            raise InputError(f'{path} categories[{number}]: "name" is {row.get("name")!r}; {_INSTANCES}')
        name[category] = row["name"]
    yield None, list(name.values())
    for number, row in enumerate(listed(document, "annotations", str(path), _INSTANCES)):
        place = f"{path} annotations[{number}]"
        category = _number(row, "category_id", place)
        if category not in name:
            raise InputError(f'{place}: category {category} is not among "categories"; {_INSTANCES}')
        yield _number(row, "image_id", place), [name[category]]


def _instances_lines(path: PathLike) -> Iterable[tuple[int | None, list[str]]]:
    for number, line in read_lines(path):
        image, tab, categories = line.partition("\t")
        if not tab or not re.fullmatch(r"\d{1,19}", image):
            raise InputError(f'{path} line {number}: expected "image id, tab, name,name", found {line[:60]!r}')
        yield int(image), [name for name in categories.split(",") if name]


def _number(row: dict[str, Any], key: str, place: str) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f'{place}: "{key}" is {value!r}; COCO ids are whole numbers')
    return value
