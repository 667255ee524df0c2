"""Folders of precomputed features as VSE++ and SCAN publish them: `f30k_precomp`, `coco_precomp`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from halation._errors import InputError
from halation._files import Location, read_lines, read_npy
from halation.data._features import FeatureArray, FeatureStore
from halation.data._truth import Truth

__all__ = ["read_precomp", "splits"]

_USUAL = 5  # captions per image


def splits(folder: Path) -> tuple[str, ...]:
    """Splits with both files, `{split}_ims.npy` and `{split}_caps.txt`."""
    names = [path.name.removesuffix("_ims.npy") for path in sorted(folder.glob("*_ims.npy"))]
    return tuple(name for name in names if (folder / f"{name}_caps.txt").is_file())


def read_precomp(folder: Path, split: str) -> tuple[Truth, FeatureStore]:
    """Truth and features of one split; captions are in the order of the images, the same number for each.

    Some of these files have a row for each *caption*, so every image five times. If there are as many rows as captions
    and each five in a row are equal, an image is taken once: five copies of it would be five answers.
    """
    images, texts = folder / f"{split}_ims.npy", folder / f"{split}_caps.txt"
    array = read_npy(images)
    captions: list[str] = []
    for number, line in read_lines(texts):  # which leaves blank lines out
        if number != len(captions) + 1:
            problem = "blank, and captions belong to rows by their order"
            raise Location(texts, f"line {number - 1}").error(problem, "give it a text")
        captions.append(line.strip())
    if array.ndim not in (2, 3) or not len(array) or not captions:
        problem = f"has shape {array.shape} and {texts.name} {len(captions)} captions"
        raise InputError(problem, path=images, remedy="features are (n, …), with captions")
    each, step = _captions_per_image(array, len(captions), images, texts)
    index = np.arange(0, len(array), step)
    truth = Truth.from_captions(captions, np.repeat(np.arange(len(index)), each), name=f"{folder.name}-{split}")
    rows = FeatureArray(array, index=None if step == 1 else index)
    pooled, local = (rows, None) if array.ndim == 2 else (None, rows)
    return truth, FeatureStore(pooled, local, source=str(images))


def _captions_per_image(array: Any, n_captions: int, images: Path, texts: Path) -> tuple[int, int]:
    """(captions, rows) per image."""
    if n_captions == len(array):
        return (_USUAL, _USUAL) if _repeated(array) else (1, 1)
    if n_captions % len(array):
        problem = f"has {len(array)} rows but {texts.name} {n_captions} captions"
        raise InputError(problem, path=images, remedy="give one caption per row, or the same number for each")
    return n_captions // len(array), 1


def _repeated(array: Any) -> bool:
    """Whether each five rows are equal; of a long file, 2,000 fives from all over it are compared."""
    if len(array) % _USUAL:
        return False
    fives = np.unique(np.linspace(0, len(array) // _USUAL - 1, 2000).astype(np.int64)) * _USUAL
    return all(bool((array[start : start + _USUAL] == array[start]).all()) for start in fives)
