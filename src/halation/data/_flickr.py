"""Flickr8k and Flickr30K: captions and splits."""

from __future__ import annotations

import os
import re
from pathlib import Path

from halation._errors import InputError, one_of
from halation._files import read_lines
from halation.data._coco import read_karpathy
from halation.data._jsonl import read_jsonl
from halation.data._truth import Truth
from halation.data._truth_builder import TruthBuilder

__all__ = ["TOKENS", "read_flickr8k", "read_flickr30k"]

TOKENS = "Flickr8k.token.txt"
_LISTS = {name: f"Flickr_8k.{name}Images.txt" for name in ("train", "dev", "test")}
_GHOST = re.compile(r"\.jpg\.\d+$")  # five lines of the published file name 2258277193_586949ec62.jpg.1: no such image


def read_flickr8k(folder: str | os.PathLike[str], split: str = "test") -> Truth:
    """Flickr8k (Hodosh et al., JAIR 2013): `Flickr8k.token.txt` and the lists `Flickr_8k.{train,dev,test}Images.txt`.

    Images stand in the order of the list; `split="all"` takes every image of the token file in its order. Captions
    keep their names, "image.jpg#0" … "image.jpg#4".
    """
    root = Path(folder)
    one_of(split, (*_LISTS, "all"), "split of Flickr8k")
    captions = _tokens(root / TOKENS)
    ghosts = [image for image in captions if _GHOST.search(image)]
    gathered = TruthBuilder()
    if split == "all":
        wanted = [(f"{root / TOKENS}", image) for image in captions if image not in ghosts]
    else:
        wanted = [(f"{root / _LISTS[split]} line {n}", line.strip()) for n, line in read_lines(root / _LISTS[split])]
    for where, image in wanted:
        if image not in captions:
            raise InputError(f"{where}: {image} has no caption in {root / TOKENS}; take it off the list")
        gathered.add(where, image, list(captions[image].values()), list(captions[image]))
    truth = gathered.truth(str(root), f"flickr8k-{split}")
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
        if not (tab and mark and image and index.isdecimal()):
            raise InputError(f'{path} line {number}: expected "image.jpg#0, tab, caption", found {line[:60]!r}')
        if name in captions.setdefault(image, {}):
            raise InputError(f"{path} line {number}: {name} occurs twice; drop one of the lines")
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
        found = next((file for file in candidates if file.is_file()), None)
        if found is None:
            raise InputError(f"{source} holds neither {candidates[0].name} nor {candidates[1].name}; name the file")
        source = found
    if source.suffix != ".jsonl":
        return read_karpathy(source, split)
    if source.stem in _SPLITS_30K and source.stem != split:
        raise InputError(f"{source} is the split {source.stem!r}, not {split!r}; name the other file, or the folder")
    return read_jsonl(source).replace(name=f"flickr30k-{split}")
