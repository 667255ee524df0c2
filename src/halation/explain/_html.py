"""An explanation as a page that needs nothing else."""

from __future__ import annotations

import base64
import io
import math
import os
from html import escape
from importlib.resources import files

from PIL import Image

from halation._files import write_text
from halation.explain._explanation import Explanation
from halation.explain._shown import Panel, Shades, figures, panels, percent, shades, signed, strongest, summands

__all__ = ["write_html"]

_STEPS = 10  # shades of a colour; classes, so that the page needs no style attributes


def write_html(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Pictures, words and parts; everything that comes from data is escaped."""
    style = files("halation.explain").joinpath("page.css").read_text(encoding="utf-8")
    write_text(path, _page(explanation, style))


def _page(e: Explanation, style: str) -> str:
    chance = f" · {percent(e.probability)} likely to match" if e.probability is not None else ""
    pictures = "\n".join(_figure(panel, e) for panel in panels(e))
    rows = "\n".join(_row(e, row) for row in shades(e))
    notes = "".join(f"<li>{escape(note)}</li>" for note in (_legend(e), *e.remarks))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{escape(e.text)} · halation explain</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>“{escape(e.text)}”</h1>
<p>{escape(e.name)} · score {signed(e.score)} ({escape(e.similarity)}){chance}</p>
</header>
<main>
<section class="pictures" aria-label="The picture">
{pictures}
</section>
<section aria-label="The words">
{rows}
</section>
<section class="numbers" aria-label="The numbers">
{_parts(e)}
{_facts(e)}
</section>
<ul class="notes">{notes}</ul>
</main>
</body>
</html>
"""


def _figure(panel: Panel, e: Explanation) -> str:
    words = escape(f"{e.name}: {panel.title}")
    return (
        f'<figure><figcaption>{escape(panel.title)}</figcaption><img alt="{words}" src="{_data(panel.image)}"></figure>'
    )


def _row(e: Explanation, row: Shades) -> str:
    highest = strongest(row.values)
    words = []
    for word, known, value in zip(e.words, e.known, map(float, row.values), strict=True):
        share = 0.0 if math.isnan(value) else value / highest
        kind = ("for" if share > 0 else "against") if row.both_signs else "look"
        said = "–" if math.isnan(value) else signed(value) if row.both_signs else percent(value)
        unknown = "" if known else ' class="unknown"'
        words.append(
            f'<li class="{kind} s{round(_STEPS * abs(share))}"><span{unknown}>{escape(word)}</span>'
            f"<small>{said}</small></li>"
        )
    return f'<div class="row"><h2>{escape(row.title)}</h2><ol class="words">{"".join(words)}</ol></div>'


def _parts(e: Explanation) -> str:
    named = summands(e)
    highest = max(1e-12, *(abs(value) for _, value, _ in named))
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}<small>{escape(formula)}</small></th>'
        f'<td>{_bar(value, abs(value) / highest)}</td><td class="value">{signed(value, 4)}</td></tr>'
        for name, value, formula in named
    )
    return f"<table><caption>Parts of the score</caption>{rows}</table>"


def _bar(value: float, share: float) -> str:
    kind = "for" if value > 0 else "against"
    return (
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="100" height="8"/><rect class="{kind}" width="{100 * share:.2f}" height="8"/></svg>'
    )


def _facts(e: Explanation) -> str:
    chance = "not known" if e.probability is None else percent(e.probability)
    rows = [("probability of a match", e.about_probability, chance)]
    if e.joined is not None:
        share = f"the soft maximum of both, {percent(e.joined.share)} of it the detail's"
        rows += [
            ("in detail, scaled", "0: the median pair, 1: decides alone", signed(e.joined.detail)),
            ("gist", "what the two are about", signed(e.joined.gist)),
            ("joined", share, signed(e.joined.score)),
        ]
    rows += [(name, "", figures(value)) for name, value in e.facts.items()]
    cells = "".join(
        f'<tr><th scope="row">{escape(name)}<small>{escape(what)}</small></th>'
        f'<td class="value">{escape(said)}</td></tr>'
        for name, what, said in rows
    )
    return f"<table><caption>Beside it</caption>{cells}</table>"


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
