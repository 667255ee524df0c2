"""One door for all files: look what a path is and call its reader."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from halation._errors import InputError
from halation._files import read_json
from halation.data import _coco, _karpathy
from halation.data._cub import class_folders, read_cub
from halation.data._flickr8k import TOKENS, read_flickr8k
from halation.data._jsonl import read_jsonl
from halation.data._truth import Truth

__all__ = ["read"]

_KNOWN = (
    "halation reads .jsonl of images and captions, Karpathy's dataset_*.json, COCO's captions_*.json, and the folders "
    f"of Flickr8k ({TOKENS}), CUB Captions (text_c10), COCO 5K (karpathy_test5k.jsonl) or of a captions.jsonl"
)


def read(path: str | os.PathLike[str], *, split: str | None = None, captions_per_image: int | None = None) -> Truth:
    """The truth in a file or folder of the field, recognised by what is in it.

    `split` is the data set's own name for a part ("test", "unseen"); without it the usual test part is read.
    `captions_per_image` keeps the first so many of each image: some of COCO's have six or seven, papers keep five.
    """
    if captions_per_image is not None and captions_per_image < 1:
        raise InputError(f"captions_per_image is {captions_per_image}; it must be 1 or more")
    truth = _read(Path(path), split)
    return truth if captions_per_image is None else _first(truth, captions_per_image)


def _first(truth: Truth, count: int) -> Truth:
    """The truth with at most the first `count` captions of each image."""
    assert truth.image_of is not None  # every reader says which image a caption belongs to
    order = np.argsort(truth.image_of, kind="stable")
    sizes = np.bincount(truth.image_of)
    nth = np.empty_like(order)  # (n_captions,): which of its image's captions each is
    nth[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return truth.subset(np.arange(truth.n_images), np.flatnonzero(nth < count))


def _read(source: Path, split: str | None) -> Truth:
    if source.is_dir():
        return _folder(source, split)
    if source.suffix == ".jsonl":
        return _whole(source, split)
    if source.suffix == ".json":
        return _json(source, read_json(source), split)
    if not source.exists():
        raise InputError(f"{source} does not exist")
    hint = f"name its folder, {source.parent}" if source.name == TOKENS else _KNOWN
    raise InputError(f"{source} is not recognised; {hint}")


def _folder(folder: Path, split: str | None) -> Truth:
    if (folder / TOKENS).is_file():
        return read_flickr8k(folder, split or "test")
    if class_folders(folder):
        return read_cub(folder, split or "unseen")
    files = sorted(folder.glob("dataset_*.json"))
    if len(files) > 1:
        raise InputError(f"{folder} holds {', '.join(file.name for file in files)}; name the file to read")
    if files:
        return _json(files[0], read_json(files[0]), split)
    if (folder / f"{split or 'test'}.jsonl").is_file():
        return read_jsonl(folder / f"{split or 'test'}.jsonl")
    for name in ("karpathy_test5k.jsonl", "captions.jsonl"):
        if (folder / name).is_file():
            return _whole(folder / name, split)
    inside = ", ".join(sorted(file.name for file in folder.iterdir())[:5]) or "nothing"
    raise InputError(f"{folder} is not recognised (it holds {inside}); {_KNOWN}")


def _whole(file: Path, split: str | None) -> Truth:
    if split is not None and split.lower() not in _words(file.stem.lower()):
        raise InputError(f"{file} has no splits (split={split!r}); name a file that holds that split alone")
    return read_jsonl(file)


def _words(stem: str) -> set[str]:
    """What a file's name may call its split: itself, its words, and these without a size ("test" of test5k)."""
    words = re.findall(r"[^\W_]+", stem)
    return {stem, *words, *(re.split(r"\d", word)[0] for word in words)} - {""}


def _json(file: Path, document: Any, split: str | None) -> Truth:
    images = document.get("images") if isinstance(document, dict) else None
    if isinstance(images, list) and images and isinstance(images[0], dict) and "sentences" in images[0]:
        return _karpathy.from_document(document, str(file), split or "test", None)
    if isinstance(images, list) and "annotations" in document:
        if split is not None:
            raise InputError(f"{file} has no splits (split={split!r}); read_coco takes Karpathy's or VSE++'s beside it")
        return _coco.from_document([(document, str(file))], None, [])
    raise InputError(f"{file} is neither Karpathy's nor COCO's captions; {_KNOWN}")
