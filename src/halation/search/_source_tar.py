"""Tar shards as people write them for training (WebDataset): 0001.jpg, 0001.txt or 0001.json, one after the other.

Nothing is unpacked: members are read where they lie, and a member's name never becomes a path.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halation._errors import InputError
from halation._files import path_below
from halation.data import PICTURE_SUFFIXES
from halation.search._answers import Side
from halation.search._entries import Entry, PictureLocation, Source, one_line, plain, stamp_of

__all__ = ["tar_source"]

_LONGEST = 1 << 20  # bytes of a member that holds captions
_LARGEST = 1 << 28  # bytes of a picture


def tar_source(shards: Sequence[Path], source: Path) -> Source:
    """The pictures of some tar files, with the captions beside them."""
    roots, problems = [Path(os.path.realpath(shards[0].parent))], list[tuple[str, str]]()
    images: dict[str, Entry] = {}
    captions: dict[str, Entry] = {}
    for shard in shards:
        if not Path(os.path.realpath(shard)).is_relative_to(roots[0]):
            problems.append((shard.name, f"{shard} is a link that leaves {roots[0]}; only what lies below it is read"))
            continue
        if plain(shard.name) != shard.name:
            problems.append((plain(shard.name), f"{plain(str(shard))}: its name is not UTF-8; rename it"))
            continue
        pictures, said = _scan(shard, problems)
        for key, member in pictures.items():
            called = f"{shard.name}/{member.name}"
            if called in images:
                problems.append((called, f"{shard}: {member.name} comes twice; the first is kept"))
                continue
            texts = said.get(key, ())
            place = PictureLocation(0, shard.name, member.offset_data, member.size)
            images[called] = Entry(called, f"{member.size}-{member.mtime}-{member.offset_data}", texts, place)
            for k, text in enumerate(texts):
                captions[f"{called}#{k}"] = Entry(f"{called}#{k}", stamp_of(text), (text,))
        for key in [key for key in said if key not in pictures]:  # captions without a picture
            for k, text in enumerate(said[key]):
                captions[f"{shard.name}/{key}#{k}"] = Entry(f"{shard.name}/{key}#{k}", stamp_of(text), (text,))
    if not images and not captions:
        why = f" ({problems[0][1]})" if problems else ""
        raise InputError(
            f"holds no picture and no caption{why}; shards hold 0001.jpg with 0001.txt or .json", path=source
        )
    lists: dict[Side, list[Entry]] = {"images": list(images.values()), "captions": list(captions.values())}
    return Source(str(source), tuple(roots), lists, tuple(problems))


def _scan(
    shard: Path, problems: list[tuple[str, str]]
) -> tuple[dict[str, tarfile.TarInfo], dict[str, tuple[str, ...]]]:
    """By key: the picture's member, and the captions. What cannot be used is added to `problems`."""
    pictures: dict[str, tarfile.TarInfo] = {}
    said: dict[str, tuple[str, ...]] = {}
    total = shard.stat().st_size
    try:
        with tarfile.open(shard, "r:") as tar:
            for member in tar:
                try:
                    _take(tar, member, total, pictures, said)
                except InputError as error:
                    problems.append((plain(f"{shard.name}/{member.name}"), plain(f"{shard}: {error}")))
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        if not pictures and not said:
            raise InputError(f"is no readable tar file ({error}); was it written completely?", path=shard) from None
        problems.append((shard.name, f"{shard} ends early or is damaged ({error}); what comes before is used"))
    return pictures, said


def _take(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    total: int,
    pictures: dict[str, tarfile.TarInfo],
    said: dict[str, tuple[str, ...]],
) -> None:
    folder, _, last = member.name.rpartition("/")
    if not member.isreg() or member.issparse() or last.startswith("."):
        if member.issym() or member.islnk():
            raise InputError(f"{member.name} is a link; links are not followed")
        return
    path_below(member.name, "a member")
    if plain(member.name) != member.name:
        raise InputError(f"{plain(member.name)}: its name is not UTF-8; rename it")
    stem, suffix = os.path.splitext(last)  # noqa: PTH122
    key, suffix = f"{folder}/{stem}" if folder else stem, suffix.lower()
    if member.offset_data + member.size > total:
        raise InputError(f"{member.name} ends behind the end of the file; was it written completely?")
    if suffix in PICTURE_SUFFIXES:
        if member.size > _LARGEST:
            raise InputError(f"{member.name} has {member.size >> 20} MB; pictures have at most {_LARGEST >> 20}")
        if key in pictures:
            raise InputError(f"{member.name}: a second picture of {key}; the first is kept")
        pictures[key] = member
    elif suffix in (".txt", ".json"):
        if member.size > _LONGEST:
            raise InputError(f"{member.name} has {member.size} bytes; captions have at most {_LONGEST}")
        content = tar.extractfile(member)
        assert content is not None  # a regular file
        said[key] = tuple(dict.fromkeys((*said.get(key, ()), *_captions(content.read(), suffix, member.name))))


def _captions(content: bytes, suffix: str, name: str) -> tuple[str, ...]:
    try:
        text = content.decode("utf-8-sig")
        found: Any = json.loads(text) if suffix == ".json" else [text]
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise InputError(f"{name} is no readable {suffix[1:].upper()} in UTF-8") from None
    if isinstance(found, dict):
        found = found.get("captions", found.get("caption", []))
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InputError(f'{name}: "captions" must be a list of texts, or "caption" a text')
    return tuple(one_line(one) for one in found if one.strip())
