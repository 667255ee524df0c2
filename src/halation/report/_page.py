"""`Facts` to one page: everything inside it, nothing that leaves it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.resources import files

import halation
from halation._web import Markup, data_block, hashed, shared, tag
from halation.report._cards import certain_items, disagreements, galleries
from halation.report._data import page_data
from halation.report._explore import joint_map, one_query, sentence
from halation.report._facts import Facts
from halation.report._figures import calibrator, curves
from halation.report._head import headline, measures

__all__ = ["page"]

_STYLES = ("base.css", "parts.css", "print.css")
_SCRIPTS = ("page.js", "table.js", "gallery.js", "query.js", "sky.js", "map.js")
_NAV = (
    ("top", "Verdict"),
    ("measures", "Measures"),
    ("curves", "Curves"),
    ("trust", "Calibrator"),
    ("disagreement", "Disagreement"),
    ("galleries", "Best and worst"),
    ("certain", "Certainty"),
    ("query", "One query"),
    ("map", "Map"),
)


def page(facts: Facts, pictures: Mapping[int, str], notes: tuple[str, ...] = ()) -> str:
    """The whole page. pictures: WebP in base64, by image; notes: what a reader must know of them."""
    style = "\n".join([shared("palette.css"), *map(_static, _STYLES)])
    theme = shared("theme.js")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_static, _SCRIPTS)) + "\n})();\n"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, (theme, script))),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"halation {halation.__version__}"),
        tag("title", f"{facts.runs[0].name} on {facts.data} · halation"),
        tag("link", rel="icon", type="image/svg+xml", href=f"data:image/svg+xml;base64,{_encoded(shared('icon.svg'))}"),
        tag("style", Markup(style)),
        tag("script", Markup(theme)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#main", class_="skip"),
        _top(),
        tag("main", _sections(facts), id="main"),
        _foot(facts, notes),
        data_block("data", page_data(facts)),
        data_block("pictures", {str(image): text for image, text in pictures.items()}),
        tag("script", Markup(script)),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def _sections(facts: Facts) -> list[Markup]:
    return [
        headline(facts),
        measures(facts),
        curves(facts),
        calibrator(facts),
        disagreements(facts),
        galleries(facts),
        certain_items(facts),
        one_query(facts),
        joint_map(facts),
    ]


def _top() -> Markup:
    links = [tag("li", tag("a", name, href=f"#{where}")) for where, name in _NAV]
    return tag(
        "header",
        tag("a", tag("span", "", class_="spark", aria_hidden="true"), "halation", href="#top", class_="brand"),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag("button", "◐", type="button", id="theme", class_="theme"),
        class_="bar",
    )


def _foot(facts: Facts, notes: tuple[str, ...]) -> Markup:
    told = [*facts.notes, *notes]
    return tag(
        "footer",
        tag("h2", "Notes"),
        tag("ul", [tag("li", sentence(note)) for note in told]),
        tag("p", f"Made by halation {halation.__version__}. This page loads nothing from anywhere."),
    )


def _policy(style: str, scripts: tuple[str, ...]) -> str:
    """Nothing is fetched, and no script runs but the page's own, whatever a caption holds."""
    own = " ".join(map(hashed, scripts))
    parts = ("default-src 'none'", "img-src data:", f"style-src {hashed(style)}", f"script-src {own}")
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _static(name: str) -> str:
    return files("halation.report").joinpath("static").joinpath(name).read_text(encoding="utf-8")
