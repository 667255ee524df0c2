"""Folders of precomputed features as VSE++ and SCAN publish them: `f30k_precomp`, `coco_precomp`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from halation._errors import InputError
from halation._files import read_lines, read_npy
from halation.data._features import FeatureArray, FeatureStore
from halation.data._truth import Truth

__all__ = ["read_precomp", "splits"]

_USUAL = 5  # captions an image


def splits(folder: Path) -> tuple[str, ...]:
    """Splits with both files, `{split}_ims.npy` and `{split}_caps.txt`."""
    names = [path.name.removesuffix("_ims.npy") for path in sorted(folder.glob("*_ims.npy"))]
    return tuple(name for name in names if (folder / f"{name}_caps.txt").is_file())


def read_precomp(folder: Path, split: str) -> tuple[Truth, FeatureStore]:
    """Truth and features of one split; captions stand in order, the same number for each image.

    Some of these files hold a row for each *caption*, every image five times over. Where that is so (as many rows as
    captions, and rows alike by fives) each image is taken once: five copies of an image would be five answers.
    """
    images, texts = folder / f"{split}_ims.npy", folder / f"{split}_caps.txt"
    array = read_npy(images)
    captions: list[str] = []
    for number, line in read_lines(texts):  # which leaves blank lines out
        if number != len(captions) + 1:
            raise InputError(
                f"{texts} line {number - 1} is blank; captions belong to rows by their order: give it a text"
            )
        captions.append(line.strip())
    if array.ndim not in (2, 3) or not len(array) or not captions:
        raise InputError(f"{images} has shape {array.shape} and {texts} {len(captions)} captions; features are (n, …)")
    each, step = _captions_per_image(array, len(captions), images, texts)
    index = np.arange(0, len(array), step)
    truth = Truth.from_captions(captions, np.repeat(np.arange(len(index)), each), name=f"{folder.name}-{split}")
    rows = FeatureArray(array, index=None if step == 1 else index)
    pooled, local = (rows, None) if array.ndim == 2 else (None, rows)
    return truth, FeatureStore(pooled, local, source=str(images))


def _captions_per_image(array: Any, n_captions: int, images: Path, texts: Path) -> tuple[int, int]:
    """How many captions an image has, and how many rows."""
    if n_captions == len(array):
        return (_USUAL, _USUAL) if _repeated(array) else (1, 1)
    if n_captions % len(array):
        raise InputError(
            f"{images} has {len(array)} rows but {texts} {n_captions} captions; expected as many, or five for each row"
        )
    return n_captions // len(array), 1


def _repeated(array: Any) -> bool:
    """Whether rows are alike by fives; of a long file 2,000 fives from all over it are looked at."""
    if len(array) % _USUAL:
        return False
    fives = np.unique(np.linspace(0, len(array) // _USUAL - 1, 2000).astype(np.int64)) * _USUAL
    return all(bool((array[start : start + _USUAL] == array[start]).all()) for start in fives)
