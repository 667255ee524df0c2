"""TREC run files, which ranx, ir_measures and trec_eval read (for qrels: `halation.data.write_qrels`)."""

from __future__ import annotations

import os
from typing import TextIO

import numpy as np

from halation._arrays import Array, FloatArray
from halation._errors import InputError, one_of
from halation._progress import Progress, silent
from halation._storage import publish_file
from halation.data import Truth, trec_ids
from halation.evaluation._sources import Matrix, Rankings, Source, check_shape

__all__ = ["write_run"]

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
    source: Source = scores if isinstance(scores, Rankings) else Matrix(scores)
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
