"""COCO's annotation files, whole or cut to a split, and Karpathy's JSON of COCO, Flickr30K and Flickr8k."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from halation._arrays import Array, to_numpy
from halation._errors import InputError
from halation._files import read_json, read_lines, read_npy
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
        raise InputError("give karpathy or ids, not both: each says which captions to take")
    if karpathy is not None:
        images = images_of_split(read_json(karpathy), str(karpathy), split)
        ids = [sentence for where, image in images for sentence in _sentence_ids(image, where)]
    elif isinstance(ids, str | os.PathLike):
        ids = read_npy(ids, mmap=False)
    documents = [(read_json(path), str(path)) for path in _several(captions)]
    return coco_truth(documents, ids, [] if instances is None else _several(instances))


def _sentence_ids(image: dict[str, Any], where: str) -> list[int]:
    ids = image.get("sentids")
    if not isinstance(ids, list) or not all(type(name) is int for name in ids):
        raise InputError(f'{where}: "sentids" is {str(ids)[:60]}; COCO needs a list of whole numbers, its caption ids')
    return ids


def _several(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def coco_truth(documents: Sequence[tuple[Any, str]], ids: Array | None, instances: Sequence[PathLike]) -> Truth:
    """`read_coco` of files that are read already: (document, path) each."""
    source = ", ".join(path for _, path in documents)
    texts, order = _annotations(documents)
    if ids is not None:
        order = _by_ids(to_numpy(ids).reshape(-1).tolist(), texts, source)
    classes, names = _classes(instances)
    gathered = TruthBuilder()
    for image, captions in order.items():
        in_image = None if classes is None else sorted(classes.get(image, ()))
        gathered.add(f"{source} image {image}", image, [texts[k][1] for k in captions], captions, in_image)
    return gathered.truth(source, "coco", names)


def _annotations(documents: Sequence[tuple[Any, str]]) -> tuple[dict[int, tuple[int, str]], dict[int, list[int]]]:
    """Caption id → (image, text), and image → its caption ids, both in the order of the files."""
    texts: dict[int, tuple[int, str]] = {}
    order: dict[int, list[int]] = {}
    for document, path in documents:
        for number, image in enumerate(objects_in(document, "images", path, _CAPTIONS)):
            name = _number(image, "id", f"{path} images[{number}]")
            if name in order:
                raise InputError(f"{path} images[{number}]: image {name} is listed twice; each image needs its own id")
            order[name] = []
        for number, row in enumerate(objects_in(document, "annotations", path, _CAPTIONS)):
            where = f"{path} annotations[{number}]"
            caption, image_id = _number(row, "id", where), _number(row, "image_id", where)
            if not isinstance(row.get("caption"), str):
                raise InputError(f'{where}: no "caption"; {_CAPTIONS}')
            if caption in texts:
                raise InputError(f"{where}: caption id {caption} occurs twice; each caption needs its own id")
            if image_id not in order:
                raise InputError(f'{where}: image {image_id} is not among "images"; was the file cut?')
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
    for number, row in enumerate(objects_in(document, "categories", str(path), _INSTANCES)):
        category = _number(row, "id", f"{path} categories[{number}]")
        if not isinstance(row.get("name"), str):
            raise InputError(f'{path} categories[{number}]: "name" is {row.get("name")!r}; {_INSTANCES}')
        name[category] = row["name"]
    yield None, list(name.values())
    for number, row in enumerate(objects_in(document, "annotations", str(path), _INSTANCES)):
        where = f"{path} annotations[{number}]"
        category = _number(row, "category_id", where)
        if category not in name:
            raise InputError(f'{where}: category {category} is not among "categories"; {_INSTANCES}')
        yield _number(row, "image_id", where), [name[category]]


def _instances_lines(path: PathLike) -> Iterable[tuple[int | None, list[str]]]:
    for number, line in read_lines(path):
        image, tab, categories = line.partition("\t")
        if not tab or not re.fullmatch(r"\d{1,19}", image):
            raise InputError(f'{path} line {number}: expected "image id, tab, name,name", found {line[:60]!r}')
        yield int(image), [name for name in categories.split(",") if name]


def _number(row: dict[str, Any], key: str, where: str) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f'{where}: "{key}" is {value!r}; COCO ids are whole numbers')
    return value


_KARPATHY = 'a Karpathy file is {"images": [{"filename": …, "split": …, "sentences": [{"raw": …}]}]}'


def read_karpathy(path: str | os.PathLike[str], split: str = "test", *, captions_per_image: int | None = None) -> Truth:
    """One split of a Karpathy JSON (Karpathy & Fei-Fei, CVPR 2015), images in file order.

    `split` is a name the file uses, or several joined: COCO models usually train on "train+restval". Images are called
    by their COCO id where there is one, else by file name; captions by their "sentid". A few COCO images have six or
    seven captions: `captions_per_image=5` keeps the first five, as VSE++ does (25,000 test captions).
    """
    return karpathy_truth(read_json(path), str(path), split, captions_per_image)


def karpathy_truth(document: Any, path: str, split: str, captions_per_image: int | None) -> Truth:
    """`read_karpathy` of a file that is read already."""
    if captions_per_image is not None and captions_per_image < 1:
        raise InputError(f"captions_per_image is {captions_per_image}; it must be 1 or more")
    gathered = TruthBuilder()
    for where, image in images_of_split(document, path, split):
        name = image.get("cocoid", image.get("filename"))
        if name is None:
            raise InputError(f'{where}: neither "cocoid" nor "filename"; {_KARPATHY}')
        sentences = objects_in(image, "sentences", where, _KARPATHY)[:captions_per_image]
        if any("raw" not in sentence for sentence in sentences):
            raise InputError(f'{where}: a sentence without "raw"; {_KARPATHY}')
        ids = [sentence["sentid"] for sentence in sentences if "sentid" in sentence]
        gathered.add(where, name, [sentence["raw"] for sentence in sentences], ids or None)
    dataset = document.get("dataset", "karpathy")
    return gathered.truth(path, f"{dataset}-{split}")


def images_of_split(document: Any, path: str, split: str) -> list[tuple[str, dict[str, Any]]]:
    """(where, image) of every image whose split is among `split` ("train+restval" joins two)."""
    images = objects_in(document, "images", path, _KARPATHY)
    for number, image in enumerate(images):
        if not isinstance(image.get("split"), str):
            raise InputError(f'{path} images[{number}]: "split" is {image.get("split")!r}; {_KARPATHY}')
    present = {image["split"] for image in images}
    wanted = set(split.split("+"))
    if unknown := sorted(wanted - present):
        raise InputError(f"{path} has no split {unknown[0]!r}; it has {', '.join(sorted(present))}")
    return [(f"{path} images[{number}]", image) for number, image in enumerate(images) if image["split"] in wanted]
