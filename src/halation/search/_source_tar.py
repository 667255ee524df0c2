"""Tar shards in the WebDataset layout: 0001.jpg with 0001.txt or 0001.json, one after the other.

Nothing is unpacked: members are read from the tar file, and a member's name never becomes a path.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halation._errors import InputError
from halation._files import Location, path_below
from halation.data import PICTURE_SUFFIXES
from halation.search._answers import Side
from halation.search._source import PictureLocation, Source, SourceItem, one_line, text_stamp, to_utf8

__all__ = ["tar_source"]

_MAX_CAPTIONS = 1 << 20  # bytes of a member that holds captions
_MAX_PICTURE = 1 << 28  # bytes


def tar_source(shards: Sequence[Path], source: Path) -> Source:
    """The pictures of some tar files, with the captions beside them."""
    roots, problems = [Path(os.path.realpath(shards[0].parent))], list[tuple[str, str]]()
    images: dict[str, SourceItem] = {}
    captions: dict[str, SourceItem] = {}
    for shard in shards:
        if not Path(os.path.realpath(shard)).is_relative_to(roots[0]):
            problems.append((shard.name, f"{shard} is a link that leaves {roots[0]}; only files below it are read"))
            continue
        if to_utf8(shard.name) != shard.name:
            problems.append((to_utf8(shard.name), f"{to_utf8(str(shard))} has a name that is not UTF-8; rename it"))
            continue
        pictures, captions_of = _scan(shard, problems)
        for key, member in pictures.items():
            name = f"{shard.name}/{member.name}"
            if name in images:
                problems.append((name, f"{shard}: {member.name} occurs twice; the first is kept"))
                continue
            texts = captions_of.get(key, ())
            location = PictureLocation(0, shard.name, member.offset_data, member.size)
            images[name] = SourceItem(name, f"{member.size}-{member.mtime}-{member.offset_data}", texts, location)
            for k, text in enumerate(texts):
                captions[f"{name}#{k}"] = SourceItem(f"{name}#{k}", text_stamp(text), (text,))
        for key in [key for key in captions_of if key not in pictures]:  # captions without a picture
            for k, text in enumerate(captions_of[key]):
                captions[f"{shard.name}/{key}#{k}"] = SourceItem(f"{shard.name}/{key}#{k}", text_stamp(text), (text,))
    if not images and not captions:
        why = f" ({problems[0][1]})" if problems else ""
        raise InputError(
            f"holds no picture and no caption{why}", path=source, remedy="a shard holds 0001.jpg with 0001.txt or .json"
        )
    lists: dict[Side, list[SourceItem]] = {"images": list(images.values()), "captions": list(captions.values())}
    return Source(str(source), tuple(roots), lists, tuple(problems))


def _scan(
    shard: Path, problems: list[tuple[str, str]]
) -> tuple[dict[str, tarfile.TarInfo], dict[str, tuple[str, ...]]]:
    """The picture and the captions of each key in a shard. Members that cannot be used are added to `problems`."""
    pictures: dict[str, tarfile.TarInfo] = {}
    captions_of: dict[str, tuple[str, ...]] = {}
    total = shard.stat().st_size
    try:
        with tarfile.open(shard, "r:") as tar:
            for member in tar:
                try:
                    _add_member(tar, member, total, pictures, captions_of)
                except InputError as error:
                    problems.append((to_utf8(f"{shard.name}/{member.name}"), to_utf8(f"{shard}: {error}")))
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        if not pictures and not captions_of:
            raise InputError(f"is not a readable tar file ({error}); was it written completely?", path=shard) from None
        problems.append((shard.name, f"{shard} ends early or is damaged ({error}); the part before is used"))
    return pictures, captions_of


def _add_member(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    total: int,
    pictures: dict[str, tarfile.TarInfo],
    captions_of: dict[str, tuple[str, ...]],
) -> None:
    folder, _, last = member.name.rpartition("/")
    if not member.isreg() or member.issparse() or last.startswith("."):
        if member.issym() or member.islnk():
            raise InputError(f"{member.name} is a link; links are not followed")
        return
    path_below(member.name, Location("a member"))
    if to_utf8(member.name) != member.name:
        raise InputError(f"{to_utf8(member.name)} has a name that is not UTF-8; rename it")
    stem, suffix = os.path.splitext(last)  # noqa: PTH122
    key, suffix = f"{folder}/{stem}" if folder else stem, suffix.lower()
    if member.offset_data + member.size > total:
        raise InputError(f"{member.name} goes past the end of the file; was it written completely?")
    if suffix in PICTURE_SUFFIXES:
        if member.size > _MAX_PICTURE:
            raise InputError(f"{member.name} has {member.size >> 20} MB; pictures have at most {_MAX_PICTURE >> 20}")
        if key in pictures:
            raise InputError(f"{member.name}: a second picture of {key}; the first is kept")
        pictures[key] = member
    elif suffix in (".txt", ".json"):
        if member.size > _MAX_CAPTIONS:
            raise InputError(f"{member.name} has {member.size} bytes; captions have at most {_MAX_CAPTIONS}")
        content = tar.extractfile(member)
        assert content is not None  # a regular file
        captions_of[key] = tuple(
            dict.fromkeys((*captions_of.get(key, ()), *_captions(content.read(), suffix, member.name)))
        )


def _captions(content: bytes, suffix: str, name: str) -> tuple[str, ...]:
    try:
        text = content.decode("utf-8-sig")
        value: Any = json.loads(text) if suffix == ".json" else [text]
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise InputError(f"{name} is not readable {suffix[1:].upper()} in UTF-8") from None
    if isinstance(value, dict):
        value = value.get("captions", value.get("caption", []))
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{name}: "captions" must be a list of texts, or "caption" a text')
    return tuple(one_line(text) for text in texts if text.strip())
