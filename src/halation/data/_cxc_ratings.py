"""CxC's ratings of image–caption pairs: how well a caption fits an image, from 0 to 5, by people."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from halation._errors import InputError
from halation._files import read_lines
from halation.data._judgements import Judgements
from halation.data._truth import Truth
from halation.data._truth_input import positions

__all__ = ["read_cxc_ratings"]

_COLUMNS = ("caption", "image", "agg_score")


def read_cxc_ratings(base: Truth, path: str | os.PathLike[str]) -> Judgements:
    """The ratings of `sits_test.csv` (Parekh et al., EACL 2021) that are about the images and captions of `base`.

    base   COCO's captions with their integer ids, as in Karpathy's test split. Pairs that it lacks are left out
    path   a CSV file with the columns caption (COCO_val2014:sentid:732091), image (COCO_val2014_000000365325.jpg) and
           agg_score (0 to 5, the mean of several people)
    """
    path = Path(path)
    image_at, caption_at = positions(base.image_ids), positions(base.caption_ids)
    lines = read_lines(path)
    header = next(csv.reader([next(lines, (1, ""))[1]]), [])
    if missing := [name for name in _COLUMNS if name not in header]:
        raise InputError(f"line 1 has no column {missing[0]}; CxC's files have {', '.join(_COLUMNS)}", path=path)
    columns = [header.index(name) for name in _COLUMNS]
    ratings: dict[tuple[int, int], float] = {}
    for number, line in lines:
        caption, image, rating = _parse(line, columns, number, path)
        if image in image_at and caption in caption_at:
            ratings[image_at[image], caption_at[caption]] = rating
    if not ratings:
        raise InputError("has no rating of these images and captions; is this COCO's Karpathy test split?", path=path)
    return Judgements(
        base=base,
        pairs=np.array(list(ratings), dtype=np.int64),
        scores=np.array(list(ratings.values()), dtype=np.float64)[:, None],
        lowest=0.0,
        highest=5.0,
        name="cxc-ratings",
    )


def _parse(line: str, columns: list[int], number: int, path: Path) -> tuple[str, str, float]:
    """(caption id, image id, rating) of one line."""
    fields = next(csv.reader([line]), [])
    try:
        caption, image, rating = (fields[column] for column in columns)
        ids = str(int(caption.rsplit(":", 1)[-1])), str(int(image.removesuffix(".jpg").rsplit("_", 1)[-1]))
        value = float(rating)
    except (IndexError, ValueError):
        problem = f"line {number} is not a caption, an image and a rating; drop the damaged line"
        raise InputError(problem, path=path) from None
    if not 0 <= value <= 5:
        raise InputError(f"line {number} has the rating {rating}; ratings are from 0 to 5", path=path)
    return *ids, value
