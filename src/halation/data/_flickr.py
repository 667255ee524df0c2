"""Flickr8k and Flickr30K: captions and splits."""

from __future__ import annotations

import os
import re
from pathlib import Path

from halation._errors import InputError, one_of
from halation._files import Location, read_lines
from halation.data._coco import read_karpathy
from halation.data._jsonl import read_jsonl
from halation.data._truth import Truth
from halation.data._truth_builder import TruthBuilder

__all__ = ["TOKENS", "read_flickr8k", "read_flickr30k"]

TOKENS = "Flickr8k.token.txt"
_LISTS = {name: f"Flickr_8k.{name}Images.txt" for name in ("train", "dev", "test")}
_GHOST = re.compile(
    r"\.jpg\.\d+$"
)  # five lines of the published file name 2258277193_586949ec62.jpg.1, which does not exist


def read_flickr8k(folder: str | os.PathLike[str], split: str = "test") -> Truth:
    """Flickr8k (Hodosh et al., JAIR 2013): `Flickr8k.token.txt` and the lists `Flickr_8k.{train,dev,test}Images.txt`.

    Images are in the order of the list; `split="all"` takes every image of the token file in its order. The ids of
    captions are the file's, "image.jpg#0" … "image.jpg#4".
    """
    root = Path(folder)
    one_of(split, (*_LISTS, "all"), "split of Flickr8k")
    captions = _tokens(root / TOKENS)
    ghosts = [image for image in captions if _GHOST.search(image)]
    gathered = TruthBuilder()
    if split == "all":
        wanted = [(Location(root / TOKENS), image) for image in captions if image not in ghosts]
    else:
        images = root / _LISTS[split]
        wanted = [(Location(images, f"line {number}"), line.strip()) for number, line in read_lines(images)]
    for location, image in wanted:
        if image not in captions:
            raise location.error(f"{image} has no caption in {TOKENS}", "take it off the list")
        gathered.add(location, image, list(captions[image].values()), list(captions[image]))
    truth = gathered.truth(root, f"flickr8k-{split}")
    if split == "all" and ghosts:
        left_out = sum(len(captions[image]) for image in ghosts)
        return truth.replace(
            notes=(f"{left_out} captions of {', '.join(ghosts)}, which is not an image, were left out",)
        )
    return truth


def _tokens(path: Path) -> dict[str, dict[str, str]]:
    """Image → caption name → caption."""
    captions: dict[str, dict[str, str]] = {}
    for number, line in read_lines(path):
        name, tab, text = line.partition("\t")
        image, mark, index = name.rpartition("#")
        location = Location(path, f"line {number}")
        if not (tab and mark and image and index.isdecimal()):
            raise location.error(f"{line[:60]!r} is not a caption", 'write "image.jpg#0, tab, caption"')
        if name in captions.setdefault(image, {}):
            raise location.error(f"{name} occurs twice", "drop one of the lines")
        captions[image][name] = text
    return captions


_SPLITS_30K = ("train", "val", "test")


def read_flickr30k(path: str | os.PathLike[str], split: str = "test") -> Truth:
    """Flickr30K (Young et al., TACL 2014), 1,000 test images with five captions each.

    `path` is dataset_flickr30k.json, a JSONL file that holds the split, or a folder with one of them.
    """
    source = Path(path)
    if source.is_dir():
        candidates = [source / "dataset_flickr30k.json", source / f"{split}.jsonl"]
        file = next((file for file in candidates if file.is_file()), None)
        if file is None:
            problem = f"holds neither {candidates[0].name} nor {candidates[1].name}"
            raise InputError(problem, path=source, remedy="name the file")
        source = file
    if source.suffix != ".jsonl":
        return read_karpathy(source, split)
    if source.stem in _SPLITS_30K and source.stem != split:
        problem = f"is the split {source.stem!r}, not {split!r}"
        raise InputError(problem, path=source, remedy="name the other file, or the folder")
    return read_jsonl(source).replace(name=f"flickr30k-{split}")
