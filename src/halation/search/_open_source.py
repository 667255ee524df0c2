"""`open_source`: a folder of pictures, JSON Lines, text, tar shards or a dataset as a `Source`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from halation._errors import InputError, one_of
from halation._files import Location, path_below, read_jsonl, read_lines
from halation.data import PICTURE_SUFFIXES, recognise
from halation.encoders import Model
from halation.search._answers import Side
from halation.search._source import (
    PictureLocation,
    Source,
    SourceItem,
    check_unique,
    file_stamp,
    one_line,
    text_stamp,
    to_utf8,
)
from halation.search._source_dataset import dataset_source
from halation.search._source_tar import tar_source

__all__ = ["SIDES", "open_source"]

SIDES = ("auto", "images", "captions", "both")
_FILE_KEYS = ("image", "file", "file_name", "filename", "image_id")


def open_source(
    path: str | os.PathLike[str],
    model: Model,
    *,
    side: str = "auto",
    split: str | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Source:
    """The collection at `path`, whatever its kind.

    side    "images" or "captions"; "auto" and "both": all that it has
    split   of a dataset; None: all splits
    root    the folder that holds the pictures of a JSON Lines file; None: the file's folder
    """
    one_of(side, SIDES, "side")
    file = Path(path)
    if not file.exists():
        raise InputError(
            "does not exist", path=file, remedy="name a folder of pictures, a .jsonl, .txt or .tar, or a dataset"
        )
    source = _opened(file, model, split, None if root is None else Path(root))
    wanted = ("images", "captions") if side in ("auto", "both") else (side,)
    problems = list(source.problems)
    writable = {name: _drop_unwritable(items, problems) for name, items in source.sides.items() if name in wanted}
    sides = {name: items for name, items in writable.items() if items}
    if not sides:
        have = " and ".join(name for name, items in source.sides.items() if items) or "nothing to embed"
        raise InputError(f"has no {side if side in ('images', 'captions') else 'items'}; it has {have}", path=file)
    return Source(source.name, source.roots, sides, tuple(problems), source.stores, source.notes, source.split)


def _opened(file: Path, model: Model, split: str | None, root: Path | None) -> Source:
    if file.is_dir():
        try:
            recognise(file)
        except InputError:
            if split is not None:
                raise
        else:
            return dataset_source(file, model, split)
        shards = sorted(file.glob("*.tar"))
        return tar_source(shards, file) if shards else _pictures(file)
    if split is not None:
        raise InputError(f"has no splits (split={split!r}); only a dataset's folder has", path=file)
    kinds = {
        ".jsonl": lambda: _jsonl(file, root),
        ".txt": lambda: _text(file),
        ".tar": lambda: tar_source([file], file),
    }
    if file.suffix.lower() in kinds:
        return kinds[file.suffix.lower()]()
    if file.suffix.lower() in PICTURE_SUFFIXES:
        raise InputError(
            "is a single picture", path=file, remedy="name its folder, or search by it with `halation search`"
        )
    compressed = file.name.endswith((".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz"))
    more = "; decompress it first (gunzip), so that single members can be read" if compressed else ""
    raise InputError(
        f"is not recognised{more}; halation embeds folders of pictures, .jsonl, .txt, .tar, datasets", path=file
    )


def _drop_unwritable(items: Sequence[SourceItem], problems: list[tuple[str, str]]) -> list[SourceItem]:
    """The items whose names UTF-8 can write; the others are added to `problems`."""
    kept = []
    for item in items:
        name = item.id if item.location is None else f"{item.id} ({item.location.name})"
        if to_utf8(name) == name:
            kept.append(item)
        else:
            problems.append((to_utf8(item.id), f"{to_utf8(name)} has a name that is not UTF-8; rename it"))
    return kept


def _pictures(folder: Path) -> Source:
    """Every picture below a folder; hidden files and folders are left out."""
    root, items, problems = Path(os.path.realpath(folder)), [], []
    for name in _pictures_below(root):
        path = root / name
        if path.is_symlink() and not _stays_below(path, root):
            problems.append((to_utf8(name), f"{path} is a link that leaves {root}; only files below it are read"))
        else:
            items.append(SourceItem(name, file_stamp(path), location=PictureLocation(0, name)))
    if not items:
        raise InputError(
            f"holds no picture ({', '.join(sorted(PICTURE_SUFFIXES))}), no .tar shard and no known dataset", path=folder
        )
    return Source(str(folder), (root,), {"images": items}, tuple(problems))


def _pictures_below(root: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(root):  # links to folders are not followed
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for name in sorted(files):
            if name[0] != "." and os.path.splitext(name)[1].lower() in PICTURE_SUFFIXES:  # noqa: PTH122
                yield Path(parent, name).relative_to(root).as_posix()


def _stays_below(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)


def _text(file: Path) -> Source:
    name = to_utf8(file.name)
    items = [SourceItem(f"{name}:{n}", text_stamp(line), (one_line(line),)) for n, line in read_lines(file)]
    if not items:
        raise InputError("is empty", path=file, remedy="write one caption on each line")
    return Source(str(file), (), {"captions": items})


def _jsonl(file: Path, root: Path | None) -> Source:
    if root is not None and not root.is_dir():
        raise InputError("is not a folder", path=root, remedy="name the folder the pictures are below", argument="root")
    top = Path(os.path.realpath(root or file.parent))
    folders = [top, top / "images"] if root is None and (top / "images").is_dir() else [top]
    images: list[tuple[str, SourceItem]] = []
    captions: list[tuple[str, SourceItem]] = []
    for number, row in read_jsonl(file):
        line = f"{file} line {number}"
        name, texts = _file_of(row, line), _captions_of(row, line)
        item_id = _id_of(row, line) or name or to_utf8(f"{file.name}:{number}")
        if name is not None:
            images.append((line, _image_item(item_id, name, texts, folders, line)))
        elif not texts:
            raise InputError(f'{line}: neither "image" nor "caption"; each line is {{"image": …, "captions": […]}}')
        single = name is None and len(texts) == 1
        for k, text in enumerate(texts):
            captions.append((line, SourceItem(item_id if single else f"{item_id}#{k}", text_stamp(text), (text,))))
    if not images and not captions:
        raise InputError("is empty", path=file, remedy="write an image with its captions, or a caption, on each line")
    both: dict[Side, list[SourceItem]] = {
        "images": check_unique(images, "image"),
        "captions": check_unique(captions, "caption"),
    }
    check_unique([*images, *captions], "the id")  # one id, one item: search finds both sides by it
    return Source(str(file), (top,) if images else (), both)


def _image_item(id: str, name: str, captions: tuple[str, ...], folders: list[Path], line: str) -> SourceItem:  # noqa: A002
    top = folders[0]
    if Path(name).is_absolute():
        if not Path(os.path.realpath(name)).is_relative_to(top):
            raise InputError(f"{line}: {name} is not below {top}", remedy="name its folder", argument="root")
        path = Path(name)
        below = Path(os.path.realpath(path)).relative_to(top).as_posix()
    else:
        below = path_below(name, Location(line))
        path = next((folder / below for folder in folders if (folder / below).exists()), folders[0] / below)
        below = path.relative_to(top).as_posix()
    return SourceItem(id, file_stamp(path), captions, PictureLocation(0, below))


def _id_of(row: dict[str, Any], line: str) -> str | None:
    value = row.get("id")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise InputError(f'{line}: "id" is {value!r}; give a text or a whole number, or leave it out')
    return to_utf8(str(value))


def _file_of(row: dict[str, Any], line: str) -> str | None:
    key = next((key for key in _FILE_KEYS if row.get(key) is not None), None)
    if key is None:
        return None
    if not isinstance(row[key], str) or not row[key]:
        raise InputError(f'{line}: "{key}" is {row[key]!r}; it names the picture\'s file')
    return to_utf8(row[key])


def _captions_of(row: dict[str, Any], line: str) -> tuple[str, ...]:
    value = row.get("captions", row.get("caption", []))
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{line}: "captions" must be a list of texts […], not {str(value)[:60]!r}')
    return tuple(one_line(text) for text in texts if text.strip())
