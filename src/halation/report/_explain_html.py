"""An explanation as a page that needs nothing else."""

from __future__ import annotations

import base64
import io
import math
import os
from importlib.resources import files

from PIL import Image

from halation._files import write_text
from halation._web import Markup, figures, hashed, percent, plain, shared, tag
from halation.report._explain_shown import Panel, Shades, panels, shades, strongest, summands
from halation.report._explanation import Explanation

__all__ = ["write_html"]

_STEPS = 10  # shades of a colour; classes, so that the page needs no style attributes


def write_html(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Pictures, words and parts; everything that comes from data is escaped."""
    own = files("halation.report").joinpath("static").joinpath("explain.css").read_text(encoding="utf-8")
    write_text(path, _page(explanation, f"{shared('palette.css')}\n{own}"))


def _page(e: Explanation, style: str) -> str:
    policy = f"default-src 'none'; img-src data:; style-src {hashed(style)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("title", f"{e.text} · halation explain"),
        tag("style", Markup(style)),
    )
    chance = "" if e.probability is None else f" · {percent(e.probability)} likely to match"
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", f"“{e.text}”"),
            tag("p", f"{e.name} · score {plain(e.score, 3)} ({e.similarity}){chance}"),
        ),
        tag(
            "main",
            tag("section", [_figure(panel, e) for panel in panels(e)], class_="pictures", aria_label="The picture"),
            tag("section", [_row(e, row) for row in shades(e)], aria_label="The words"),
            tag("section", _parts(e), _facts(e), class_="numbers", aria_label="The numbers"),
            tag("ul", [tag("li", note) for note in (_legend(e), *e.remarks)], class_="notes"),
        ),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def _figure(panel: Panel, e: Explanation) -> Markup:
    picture = tag("img", alt=f"{e.name}: {panel.title}", src=_data(panel.image))
    return tag("figure", tag("figcaption", panel.title), picture)


def _row(e: Explanation, row: Shades) -> Markup:
    highest = strongest(row.values)
    words = []
    for word, known, value in zip(e.words, e.known, map(float, row.values), strict=True):
        share = 0.0 if math.isnan(value) else value / highest
        kind = ("for" if share > 0 else "against") if row.both_signs else "look"
        said = "–" if math.isnan(value) else plain(value, 3) if row.both_signs else percent(value)
        shown = tag("span", word, class_=None if known else "unknown")
        words.append(tag("li", shown, tag("small", said), class_=f"{kind} s{round(_STEPS * abs(share))}"))
    return tag("div", tag("h2", row.title), tag("ol", words, class_="words"), class_="row")


def _parts(e: Explanation) -> Markup:
    named = summands(e)
    highest = max(1e-12, *(abs(value) for _, value, _ in named))
    rows = [
        tag(
            "tr",
            _named(name, formula),
            tag("td", _bar(value, abs(value) / highest)),
            tag("td", plain(value, 4), class_="value"),
        )
        for name, value, formula in named
    ]
    return tag("table", tag("caption", "Parts of the score"), rows)


def _named(name: str, what: str) -> Markup:
    return tag("th", name, tag("small", what), scope="row")


def _bar(value: float, share: float) -> Markup:
    filled = tag("rect", class_="for" if value > 0 else "against", width=f"{100 * share:.2f}", height=8)
    whole = tag("rect", width=100, height=8)
    return tag("svg", whole, filled, class_="bar", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")


def _facts(e: Explanation) -> Markup:
    chance = "not known" if e.probability is None else percent(e.probability)
    rows = [("probability of a match", e.about_probability, chance)]
    if e.joined is not None:
        share = f"the soft maximum of both, {percent(e.joined.share)} of it the detail's"
        rows += [
            ("in detail, scaled", "0: the median pair, 1: decides alone", plain(e.joined.detail, 3)),
            ("gist", "what the two are about", plain(e.joined.gist, 3)),
            ("joined", share, plain(e.joined.score, 3)),
        ]
    rows += [(name, "", figures(value)) for name, value in e.facts.items()]
    cells = [tag("tr", _named(name, what), tag("td", said, class_="value")) for name, what, said in rows]
    return tag("table", tag("caption", "Beside it"), cells)


def _legend(e: Explanation) -> str:
    looks = " Light shows where a head looks." if e.image_attention else ""
    if e.image_attention or e.text_attention:
        looks += " Looking somewhere is no proof that it mattered."
    return (
        "Red-orange speaks for the match, blue against it: how the score changes when a word is left out, or a part of "
        f"the picture is filled with its mean colour.{looks}"
    )


def _data(image: Image.Image) -> str:
    out = io.BytesIO()
    image.convert("RGB").save(out, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"
