"""COCO's annotation files, whole or cut to a split, and Karpathy's JSON of COCO, Flickr30K and Flickr8k."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from halation._arrays import Array, to_numpy
from halation._errors import InputError
from halation._files import Location, read_json, read_lines, read_npy
from halation.data._truth import Truth
from halation.data._truth_builder import TruthBuilder, objects_in

__all__ = ["coco_truth", "images_of_split", "karpathy_truth", "read_coco", "read_karpathy"]

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
        raise InputError("karpathy and ids both choose captions", remedy="give one of them")
    if karpathy is not None:
        images = images_of_split(read_json(karpathy), karpathy, split)
        ids = [sentence for location, image in images for sentence in _sentence_ids(image, location)]
    elif isinstance(ids, str | os.PathLike):
        ids = read_npy(ids, mmap=False)
    documents: list[tuple[Any, PathLike]] = [(read_json(path), path) for path in _several(captions)]
    return coco_truth(documents, ids, [] if instances is None else _several(instances))


def _sentence_ids(image: dict[str, Any], location: Location) -> list[int]:
    ids = image.get("sentids")
    if not isinstance(ids, list) or not all(type(name) is int for name in ids):
        problem = f'"sentids" is {str(ids)[:60]}'
        raise location.error(problem, "COCO needs a list of whole numbers, its caption ids")
    return ids


def _several(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def coco_truth(documents: Sequence[tuple[Any, PathLike]], ids: Array | None, instances: Sequence[PathLike]) -> Truth:
    """`read_coco` of files that are read already: (document, path) each."""
    texts, order, locations = _annotations(documents)
    if ids is not None:
        order = _by_ids(to_numpy(ids).reshape(-1).tolist(), texts, [path for _, path in documents])
    classes, names = _classes(instances)
    gathered = TruthBuilder()
    for image, captions in order.items():
        in_image = None if classes is None else sorted(classes.get(image, ()))
        gathered.add(locations[image], image, [texts[k][1] for k in captions], captions, in_image)
    return gathered.truth(documents[0][1], "coco", names)


def _annotations(
    documents: Sequence[tuple[Any, PathLike]],
) -> tuple[dict[int, tuple[int, str]], dict[int, list[int]], dict[int, Location]]:
    """Caption id → (image, text), image → its caption ids, both in the order of the files, and image → its location."""
    texts: dict[int, tuple[int, str]] = {}
    order: dict[int, list[int]] = {}
    locations: dict[int, Location] = {}
    for document, path in documents:
        for number, image in enumerate(objects_in(document, "images", Location(path), _CAPTIONS)):
            location = Location(path, f"images[{number}]")
            name = _number(image, "id", location)
            if name in order:
                raise location.error(f"image {name} is listed twice", "each image needs an id of its own")
            order[name], locations[name] = [], location
        for number, row in enumerate(objects_in(document, "annotations", Location(path), _CAPTIONS)):
            location = Location(path, f"annotations[{number}]")
            caption, image_id = _number(row, "id", location), _number(row, "image_id", location)
            if not isinstance(row.get("caption"), str):
                raise location.error('no "caption"', _CAPTIONS)
            if caption in texts:
                raise location.error(f"caption id {caption} occurs twice", "each caption needs an id of its own")
            if image_id not in order:
                raise location.error(f'image {image_id} is not among "images"', "was the file cut?")
            texts[caption] = (image_id, row["caption"])
            order[image_id].append(caption)
    return texts, order, locations


def _by_ids(ids: Iterable[Any], texts: dict[int, tuple[int, str]], paths: Sequence[PathLike]) -> dict[int, list[int]]:
    order: dict[int, list[int]] = {}
    for caption in ids:
        if type(caption) is not int or caption not in texts:
            others = "".join(f", {Path(path).name}" for path in paths[1:])
            raise InputError(
                f"{others}: no caption has the id {caption!r}, which the split lists",
                path=paths[0],
                remedy="name every captions file that the split draws from (Karpathy's: train2014 and val2014)",
            )
        order.setdefault(texts[caption][0], []).append(caption)
    return order


def _classes(paths: Sequence[PathLike]) -> tuple[dict[int, set[str]] | None, list[str] | None]:
    """Image → names of its classes, and all names."""
    if not paths:
        return None, None
    classes_of: dict[int, set[str]] = {}
    names: dict[str, None] = {}  # a set that keeps the order
    for path in paths:
        rows = _instances_json(path) if Path(path).suffix == ".json" else _instances_lines(path)
        for image, categories in rows:
            names.update(dict.fromkeys(categories))
            if image is not None:
                classes_of.setdefault(image, set()).update(categories)
    return classes_of, list(names)


def _instances_json(path: PathLike) -> Iterable[tuple[int | None, list[str]]]:
    document = read_json(path)
    name = {}
    for number, row in enumerate(objects_in(document, "categories", Location(path), _INSTANCES)):
        location = Location(path, f"categories[{number}]")
        category = _number(row, "id", location)
        if not isinstance(row.get("name"), str):
            raise location.error(f'"name" is {row.get("name")!r}', _INSTANCES)
        name[category] = row["name"]
    yield None, list(name.values())
    for number, row in enumerate(objects_in(document, "annotations", Location(path), _INSTANCES)):
        location = Location(path, f"annotations[{number}]")
        category = _number(row, "category_id", location)
        if category not in name:
            raise location.error(f'category {category} is not among "categories"', _INSTANCES)
        yield _number(row, "image_id", location), [name[category]]


def _instances_lines(path: PathLike) -> Iterable[tuple[int | None, list[str]]]:
    for number, line in read_lines(path):
        image, tab, categories = line.partition("\t")
        if not tab or not re.fullmatch(r"\d{1,19}", image):
            problem = f"{line[:60]!r} is not an image with its classes"
            raise Location(path, f"line {number}").error(problem, 'write "image id, tab, name,name"')
        yield int(image), [name for name in categories.split(",") if name]


def _number(row: dict[str, Any], key: str, location: Location) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise location.error(f'"{key}" is {value!r}', "COCO ids are whole numbers")
    return value


_KARPATHY = 'a Karpathy file is {"images": [{"filename": …, "split": …, "sentences": [{"raw": …}]}]}'


def read_karpathy(path: str | os.PathLike[str], split: str = "test", *, captions_per_image: int | None = None) -> Truth:
    """One split of a Karpathy JSON (Karpathy & Fei-Fei, CVPR 2015), images in file order.

    `split` is a name the file uses, or several joined: COCO models usually train on "train+restval". An image's id is
    its COCO id, or its file name where it has none; a caption's is its "sentid". A few COCO images have six or seven
    captions: `captions_per_image=5` keeps the first five, as VSE++ does (25,000 test captions).
    """
    return karpathy_truth(read_json(path), path, split, captions_per_image)


def karpathy_truth(document: Any, path: PathLike, split: str, captions_per_image: int | None) -> Truth:
    """`read_karpathy` of a file that is read already."""
    if captions_per_image is not None and captions_per_image < 1:
        raise InputError(f"captions_per_image is {captions_per_image}; it must be 1 or more")
    gathered = TruthBuilder()
    for location, image in images_of_split(document, path, split):
        name = image.get("cocoid", image.get("filename"))
        if name is None:
            raise location.error('neither "cocoid" nor "filename"', _KARPATHY)
        sentences = objects_in(image, "sentences", location, _KARPATHY)[:captions_per_image]
        if any("raw" not in sentence for sentence in sentences):
            raise location.error('a sentence without "raw"', _KARPATHY)
        ids = [sentence["sentid"] for sentence in sentences if "sentid" in sentence]
        gathered.add(location, name, [sentence["raw"] for sentence in sentences], ids or None)
    dataset = document.get("dataset", "karpathy")
    return gathered.truth(path, f"{dataset}-{split}")


def images_of_split(document: Any, path: PathLike, split: str) -> list[tuple[Location, dict[str, Any]]]:
    """(location, image) of every image whose split is among `split` ("train+restval" joins two)."""
    images = objects_in(document, "images", Location(path), _KARPATHY)
    for number, image in enumerate(images):
        if not isinstance(image.get("split"), str):
            raise Location(path, f"images[{number}]").error(f'"split" is {image.get("split")!r}', _KARPATHY)
    present = {image["split"] for image in images}
    wanted = set(split.split("+"))
    if unknown := sorted(wanted - present):
        listed = ", ".join(sorted(present))
        raise InputError(f"has no split {unknown[0]!r}", path=path, remedy=f"it has {listed}")
    return [(Location(path, f"images[{n}]"), image) for n, image in enumerate(images) if image["split"] in wanted]
