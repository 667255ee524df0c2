"""Parts of a truth: a fold of it, the queries that can be answered, its fingerprint."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from halation._arrays import Array, IntArray, as_indices

if TYPE_CHECKING:
    from halation.data._truth import Direction, Truth

__all__ = ["answerable", "fingerprint", "subset"]

_WAYS: tuple[Direction, Direction] = ("i2t", "t2i")


def answerable(truth: Truth) -> Truth:
    """The truth with only those queries that have a positive in the gallery."""
    queries = {way: truth.queries(way) for way in _WAYS}
    kept = {way: rows[truth.n_positives(way)[rows] > 0] for way, rows in queries.items()}
    dropped = {way: len(queries[way]) - len(kept[way]) for way in _WAYS}
    notes = [f"{count:,} {way} queries without a positive are left out" for way, count in dropped.items() if count]
    return truth.replace(
        image_queries=kept["i2t"] if dropped["i2t"] else truth.image_queries,
        caption_queries=kept["t2i"] if dropped["t2i"] else truth.caption_queries,
        query_notes=(*truth.query_notes, *notes),
    )


def subset(truth: Truth, images: Array, captions: Array | None) -> Truth:
    """Some images and their captions, or the given captions."""
    rows = as_indices(images, truth.n_images, "images")
    columns = truth.captions_of(rows) if captions is None else as_indices(captions, truth.n_captions, "captions")
    part = truth.replace(
        image_ids=tuple(truth.image_ids[k] for k in rows),
        caption_ids=tuple(truth.caption_ids[k] for k in columns),
        i2t=truth.i2t[rows][:, columns],
        t2i=truth.t2i[columns][:, rows],
        image_queries=_renumber(truth.image_queries, rows, truth.n_images),
        caption_queries=_renumber(truth.caption_queries, columns, truth.n_captions),
        captions=None if truth.captions is None else tuple(truth.captions[k] for k in columns),
        image_of=_belongs(truth, rows, columns),
        classes=None if truth.classes is None else truth.classes[rows],
        class_names=truth.class_names,
        annotated=None if truth.annotated is None else truth.annotated[rows],
        # a smaller gallery may lack a positive although the source is right
        lost_i2t=truth.lost("i2t")[rows] if len(columns) == truth.n_captions else None,
        lost_t2i=truth.lost("t2i")[columns] if len(rows) == truth.n_images else None,
    )
    return part if truth.image_queries is None and truth.caption_queries is None else part.answerable()


def _belongs(truth: Truth, rows: IntArray, columns: IntArray) -> IntArray | None:
    if truth.image_of is None:
        return None
    position = np.full(truth.n_images, -1)
    position[rows] = np.arange(len(rows))
    image_of = position[truth.image_of[columns]]
    # captions chosen apart from the images need not belong to one of them, nor leave each image a caption
    return image_of if image_of.min(initial=0) >= 0 and len(np.unique(image_of)) == len(rows) else None


def _renumber(queries: IntArray | None, kept: IntArray, count: int) -> IntArray | None:
    if queries is None:
        return None
    is_query = np.zeros(count, dtype=np.bool_)
    is_query[queries] = True
    return np.flatnonzero(is_query[kept])


def fingerprint(truth: Truth) -> str:
    """sha256 of ids, texts, gains, threshold, queries and classes, these in the order of their names."""
    names = None if truth.class_names is None else [str(name) for name in truth.class_names]
    order = None if names is None else sorted(range(len(names)), key=names.__getitem__)
    texts = [truth.image_ids, truth.caption_ids, truth.threshold, truth.captions, names and sorted(names)]
    digest = hashlib.sha256(json.dumps(texts).encode())
    for way, gains in zip(_WAYS, (truth.i2t, truth.t2i), strict=True):
        for array in (gains.indptr, gains.indices, truth.queries(way), truth.lost(way)):
            digest.update(len(array).to_bytes(8, "little") + array.astype("<i8").tobytes())
        digest.update(gains.data.astype("<f4").tobytes())
    classes = None if truth.classes is None else truth.classes[:, order]
    for number, array in enumerate((truth.image_of, classes, truth.annotated)):
        if array is not None:  # the number tells which; their shapes follow from what was hashed before
            digest.update(bytes([number]) + array.astype("<i8" if number == 0 else "u1").tobytes())
    return digest.hexdigest()
