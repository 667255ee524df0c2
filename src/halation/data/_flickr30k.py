"""Flickr30K: Karpathy's JSON, or a JSONL file for each split."""

from __future__ import annotations

import os
from pathlib import Path

from halation._errors import InputError
from halation.data._jsonl import read_jsonl
from halation.data._karpathy import read_karpathy
from halation.data._truth import Truth

__all__ = ["read_flickr30k"]

_SPLITS = ("train", "val", "test")


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
    if source.stem in _SPLITS and source.stem != split:
        raise InputError(f"{source} is the split {source.stem!r}, not {split!r}; name the other file, or the folder")
    return read_jsonl(source).replace(name=f"flickr30k-{split}")
