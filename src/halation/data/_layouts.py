"""How datasets lie on disk: what a folder is, which splits it has, and one split as its annotations tell it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from halation._arrays import IntArray
from halation._errors import InputError
from halation._files import read_json, read_jsonl, read_lines
from halation.data import _precomp, _scenes_files
from halation.data._cub import class_folders, read_cub
from halation.data._features import FeatureStore
from halation.data._flickr8k import TOKENS, read_flickr8k
from halation.data._jsonl import read_jsonl as read_jsonl_truth
from halation.data._karpathy import from_document, images_of_split
from halation.data._truth import Truth

__all__ = ["Layout", "Listing", "recognise", "resolve_split"]

_KNOWN = (
    f"halation knows the folders of Flickr8k ({TOKENS}), Karpathy's dataset_*.json (COCO, Flickr30K), CUB (text_c10), "
    "*_precomp (train_ims.npy, train_caps.txt), train.jsonl or captions.jsonl, and scenes that it drew"
)
_FILE = ("file", "file_name", "filename", "image", "image_id")


@dataclass(frozen=True)
class Listing:
    """One split before its pictures are looked for."""

    truth: Truth
    files: tuple[tuple[str, ...], ...] | None = None  # for each image where its picture may lie, below a folder
    labels: IntArray | None = None
    features: FeatureStore | None = None  # where the layout is made of them


@dataclass(frozen=True)
class Layout:
    """What a folder is."""

    name: str
    splits: tuple[str, ...]
    read: Callable[[str], Listing]
    folders: tuple[Path, ...] = field(default=())  # where pictures may lie


def recognise(folder: Path) -> Layout:
    """The layout of a dataset's folder, by what is in it."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; name the folder that holds the dataset")
    for known in (_scenes, _flickr8k, _karpathy, _cub, _precomputed, _jsonl):
        layout = known(folder)
        if layout is not None:
            return layout
    inside = ", ".join(sorted(file.name for file in folder.iterdir())[:5]) or "nothing"
    raise InputError(f"{folder} is not recognised (it holds {inside}); {_KNOWN}")


def resolve_split(layout: Layout, split: str, folder: Path) -> str:
    """The layout's own name for a split: "dev" and "val" are the same; "train+restval" joins two of Karpathy's."""
    alias = {"dev": "val", "val": "dev", "validation": "val"}
    names = []
    for part in split.split("+"):
        tried = [part, alias.get(part, part), alias.get(alias.get(part, part), part)]
        name = next((name for name in tried if name in layout.splits), None)
        if name is None:
            raise InputError(f"{folder} ({layout.name}) has no split {part!r}; it has {', '.join(layout.splits)}")
        names.append(name)
    return "+".join(names)


def _scenes(root: Path) -> Layout | None:
    splits = _scenes_files.splits(root)

    def read(split: str) -> Listing:
        scenes = _scenes_files.read_scenes(root, split)
        names = tuple((inside(name, str(root / _scenes_files.file_of(split))),) for name in scenes.images)
        return Listing(scenes.truth(annotated=split == "train"), names)

    return Layout("scenes", splits, read, (root / "images",)) if splits else None


def _flickr8k(root: Path) -> Layout | None:
    if not (root / TOKENS).is_file():
        return None
    present = tuple(name for name in ("train", "dev", "test") if (root / f"Flickr_8k.{name}Images.txt").is_file())

    def read(split: str) -> Listing:
        chosen = root / f"Flickr_8k.{split}Images.txt"
        if split in present and not any(True for _ in read_lines(chosen)):
            raise InputError(f"{chosen} lists no image; was it written completely?")
        truth = read_flickr8k(root, split)
        return Listing(truth, tuple((inside(str(name), str(root / TOKENS)),) for name in truth.image_ids))

    return Layout("flickr8k", (*present, "all"), read, _below(root, "images", "Flicker8k_Dataset", "Flickr8k_Dataset"))


def _karpathy(root: Path) -> Layout | None:
    files = sorted(root.glob("dataset_*.json"))
    if not files:
        return None
    if len(files) > 1:
        raise InputError(f"{root} holds {', '.join(file.name for file in files)}; keep one of them in a folder")
    path, document = str(files[0]), read_json(files[0])
    images = document.get("images", []) if isinstance(document, dict) else []
    splits = dict.fromkeys(str(image.get("split")) for image in images if isinstance(image, dict))

    def read(split: str) -> Listing:
        truth = from_document(document, path, split, None)
        return Listing(
            truth, tuple(_karpathy_file(image, place) for place, image in images_of_split(document, path, split))
        )

    name = str(document.get("dataset", files[0].stem.removeprefix("dataset_"))) if isinstance(document, dict) else ""
    folders = _below(root, "images", "", f"{name}-images", f"{name}_images")
    return Layout(name, tuple(splits), read, folders)


def _karpathy_file(image: dict[str, Any], place: str) -> tuple[str, ...]:
    if not isinstance(image.get("filename"), str):
        raise InputError(f'{place}: "filename" is {image.get("filename")!r}; it names the picture')
    name, folder = image["filename"], image.get("filepath")
    return (inside(f"{folder}/{name}", place), name) if isinstance(folder, str) else (inside(name, place),)


def _cub(root: Path) -> Layout | None:
    if not class_folders(root):
        return None
    lists = {name: root / f"{old}classes.txt" for name, old in (("train", "train"), ("dev", "val"), ("test", "test"))}
    listed = {name: path for name, path in lists.items() if path.is_file()}
    usual = {"train": "seen", "test": "unseen"}

    def read(split: str) -> Listing:
        if split in listed:
            truth = read_cub(root, classes=listed[split]).replace(name=f"cub-{split}")
        else:
            truth = read_cub(root, usual.get(split, split))
        labels = np.array([int(str(name)[:3]) for name in truth.image_ids])
        return Listing(truth, tuple((str(name),) for name in truth.image_ids), labels)

    splits = dict.fromkeys([*listed, "train", "test", "seen", "unseen", "all"])
    folders = _below(root, "images", "CUB_200_2011/images", "../images", "../CUB_200_2011/images")
    return Layout("cub", tuple(splits), read, folders)


def _precomputed(root: Path) -> Layout | None:
    splits = _precomp.splits(root)

    def read(split: str) -> Listing:
        truth, features = _precomp.read_precomp(root, split)
        return Listing(truth, features=features)

    return Layout(root.name, splits, read) if splits else None


def _jsonl(root: Path) -> Layout | None:
    whole = root / "captions.jsonl"
    known = ("train", "dev", "val", "test", "restval")
    files = {name: root / f"{name}.jsonl" for name in known if (root / f"{name}.jsonl").is_file()}
    if files:
        folders = _below(root, "images", "", "flickr30k-images", "flickr30k_images")
        return Layout(root.name, tuple(files), lambda split: _jsonl_listing(files, split), folders)
    if not whole.is_file():
        return None
    rows = list(read_jsonl(whole))
    marked = dict.fromkeys(str(row["split"]) for _, row in rows if "split" in row)
    if marked and (bare := next((number for number, row in rows if "split" not in row), None)):
        raise InputError(f'{whole} line {bare}: no "split", which other lines have; give every line one, or none')

    def read(split: str) -> Listing:
        listing = Listing(read_jsonl_truth(whole), _jsonl_files(whole))
        if split == "all" or listing.files is None:
            return listing
        wanted = set(split.split("+"))
        kept = [place for place, (_, row) in enumerate(rows) if row["split"] in wanted]
        return Listing(listing.truth.subset(kept), tuple(listing.files[place] for place in kept))

    return Layout(root.name, (*marked, "all"), read, _below(root, "images", ""))


def _jsonl_listing(files: dict[str, Path], split: str) -> Listing:
    if "+" in split:
        raise InputError(f"{split!r} joins splits that are files of their own; put their lines into one file")
    return Listing(read_jsonl_truth(files[split]), _jsonl_files(files[split]))


def _jsonl_files(path: Path) -> tuple[tuple[str, ...], ...]:
    names = []
    for number, row in read_jsonl(path):
        name = next((row[key] for key in _FILE if row.get(key) is not None), None)
        if not isinstance(name, str):
            names.append((str(name),))
            continue
        names.append((inside(name, f"{path} line {number}"),))
    return tuple(names)


def inside(name: str, place: str) -> str:
    """A file name that stays below the dataset's folder, whoever wrote the annotations."""
    if name.startswith(("/", "\\", "~")) or ".." in re.split(r"[/\\]", name) or re.match(r"[A-Za-z]:", name):
        raise InputError(f"{place}: {name!r} leaves the dataset's folder; name files below it")
    return name


def _below(root: Path, *names: str) -> tuple[Path, ...]:
    return tuple(root / name for name in names)
