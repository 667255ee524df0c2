"""COCO's extended positives: CxC and ECCV Caption, in which people judged pairs that had no annotation."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np

from halation._arrays import IntArray
from halation._errors import InputError, MissingExtra
from halation._files import read_json
from halation.data._truth import Truth
from halation.data._truth_input import Id, ones_at, positions

__all__ = ["read_cxc", "read_eccv"]


def read_cxc(base: Truth, source: str | os.PathLike[str] | None = None) -> Truth:
    """Crisscrossed Captions (Parekh et al., EACL 2021): 35,585 positives; 24,972 of the 25,000 captions are queries.

    `base` is the COCO 5K test split with COCO's ids; its texts and classes are carried along. `source` is a folder with
    cxc_image_to_caption.json and cxc_caption_to_image.json; None takes the files inside the installed package
    eccv-caption (extra `coco`; none of its code runs).
    """
    return _extended(base, source, "cxc")


def read_eccv(base: Truth, source: str | os.PathLike[str] | None = None) -> Truth:
    """ECCV Caption (Chun et al., ECCV 2022): 1,261 images and 1,332 captions are queries, the gallery is all 5K.

    The two directions were judged separately and differ. Two image→text positives are captions of no test image. The
    published numbers count them in R, so `lost_i2t` keeps them. `base` and `source` are as in `read_cxc`.
    """
    return _extended(base, source, "eccv")


def _extended(base: Truth, source: str | os.PathLike[str] | None, name: str) -> Truth:
    folder = _packaged(name) if source is None else Path(source)
    i2t_path, t2i_path = folder / f"{name}_image_to_caption.json", folder / f"{name}_caption_to_image.json"
    i2t = _Positives(i2t_path, base.image_ids, base.caption_ids)
    t2i = _Positives(t2i_path, base.caption_ids, base.image_ids)
    if not len(i2t.queries) and not len(t2i.queries):
        raise InputError(
            f": no query of {name} has an answer in {base.name}, whose {base.n_images:,} images have ids such as "
            f"{base.image_ids[0]!r} and whose {base.n_captions:,} captions {base.caption_ids[0]!r}: it has COCO's ids",
            path=folder,
            remedy='in a JSONL, write "image_id" beside "image", and "caption_ids" beside "captions", with COCO\'s '
            "numbers; COCO's own files and Karpathy's JSON have them",
        )
    whole = i2t.absent == 0 and t2i.absent == 0
    return base.replace(
        i2t=i2t.gains,
        t2i=t2i.gains,
        threshold=None,
        image_queries=i2t.queries,
        caption_queries=t2i.queries,
        # in the whole gallery, a positive outside it is a mistake of the source and counts in published R; in a part
        # of the gallery, it is only one of those left out
        lost_i2t=i2t.lost if whole else None,
        lost_t2i=t2i.lost if whole else None,
        name=name,
        kind=name,
        query_notes=(*i2t.notes("i2t"), *t2i.notes("t2i")),
    )


class _Positives:
    """One direction of a ground truth file: query id → ids of its positives."""

    def __init__(self, path: Path, query_ids: tuple[Id, ...], item_ids: tuple[Id, ...]) -> None:
        query_at, item_at = positions(query_ids), positions(item_ids)
        document = _id_lists(path)
        rows: list[int] = []
        columns: list[int] = []
        self.lost: IntArray = np.zeros(len(query_ids), dtype=np.int64)
        answered = []
        for query, items in document.items():
            row = query_at.get(query)
            if row is None:
                continue
            inside = {item_at[str(item)] for item in items if str(item) in item_at}
            self.lost[row] = len({str(item) for item in items}) - len(inside)
            rows.extend([row] * len(inside))
            columns.extend(inside)
            if inside:
                answered.append(row)
        self.absent = len(document) - sum(query in query_at for query in document)
        self.queries = np.array(sorted(answered), dtype=np.int64)
        self.gains = ones_at(rows, columns, (len(query_ids), len(item_ids)))

    def notes(self, direction: str) -> list[str]:
        notes = []
        if self.absent:
            notes.append(f"{direction}: {self.absent:,} queries of the source are not in the gallery")
        if lost := int(self.lost.sum()):
            notes.append(f"{direction}: {lost:,} positives of the source are outside the gallery")
        return notes


def _id_lists(path: Path) -> dict[str, list[Any]]:
    document = read_json(path)
    if not isinstance(document, dict) or not document or not all(isinstance(ids, list) for ids in document.values()):
        problem = 'is not a ground truth {"query id": [item ids], …}'
        raise InputError(problem, path=path, remedy="was it written completely?")
    for query, ids in document.items():
        for item in ids:
            if isinstance(item, bool) or not isinstance(item, str | int):
                problem = f"query {query!r}: {item!r} is not an id"
                raise InputError(problem, path=path, remedy="ids are texts or whole numbers")
    return document


def _packaged(name: str) -> Path:
    """The data folder of eccv-caption, without importing it."""
    spec = importlib.util.find_spec("eccv_caption")
    for location in (spec and spec.submodule_search_locations) or ():
        if (Path(location) / "data").is_dir():
            return Path(location) / "data"
    raise MissingExtra(f"the ground truth of {name} (without a source folder)", "coco")
