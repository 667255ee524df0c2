"""What the page's script is given: names, captions, rankings and the map, as small as they can be said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from halation._arrays import FloatArray
from halation.report._facts import Absent, Facts, Map, Placed, Query
from halation.report._marks import marks

__all__ = ["page_data", "pictures_wanted"]

_PAPER = 10_000  # the longer side of the map in whole steps


def page_data(facts: Facts) -> dict[str, Any]:
    """A plain value for `data_block`."""
    report = facts.report.about
    return {
        "runs": [run.name for run in facts.runs],
        "names": facts.items.names,
        "captions": facts.items.captions,
        "of": facts.items.image_of,
        "sizes": {"i2t": report["captions"], "t2i": report["images"]},
        "sigma": {kind: [_short(value) for value in values.tolist()] for kind, values in facts.sigma.items()},
        "right": {kind: counts.tolist() for kind, counts in facts.right.items()},
        "marks": {mark: words[:2] for mark, words in marks(facts.knows).items()},
        "queries": [_query(query) for query in facts.queries],
        "map": None if isinstance(facts.map, Absent) else _map(facts.map),
    }


def pictures_wanted(facts: Facts) -> list[int]:
    """Images in the order they are needed: of the galleries, of the other rankings, of the map."""
    shown = {(gallery.direction, item) for gallery in facts.galleries for item in gallery.queries}
    first = [query for query in facts.queries if (query.direction, query.item) in shown]
    wanted = [image for query in first for image in _images(query)]
    wanted += [item for one in facts.certain if one.kind == "images" for item in (*one.most, *one.least)]
    wanted += [image for query in facts.queries for image in _images(query)]
    if not isinstance(facts.map, Absent):
        wanted += facts.map.items[facts.map.kinds == 0].tolist()
    return list(dict.fromkeys(wanted))


def _images(query: Query) -> list[int]:
    if query.direction == "i2t":
        return [query.item]
    return [one.item for ranking in (query.by_score, query.by_meaning, query.by_other) for one in ranking]


def _query(query: Query) -> dict[str, Any]:
    return {
        "way": query.direction,
        "item": query.item,
        "values": {name: _short(value) for name, value in query.values.items() if not math.isnan(value)},
        "right": query.right,
        "sigma": None if query.sigma is None else _short(query.sigma),
        "score": [_placed(one) for one in query.by_score],
        "meaning": [_placed(one) for one in query.by_meaning],
        "other": [_placed(one) for one in query.by_other],
    }


def _placed(one: Placed) -> list[Any]:
    """item, score, relevance, ranks by score (first, last), ranks by meaning (first, last), ratio, mark."""
    return [
        one.item, _short(one.score), _short(one.relevance), *one.by_score, *one.by_meaning, _short(one.ratio), one.mark,
    ]  # fmt: skip


def _map(made: Map) -> dict[str, Any]:
    """Whole steps on a paper whose longer side is 10,000; half-axes in the same steps, angles in degrees."""
    low = made.xy.min(axis=0)
    extent = float((made.xy.max(axis=0) - low).max()) or 1.0
    scale = _PAPER / extent

    def whole(values: FloatArray) -> list[int]:
        return [int(value) for value in np.rint(values)]

    shapes = made.shapes
    return {
        "x": whole((made.xy[:, 0] - low[0]) * scale),
        "y": whole((made.xy[:, 1] - low[1]) * scale),
        "kind": made.kinds.tolist(),
        "item": made.items.tolist(),
        "shape": None
        if shapes is None
        else [whole(shapes[:, 0] * scale), whole(shapes[:, 1] * scale), whole(np.degrees(shapes[:, 2]))],
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}") + 0.0  # no negative zero
