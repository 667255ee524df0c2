"""TREC run and qrels files, so that ranx, ir_measures and trec_eval judge the same rankings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TextIO

import numpy as np

from halation._arrays import Array, FloatArray
from halation._errors import InputError, one_of
from halation._files import write_text
from halation._progress import Progress, silent
from halation._storage import publish_file
from halation.data import Direction, Truth
from halation.evaluation._sources import Rankings, ScoreMatrix, ScoreSource, check_shape

__all__ = ["trec_ids", "write_qrels", "write_run"]

_BLOCK = 256


def write_run(
    path: str | os.PathLike[str],
    scores: Array | Rankings,
    truth: Truth,
    direction: str = "i2t",
    *,
    depth: int | None = 1000,
    tag: str = "halation",
    progress: Progress = silent,
) -> None:
    """Write the rankings as a TREC run, `query Q0 item rank score tag`, best first; `depth=None` writes them whole.

    Among equal scores the earlier item comes first, as in `asp(ties="first")`.
    """
    one_of(direction, ("i2t", "t2i"), "direction")
    if depth is not None and depth < 1:
        raise InputError(f"depth must be at least 1, not {depth}")
    if not tag or any(character.isspace() for character in tag):
        raise InputError(f"the tag {tag!r} must be a word without white space")
    source: ScoreSource = scores if isinstance(scores, Rankings) else ScoreMatrix(scores)
    check_shape(source, truth)
    query_ids, item_ids, queries = truth.image_ids, truth.caption_ids, truth.queries("i2t")
    if direction == "t2i":
        query_ids, item_ids, queries = item_ids, query_ids, truth.queries("t2i")
    query_names, names = trec_ids(query_ids), trec_ids(item_ids)
    with publish_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for start in range(0, len(queries), _BLOCK):
            block = queries[start : start + _BLOCK]
            rows = source.i2t(block) if direction == "i2t" else source.t2i(block)
            for query, row in zip(block, rows, strict=True):
                _write_query(file, query_names[query], row, names, depth, tag)
            progress(f"{direction} run", start + len(block), len(queries))


def _write_query(file: TextIO, query: str, row: FloatArray, names: list[str], depth: int | None, tag: str) -> None:
    order = np.argsort(-row, kind="stable")[:depth]
    file.writelines(
        f"{query} Q0 {names[item]} {rank} {row[item]!s} {tag}\n" for rank, item in enumerate(order, start=1)
    )


_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f]")


def trec_ids(ids: Iterable[str | int]) -> list[str]:
    """Ids without white space, as TREC files need them: a space becomes %20. Different ids stay different.

    >>> trec_ids(["my dog.jpg#0", 391895, "100%"])
    ['my%20dog.jpg#0', '391895', '100%25']
    """
    return [_UNSAFE.sub(lambda bad: "".join(f"%{byte:02X}" for byte in bad[0].encode()), str(name)) for name in ids]


def write_qrels(
    truth: Truth, path: str | os.PathLike[str], direction: Direction, *, scale: float | None = None
) -> None:
    """Write the positives of every query as TREC qrels, `query 0 item grade`.

    The grade is 1. With `scale` it is the gain times `scale`, rounded to TREC's whole numbers, and pairs that round to
    0 are left out. For example, scale=9 keeps the gains of three experts' scores from 1 to 4 apart.
    """
    if scale is not None and not scale > 0:
        raise InputError(f"scale is {scale}; it must be above 0")
    images, captions = trec_ids(truth.image_ids), trec_ids(truth.caption_ids)
    query_names, names = (images, captions) if direction == "i2t" else (captions, images)
    lines = []
    queries = truth.queries(direction)
    for start in range(0, len(queries), _BLOCK):
        rows = queries[start : start + _BLOCK]
        grades = truth.positives(direction, rows).astype(np.int64)
        if scale is not None:
            grades = np.rint(truth.gains(direction, rows) * scale).astype(np.int64)
        lines += [
            f"{query_names[rows[query]]} 0 {names[item]} {grades[query, item]}\n"
            for query, item in zip(*np.nonzero(grades), strict=True)
        ]
    write_text(path, "".join(lines))
