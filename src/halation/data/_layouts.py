"""The layouts of datasets: recognises that of a folder or file, and reads the annotations of its splits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halation._arrays import IntArray
from halation._errors import InputError
from halation._files import Location, path_below, read_json, read_jsonl, read_lines
from halation.data import _scenes_files
from halation.data._coco import coco_truth, images_of_split, karpathy_truth
from halation.data._cub import class_folders, read_cub
from halation.data._flickr import TOKENS, read_flickr8k
from halation.data._jsonl import read_jsonl as read_jsonl_truth
from halation.data._truth import Truth

if TYPE_CHECKING:
    from halation.data._features import FeatureStore

__all__ = ["Annotations", "Layout", "recognise"]

_KNOWN = (
    f"halation knows the folders of Flickr8k ({TOKENS}), Karpathy's dataset_*.json (COCO, Flickr30K), CUB (text_c10), "
    "*_precomp (train_ims.npy, train_caps.txt), train.jsonl or captions.jsonl, and scenes that it drew; and the files "
    ".jsonl, dataset_*.json and COCO's captions_*.json"
)
_FILE_KEYS = ("file", "file_name", "filename", "image", "image_id")
_SPLIT_FILES = ("train", "dev", "val", "test", "restval")
_WHOLE_FILES = ("karpathy_test5k.jsonl", "captions.jsonl")

FileNames = tuple[tuple[str, ...], ...]  # for each image, the paths its picture may have below a folder


@dataclass(frozen=True)
class Annotations:
    """One split, before the search for its pictures."""

    truth: Truth
    read_files: Callable[[], FileNames] | None = None  # None: there are no pictures
    labels: IntArray | None = None
    features: FeatureStore | None = None  # where the layout is made of them

    @cached_property
    def files(self) -> FileNames | None:
        """For each image the paths its picture may have; InputError if one leaves the dataset's folder."""
        return None if self.read_files is None else self.read_files()


@dataclass(frozen=True)
class Layout:
    """A recognised folder or file: its splits and how to read them.

    splits    the dataset's names for its parts; ("all",) where it is not split
    read      the annotations of one split
    folders   that may hold the pictures
    usual     the split to measure when none is named
    aliases   other names for splits
    """

    name: str
    path: Path
    splits: tuple[str, ...]
    read: Callable[[str], Annotations]
    folders: tuple[Path, ...] = ()
    usual: str = "test"
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """The folder of the dataset."""
        return self.path if self.path.is_dir() else self.path.parent

    def resolve(self, split: str | None) -> str:
        """The dataset's own name for a split; the usual test part without one.

        "dev", "val" and "validation" are the same; "train+restval" joins two splits.
        """
        if split is None and self.usual not in self.splits:
            problem = f"({self.name}) has no split {self.usual!r}"
            raise InputError(problem, path=self.path, remedy=f"name one of {self._listed()}")
        parts = (self.usual if split is None else split).split("+")
        return "+".join(dict.fromkeys(self._resolve(part) for part in parts))

    def _resolve(self, split: str) -> str:
        same = ("dev", "val", "validation")
        names = (split, *same) if split in same else (split,)
        if present := [name for name in names if name in self.splits]:
            return present[0]
        if split not in self.aliases:
            problem = f"({self.name}) has no split {split!r}"
            raise InputError(problem, path=self.path, remedy=f"it has {self._listed()}")
        return self.aliases[split]

    def _listed(self) -> str:
        return ", ".join(self.splits)

    def title(self, split: str) -> str:
        """The name of one split to show: "flickr8k-test"."""
        return self.name if self.splits == ("all",) else f"{self.name}-{split}"


def recognise(path: Path) -> Layout:
    """The layout of a dataset's folder or file, by its contents; the InputError lists the known layouts."""
    if path.is_dir():
        return _recognise_folder(path)
    if not path.exists():
        raise InputError("does not exist", path=path, remedy="name the folder or file that holds the dataset")
    if path.suffix == ".jsonl":
        return _jsonl_whole(path, path.stem)
    if path.suffix == ".json":
        return _json(path, path)
    raise InputError("is not recognised", path=path, remedy="name its folder" if path.name == TOKENS else _KNOWN)


def _recognise_folder(folder: Path) -> Layout:
    for known in (_scenes, _flickr8k, _karpathy_folder, _cub, _precomputed, _jsonl_folder):
        layout = known(folder)
        if layout is not None:
            return layout
    contents = ", ".join(sorted(file.name for file in folder.iterdir())[:5]) or "nothing"
    raise InputError(f"is not recognised (it holds {contents})", path=folder, remedy=_KNOWN)


def _scenes(root: Path) -> Layout | None:
    splits = _scenes_files.splits(root)

    def read(split: str) -> Annotations:
        scenes = _scenes_files.read_scenes(root, split)
        location = Location(root / _scenes_files.file_of(split))
        truth = scenes.truth(annotated=split == "train")
        return Annotations(truth, lambda: tuple((path_below(name, location),) for name in scenes.images))

    return Layout("scenes", root, splits, read, (root / "images",)) if splits else None


def _flickr8k(root: Path) -> Layout | None:
    if not (root / TOKENS).is_file():
        return None
    present = tuple(name for name in ("train", "dev", "test") if (root / f"Flickr_8k.{name}Images.txt").is_file())

    def read(split: str) -> Annotations:
        images = root / f"Flickr_8k.{split}Images.txt"
        if split in present and not any(True for _ in read_lines(images)):
            raise InputError("lists no image", path=images, remedy="was it written completely?")
        truth, location = read_flickr8k(root, split), Location(root / TOKENS)
        return Annotations(truth, lambda: tuple((path_below(str(name), location),) for name in truth.image_ids))

    folders = _below(root, "images", "Flicker8k_Dataset", "Flickr8k_Dataset")
    return Layout("flickr8k", root, (*present, "all"), read, folders)


def _karpathy_folder(root: Path) -> Layout | None:
    files = sorted(root.glob("dataset_*.json"))
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise InputError(f"holds {names}", path=root, remedy="name the file to read")
    return _json(files[0], root) if files else None


def _json(file: Path, path: Path) -> Layout:
    """Karpathy's or COCO's JSON; `path` is the file or its folder, as the caller named it."""
    document = read_json(file)
    images = document.get("images") if isinstance(document, dict) else None
    if isinstance(images, list) and images and isinstance(images[0], dict) and "sentences" in images[0]:
        return _karpathy_layout(document, file, path)
    if isinstance(images, list) and "annotations" in document:
        return _coco_layout(document, file, path)
    raise InputError("is neither Karpathy's nor COCO's captions", path=file, remedy=_KNOWN)


def _karpathy_layout(document: dict[str, Any], file: Path, path: Path) -> Layout:
    splits = dict.fromkeys(str(image.get("split")) for image in document["images"] if isinstance(image, dict))

    def read(split: str) -> Annotations:
        images = images_of_split(document, file, split)
        truth = karpathy_truth(document, file, split, None)
        return Annotations(truth, lambda: tuple(_karpathy_file(image, location) for location, image in images))

    name = str(document.get("dataset", file.stem.removeprefix("dataset_")))
    folders = _below(file.parent, "images", "", f"{name}-images", f"{name}_images")
    return Layout(name, path, tuple(splits), read, folders)


def _karpathy_file(image: dict[str, Any], location: Location) -> tuple[str, ...]:
    name, folder = image.get("filename"), image.get("filepath")
    if not isinstance(name, str):
        raise location.error(f'"filename" is {name!r}', "give the name of the picture's file")
    if not isinstance(folder, str):
        return (path_below(name, location),)
    return path_below(f"{folder}/{name}", location), name


def _coco_layout(document: dict[str, Any], file: Path, path: Path) -> Layout:
    """An official captions file, whole; its pictures are in a folder of its year."""

    def read(split: str) -> Annotations:
        truth = coco_truth([(document, file)], None, [])
        names = [image.get("file_name") for image in document["images"]]
        if not all(isinstance(name, str) for name in names):
            return Annotations(truth)
        location = Location(file, '"file_name"')
        return Annotations(truth, lambda: tuple((path_below(name, location),) for name in names))

    part = file.stem.removeprefix("captions_")
    return Layout(file.stem, path, ("all",), read, _below(file.parent, "images", "", part, f"../{part}"), "all")


def _cub(root: Path) -> Layout | None:
    if not class_folders(root):
        return None
    lists = {name: root / f"{old}classes.txt" for name, old in (("train", "train"), ("dev", "val"), ("test", "test"))}
    listed = {name: path for name, path in lists.items() if path.is_file()}
    standard = {"train": "seen", "test": "unseen"}

    def read(split: str) -> Annotations:
        truth = read_cub(root, "all" if split in listed else standard.get(split, split), classes=listed.get(split))
        labels = np.array([int(str(name)[:3]) for name in truth.image_ids])
        return Annotations(truth, lambda: tuple((str(name),) for name in truth.image_ids), labels)

    splits = dict.fromkeys([*listed, "train", "test", "seen", "unseen", "all"])
    folders = _below(root, "images", "CUB_200_2011/images", "../images", "../CUB_200_2011/images")
    return Layout("cub", root, tuple(splits), read, folders, "test" if "test" in listed else "unseen")


def _precomputed(root: Path) -> Layout | None:
    if not any(root.glob("*_ims.npy")):
        return None
    from halation.data import _precomp  # here: features load torch, which captions alone do not need

    splits = _precomp.splits(root)

    def read(split: str) -> Annotations:
        truth, features = _precomp.read_precomp(root, split)
        return Annotations(truth, features=features)

    return Layout(root.name, root, splits, read) if splits else None


def _jsonl_folder(root: Path) -> Layout | None:
    files = {name: root / f"{name}.jsonl" for name in _SPLIT_FILES if (root / f"{name}.jsonl").is_file()}
    if not files:
        whole = next((root / name for name in _WHOLE_FILES if (root / name).is_file()), None)
        return None if whole is None else _jsonl_whole(whole, root.name, root)

    def read(split: str) -> Annotations:
        if "+" in split:
            problem = f"{split!r} joins splits that are separate files"
            raise InputError(problem, remedy="put their lines into one file")
        return Annotations(read_jsonl_truth(files[split]), lambda: _jsonl_files(files[split]))

    folders = _below(root, "images", "", "flickr30k-images", "flickr30k_images")
    return Layout(root.name, root, tuple(files), read, folders)


def _jsonl_whole(file: Path, name: str, path: Path | None = None) -> Layout:
    """One JSON Lines file, with a "split" in each line or without splits; its name may be that of a split."""
    splits = [row.get("split") for _, row in read_jsonl(file)]
    marked = tuple(dict.fromkeys(str(split) for split in splits if split is not None))
    if marked and None in splits:
        number = next(number for number, row in read_jsonl(file) if row.get("split") is None)
        problem = 'no "split", which other lines have'
        raise Location(file, f"line {number}").error(problem, "give every line one, or none")

    def read(split: str) -> Annotations:
        truth = read_jsonl_truth(file)
        if split == "all":
            return Annotations(truth, lambda: _jsonl_files(file))
        wanted = set(split.split("+"))
        rows = [row for row, name in enumerate(splits) if str(name) in wanted]

        def files() -> FileNames:
            names = _jsonl_files(file)
            return tuple(names[row] for row in rows)

        return Annotations(truth.subset(rows), files)

    aliases = {} if marked else dict.fromkeys(_words(file.stem.lower()), "all")
    folders = _below(file.parent, "images", "")
    usual = "test" if marked else "all"
    return Layout(name, path or file, tuple(dict.fromkeys((*marked, "all"))), read, folders, usual, aliases)


def _words(stem: str) -> set[str]:
    """The names of a split in a file's name: itself, its words, and these without a size ("test" of test5k)."""
    words = re.findall(r"[^\W_]+", stem)
    return {stem, *words, *(re.split(r"\d", word)[0] for word in words)} - {""}


def _jsonl_files(file: Path) -> FileNames:
    names = []
    for number, row in read_jsonl(file):
        name = next((row[key] for key in _FILE_KEYS if row.get(key) is not None), None)
        below = path_below(name, Location(file, f"line {number}")) if isinstance(name, str) else str(name)
        names.append((below,))
    return tuple(names)


def _below(root: Path, *names: str) -> tuple[Path, ...]:
    return tuple(root / name for name in names)
