"""The interactive parts of the page, one query's rankings and the map, and the data for their scripts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from halation._arrays import FloatArray
from halation._web import Markup, sentence, tag
from halation.report._facts import Facts, Map, Missing, Query, RankedItem
from halation.report._galleries import mark_words
from halation.report._page_figures import missing_note

__all__ = ["embedding_map", "images_needed", "one_query", "script_data"]

_MAP_SIDE = 10_000  # the longer side of the map in whole steps


def one_query(facts: Facts) -> Markup:
    """The section with a list of queries, and both rankings of the one that is chosen."""
    counts = {direction: sum(query.direction == direction for query in facts.queries) for direction in ("i2t", "t2i")}
    why = (
        "The ranking by score beside the ranking by relevance. ASP compares the two: it takes the smaller of an item's "
        "two ranks divided by the larger, and averages this ratio over all items. Rankings are kept for "
        f"{counts['i2t']:,} images and {counts['t2i']:,} captions: the queries shown above, and others drawn at random."
    )
    field = tag(
        "input",
        type="search",
        id="query-filter",
        role="combobox",
        aria_controls="query-list",
        aria_expanded="true",
        autocomplete="off",
        placeholder="caption words or a file name",
    )
    chooser = tag(
        "div",
        tag("label", "Find a query ", field),
        tag("ul", "", id="query-list", role="listbox", aria_label="Queries", tabindex="-1"),
        tag("p", "", id="query-count", class_="count", role="status"),
        class_="chooser",
    )
    shown = tag("div", tag("p", "This part needs JavaScript.", class_="missing"), id="query-shown", aria_live="polite")
    head = (tag("h2", "One query in detail"), tag("p", why, class_="why"))
    return tag("section", head, tag("div", chooser, shown, class_="explorer"), id="query")


def embedding_map(facts: Facts) -> Markup:
    """The section with the map's canvas and its tools."""
    title, made = tag("h2", "Map of the embedding space"), facts.map
    if isinstance(made, Missing):
        return tag("section", title, missing_note("", made), id="map")
    glow = " The glow around an item is its uncertainty: one σ, projected." if made.shapes is not None else ""
    why = (
        f"{(made.kinds == 0).sum():,} images (squares) and {(made.kinds == 1).sum():,} captions (dots) as embedded by "
        f"{facts.runs[0].name}, projected by {made.method}.{glow} Point at an item, or move with the arrow keys; lines "
        "join an image to its captions. Plus, minus and double click zoom; drag to move. "
        f"{' '.join(sentence(note) for note in made.notes)}"
    )
    canvas = tag(
        "canvas",
        id="map-canvas",
        tabindex="0",
        role="application",
        aria_label="Map of images and captions; arrow keys move from item to item",
    )
    card = tag("div", "", id="map-card", class_="map-card", hidden=True, aria_live="polite")
    head = (title, tag("p", why, class_="why"), _map_tools(made))
    return tag("section", head, tag("div", canvas, card, class_="paper"), id="map")


def _map_tools(made: Map) -> Markup:
    boxes = [_checkbox("images", "Images", "s0"), _checkbox("captions", "Captions", "s1")]
    boxes += [_checkbox("clouds", "Uncertainty", "")] if made.shapes is not None else []
    zoom = (
        tag("button", "−", type="button", id="map-out", aria_label="Zoom out"),
        tag("button", "+", type="button", id="map-in", aria_label="Zoom in"),
        tag("button", "Reset", type="button", id="map-whole"),
    )
    return tag(
        "div",
        boxes,
        tag("label", "Filter ", tag("input", type="search", id="map-filter", placeholder="a word", autocomplete="off")),
        tag("span", zoom, class_="segments"),
        tag("p", "", id="map-count", class_="count", role="status"),
        class_="tools",
    )


def _checkbox(name: str, text: str, colour: str) -> Markup:
    swatch = tag("span", "", class_=f"swatch {colour}") if colour else None
    return tag("label", tag("input", type="checkbox", id=f"map-{name}", checked=True), swatch, text, class_="check")


def script_data(facts: Facts) -> dict[str, Any]:
    """The data for the page's scripts, kept short: names, captions, rankings and the map."""
    about = facts.report.about
    return {
        "runs": [run.name for run in facts.runs],
        "names": facts.items.names,
        "captions": facts.items.captions,
        "of": facts.items.image_of,
        "sizes": {"i2t": about["captions"], "t2i": about["images"]},
        "sigma": {kind: [_short(value) for value in values.tolist()] for kind, values in facts.sigma.items()},
        "right": {kind: counts.tolist() for kind, counts in facts.right_counts.items()},
        "marks": {mark: words[:2] for mark, words in mark_words(facts.coverage).items()},
        "queries": [_query_data(query) for query in facts.queries],
        "map": None if isinstance(facts.map, Missing) else _map_data(facts.map),
    }


def images_needed(facts: Facts) -> list[int]:
    """The images that the page shows: first those in galleries, then in other rankings, then on the map."""
    shown = {(gallery.direction, item) for gallery in facts.galleries for item in gallery.queries}
    first = [query for query in facts.queries if (query.direction, query.item) in shown]
    images = [image for query in first for image in _images_of(query)]
    extremes = [one for one in facts.certainty if one.kind == "images"]
    images += [item for one in extremes for item in (*one.most_certain, *one.least_certain)]
    images += [image for query in facts.queries for image in _images_of(query)]
    if not isinstance(facts.map, Missing):
        images += facts.map.items[facts.map.kinds == 0].tolist()
    return list(dict.fromkeys(images))


def _images_of(query: Query) -> list[int]:
    if query.direction == "i2t":
        return [query.item]
    return [one.item for ranking in (query.by_score, query.by_relevance, query.by_other_score) for one in ranking]


def _query_data(query: Query) -> dict[str, Any]:
    return {
        "way": query.direction,
        "item": query.item,
        "values": {name: _short(value) for name, value in query.values.items() if not math.isnan(value)},
        "right": query.right_count,
        "sigma": None if query.sigma is None else _short(query.sigma),
        "score": [_item_data(one) for one in query.by_score],
        "relevance": [_item_data(one) for one in query.by_relevance],
        "other": [_item_data(one) for one in query.by_other_score],
    }


def _item_data(one: RankedItem) -> list[Any]:
    """Item, score, relevance, ranks by score (first, last), ranks by relevance (first, last), ratio, mark."""
    ranks = (*one.score_ranks, *one.relevance_ranks)
    return [one.item, _short(one.score), _short(one.relevance), *ranks, _short(one.ratio), one.mark]


def _map_data(made: Map) -> dict[str, Any]:
    """Positions and half-axes in whole steps, 10,000 for the map's longer side; angles in degrees."""
    low = made.xy.min(axis=0)
    extent = float((made.xy.max(axis=0) - low).max()) or 1.0
    scale = _MAP_SIDE / extent

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
