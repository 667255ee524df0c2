"""The parts of the page that a reader works with: one query's rankings, and the map."""

from __future__ import annotations

from halation._web import Markup, tag
from halation.report._facts import Absent, Facts, Map
from halation.report._figures import absent

__all__ = ["joint_map", "one_query", "sentence"]


def one_query(facts: Facts) -> Markup:
    """A list of queries to choose from, and a place for both rankings of the one chosen."""
    ways = {way: sum(query.direction == way for query in facts.queries) for way in ("i2t", "t2i")}
    told = (
        "Both rankings of a query side by side, with the ranks that ASP compares: for each item min/max of its rank by "
        "score and its rank by meaning; the mean over all items is the query's ASP. Rankings are kept for "
        f"{ways['i2t']:,} images and {ways['t2i']:,} captions: those of the galleries, and others drawn at random."
    )
    field = tag(
        "input",
        type="search",
        id="query-filter",
        role="combobox",
        aria_controls="query-list",
        aria_expanded="true",
        autocomplete="off",
        placeholder="words of a caption, a file's name",
    )
    box = tag(
        "div",
        tag("label", "Find a query ", field),
        tag("ul", "", id="query-list", role="listbox", aria_label="Queries", tabindex="-1"),
        tag("p", "", id="query-count", class_="count", role="status"),
        class_="chooser",
    )
    shown = tag("div", tag("p", "This part needs JavaScript.", class_="absent"), id="query-shown", aria_live="polite")
    body = (tag("h2", "One query, both rankings"), tag("p", told, class_="why"))
    return tag("section", body, tag("div", box, shown, class_="explorer"), id="query")


def joint_map(facts: Facts) -> Markup:
    """The paper the map is drawn on, and its tools."""
    made = facts.map
    if isinstance(made, Absent):
        return tag("section", tag("h2", "Map of the joint space"), absent("", made), id="map")
    cloud = " The glow around a point is its uncertainty: one σ, as the projection makes it."
    told = (
        f"{(made.kinds == 0).sum():,} pictures (squares) and {(made.kinds == 1).sum():,} captions (dots) where "
        f"{facts.runs[0].name} puts them, by {made.method}.{cloud if made.shapes is not None else ''} Point at one, or "
        "move with the arrow keys: a picture is joined to its captions. Plus and minus (or a double click) zoom, "
        f"dragging moves. {' '.join(sentence(note) for note in made.notes)}"
    )
    canvas = tag(
        "canvas",
        id="map-canvas",
        tabindex="0",
        role="application",
        aria_label="Map of pictures and captions; arrow keys move from item to item",
    )
    card = tag("div", "", id="map-card", class_="map-card", hidden=True, aria_live="polite")
    body = (tag("h2", "Map of the joint space"), tag("p", told, class_="why"), _tools(made))
    return tag("section", body, tag("div", canvas, card, class_="paper"), id="map")


def _tools(made: Map) -> Markup:
    boxes = [_box("images", "Pictures", "s0"), _box("captions", "Captions", "s1")]
    boxes += [_box("clouds", "Uncertainty", "")] if made.shapes is not None else []
    zoom = (
        tag("button", "−", type="button", id="map-out", aria_label="Zoom out"),
        tag("button", "+", type="button", id="map-in", aria_label="Zoom in"),
        tag("button", "Whole", type="button", id="map-whole"),
    )
    return tag(
        "div",
        boxes,
        tag("label", "Filter ", tag("input", type="search", id="map-filter", placeholder="a word", autocomplete="off")),
        tag("span", zoom, class_="segments"),
        tag("p", "", id="map-count", class_="count", role="status"),
        class_="tools",
    )


def _box(name: str, text: str, colour: str) -> Markup:
    key = tag("span", "", class_=f"swatch {colour}") if colour else None
    return tag("label", tag("input", type="checkbox", id=f"map-{name}", checked=True), key, text, class_="check")


def sentence(note: str) -> str:
    """A note with a capital at its head and a full stop at its end."""
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."
