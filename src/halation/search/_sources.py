"""`open_source`: folders of pictures, JSON Lines, text, tar shards and datasets as one kind of collection."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from halation._errors import InputError, one_of
from halation._files import path_below, read_jsonl, read_lines
from halation.data import PICTURE_SUFFIXES, recognise
from halation.encoders import Model
from halation.search._answers import Side
from halation.search._entries import Entry, PictureLocation, Source, one_line, plain, stamp_of, stamp_of_file, unique
from halation.search._source_dataset import dataset_source
from halation.search._source_tar import tar_source

__all__ = ["SIDES", "open_source"]

SIDES = ("auto", "images", "captions", "both")
_FILE = ("image", "file", "file_name", "filename", "image_id")


def open_source(
    path: str | os.PathLike[str],
    model: Model,
    *,
    side: str = "auto",
    split: str | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Source:
    """What is to be embedded, by what `path` is. `side` "auto" or "both": everything the source has.

    split   of a dataset; None = all of it
    root    the folder the pictures of a JSON Lines file lie below; None = beside the file
    """
    one_of(side, SIDES, "side")
    file = Path(path)
    if not file.exists():
        raise InputError("does not exist; name a folder of pictures, a .jsonl, .txt or .tar, or a dataset", path=file)
    source = _opened(file, model, split, None if root is None else Path(root))
    wanted = ("images", "captions") if side in ("auto", "both") else (side,)
    problems = list(source.problems)
    named = {name: _in_utf8(found, problems) for name, found in source.entries.items() if name in wanted}
    entries = {name: found for name, found in named.items() if found}
    if not entries:
        have = " and ".join(name for name, found in source.entries.items() if found) or "nothing to embed"
        raise InputError(f"has no {side if side in ('images', 'captions') else 'items'}; it has {have}", path=file)
    return Source(source.name, source.roots, entries, tuple(problems), source.stores, source.notes, source.split)


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
        raise InputError("is one picture; name its folder, or search by it (`halation search`)", path=file)
    packed = file.name.endswith((".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz"))
    more = "; unpack the compression first (gunzip): single members are read from it" if packed else ""
    raise InputError(
        f"is not recognised{more}; halation embeds folders of pictures, .jsonl, .txt, .tar, datasets", path=file
    )


def _in_utf8(entries: Sequence[Entry], problems: list[tuple[str, str]]) -> list[Entry]:
    """The entries whose names can be written down; the others are added to `problems`, before any work is done."""
    kept = []
    for entry in entries:
        name = entry.id if entry.place is None else f"{entry.id} ({entry.place.name})"
        if plain(name) == name:
            kept.append(entry)
        else:
            problems.append((plain(entry.id), f"{plain(name)}: its name is not UTF-8; rename it"))
    return kept


def _pictures(folder: Path) -> Source:
    """Every picture below a folder; hidden files and folders are left out."""
    root, entries, problems = Path(os.path.realpath(folder)), [], []
    for name in _below(root):
        path = root / name
        if path.is_symlink() and not _stays(path, root):
            problems.append((plain(name), f"{path} is a link that leaves {root}; only what lies below it is read"))
        else:
            entries.append(Entry(name, stamp_of_file(path), place=PictureLocation(0, name)))
    if not entries:
        raise InputError(
            f"holds no picture ({', '.join(sorted(PICTURE_SUFFIXES))}), .tar shard or known dataset", path=folder
        )
    return Source(str(folder), (root,), {"images": entries}, tuple(problems))


def _below(root: Path) -> Iterator[str]:
    for here, folders, files in os.walk(root):  # links to folders are not followed
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for name in sorted(files):
            if name[0] != "." and os.path.splitext(name)[1].lower() in PICTURE_SUFFIXES:  # noqa: PTH122
                yield Path(here, name).relative_to(root).as_posix()


def _stays(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)


def _text(file: Path) -> Source:
    called = plain(file.name)
    entries = [Entry(f"{called}:{n}", stamp_of(line), (one_line(line),)) for n, line in read_lines(file)]
    if not entries:
        raise InputError("is empty; write one caption on each line", path=file)
    return Source(str(file), (), {"captions": entries})


def _jsonl(file: Path, root: Path | None) -> Source:
    if root is not None and not root.is_dir():
        raise InputError("is not a folder", path=root, remedy="name the folder the pictures are below", argument="root")
    top = Path(os.path.realpath(root or file.parent))
    folders = [top, top / "images"] if root is None and (top / "images").is_dir() else [top]
    images: list[tuple[str, Entry]] = []
    captions: list[tuple[str, Entry]] = []
    for number, row in read_jsonl(file):
        place = f"{file} line {number}"
        name, said = _file_of(row, place), _captions_of(row, place)
        called = _id_of(row, place) or name or plain(f"{file.name}:{number}")
        if name is not None:
            images.append((place, _image_entry(called, name, said, folders, top, place)))
        elif not said:
            raise InputError(f'{place}: neither "image" nor "caption"; each line is {{"image": …, "captions": […]}}')
        alone = name is None and len(said) == 1
        for k, text in enumerate(said):
            captions.append((place, Entry(called if alone else f"{called}#{k}", stamp_of(text), (text,))))
    if not images and not captions:
        raise InputError("is empty; each line is an image with its captions, or a caption", path=file)
    both: dict[Side, list[Entry]] = {"images": unique(images, "image"), "captions": unique(captions, "caption")}
    unique([*images, *captions], "the id")  # one id, one item: search finds both sides by it
    return Source(str(file), (top,) if images else (), both)


def _image_entry(called: str, name: str, said: tuple[str, ...], folders: list[Path], top: Path, place: str) -> Entry:
    if Path(name).is_absolute():
        if not Path(os.path.realpath(name)).is_relative_to(top):
            raise InputError(f"{place}: {name} is not below {top}", remedy="name its folder", argument="root")
        path = Path(name)
        below = Path(os.path.realpath(path)).relative_to(top).as_posix()
    else:
        below = path_below(name, place)
        path = next((folder / below for folder in folders if (folder / below).exists()), folders[0] / below)
        below = path.relative_to(top).as_posix()
    return Entry(called, stamp_of_file(path), said, PictureLocation(0, below))


def _id_of(row: dict[str, Any], place: str) -> str | None:
    said = row.get("id")
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, (str, int)) or not str(said).strip():
        raise InputError(f'{place}: "id" is {said!r}; it is a text or a whole number, or left out')
    return plain(str(said))


def _file_of(row: dict[str, Any], place: str) -> str | None:
    key = next((key for key in _FILE if row.get(key) is not None), None)
    if key is None:
        return None
    if not isinstance(row[key], str) or not row[key]:
        raise InputError(f'{place}: "{key}" is {row[key]!r}; it names the picture\'s file')
    return plain(row[key])


def _captions_of(row: dict[str, Any], place: str) -> tuple[str, ...]:
    said = row.get("captions", row.get("caption", []))
    texts = [said] if isinstance(said, str) else said
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{place}: "captions" must be a list of texts […], not {str(said)[:60]!r}')
    return tuple(one_line(text) for text in texts if text.strip())
