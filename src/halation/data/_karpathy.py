"""Karpathy's split files: dataset_coco.json, dataset_flickr30k.json, dataset_flickr8k.json."""

from __future__ import annotations

import os
from typing import Any

from halation._errors import InputError
from halation._files import read_json
from halation.data._truth import Truth
from halation.data._truth_builder import Gatherer, listed

__all__ = ["from_document", "images_of_split", "read_karpathy"]

_REMEDY = 'a Karpathy file is {"images": [{"filename": …, "split": …, "sentences": [{"raw": …}]}]}'


def read_karpathy(path: str | os.PathLike[str], split: str = "test", *, captions_per_image: int | None = None) -> Truth:
    """One split of a Karpathy JSON (Karpathy & Fei-Fei, CVPR 2015), images in file order.

    `split` is a name the file uses, or several joined: COCO models usually train on "train+restval". Images are called
    by their COCO id where there is one, else by file name; captions by their "sentid". A few COCO images have six or
    seven captions: `captions_per_image=5` keeps the first five, as VSE++ does (25,000 test captions).
    """
    return from_document(read_json(path), str(path), split, captions_per_image)


def from_document(document: Any, path: str, split: str, captions_per_image: int | None) -> Truth:
    """`read_karpathy` of a file that is read already."""
    if captions_per_image is not None and captions_per_image < 1:
        raise InputError(f"captions_per_image is {captions_per_image}; it must be 1 or more")
    gathered = Gatherer()
    for place, image in images_of_split(document, path, split):
        name = image.get("cocoid", image.get("filename"))
        if name is None:
            raise InputError(f'{place}: neither "cocoid" nor "filename"; {_REMEDY}')
        sentences = listed(image, "sentences", place, _REMEDY)[:captions_per_image]
        if any("raw" not in sentence for sentence in sentences):
            raise InputError(f'{place}: a sentence without "raw"; {_REMEDY}')
        ids = [sentence["sentid"] for sentence in sentences if "sentid" in sentence]
        gathered.add(place, name, [sentence["raw"] for sentence in sentences], ids or None)
    dataset = document.get("dataset", "karpathy")
    return gathered.truth(path, f"{dataset}-{split}")


def images_of_split(document: Any, path: str, split: str) -> list[tuple[str, dict[str, Any]]]:
    """(place, image) of every image whose split is among `split` ("train+restval" joins two)."""
    images = listed(document, "images", path, _REMEDY)
    for number, image in enumerate(images):
        if not isinstance(image.get("split"), str):
            raise InputError(f'{path} images[{number}]: "split" is {image.get("split")!r}; {_REMEDY}')
    present = {image["split"] for image in images}
    wanted = set(split.split("+"))
    if unknown := sorted(wanted - present):
        raise InputError(f"{path} has no split {unknown[0]!r}; it has {', '.join(sorted(present))}")
    return [(f"{path} images[{number}]", image) for number, image in enumerate(images) if image["split"] in wanted]
