"""TREC qrels, so that trec_eval, ranx and ir_measures can judge the same rankings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import numpy as np

from halation._errors import InputError
from halation._files import write_text
from halation.data._truth import Direction, Truth
from halation.data._truth_checks import Id

__all__ = ["trec_ids", "write_qrels"]

_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f]")


def trec_ids(ids: Iterable[Id]) -> list[str]:
    """Ids as TREC files can hold them: white space is written as %20 and the like, different ids stay different.

    >>> trec_ids(["my dog.jpg#0", 391895, "100%"])
    ['my%20dog.jpg#0', '391895', '100%25']
    """
    return [_UNSAFE.sub(lambda bad: "".join(f"%{byte:02X}" for byte in bad[0].encode()), str(name)) for name in ids]


def write_qrels(
    truth: Truth, path: str | os.PathLike[str], direction: Direction, *, scale: float | None = None
) -> None:
    """Write "query 0 item grade" for every positive of the queries that are asked.

    The grade is 1; with `scale` it is the gain times `scale`, rounded (TREC's grades are whole numbers), and pairs that
    round to 0 are left out: three experts' scores from 1 to 4 are whole with scale=9.
    """
    if scale is not None and not scale > 0:
        raise InputError(f"scale is {scale}; it must be above 0")
    images, captions = trec_ids(truth.image_ids), trec_ids(truth.caption_ids)
    queries, items = (images, captions) if direction == "i2t" else (captions, images)
    lines = []
    asked = truth.queries(direction)
    for start in range(0, len(asked), 256):
        rows = asked[start : start + 256]
        grades = truth.positives(direction, rows).astype(np.int64)
        if scale is not None:
            grades = np.rint(truth.gains(direction, rows) * scale).astype(np.int64)
        lines += [f"{queries[rows[q]]} 0 {items[n]} {grades[q, n]}\n" for q, n in zip(*np.nonzero(grades), strict=True)]
    write_text(path, "".join(lines))
