"""An explanation as people read it: a web page, and a table for a terminal."""

from __future__ import annotations

import math
import os
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from PIL import Image

from halation import _table
from halation._arrays import FloatArray
from halation._files import write_text
from halation._web import Markup, document, percent, plain, sentence, significant, tag
from halation.report._explanation import Attention, Explanation
from halation.report._pictures import brighten, colour, crop, encode_picture

__all__ = ["Panel", "WordRow", "as_table", "panels", "word_rows", "write_html"]

_MOST_HEADS = 6
_MOST_WORD_HEADS = 4  # of a scorer that has an attention for each word
_SHADES = 10  # of a colour: classes, so that the page needs no style attributes
_BAR = 10  # characters
_ATTENTION_OF = {
    "mean": "the mean",
    "spread": "the spread",
    "points": "an embedding",
    "means": "a head",
    "whole": "the whole",
    "each word": "a word",
    "filter": "the filter",
}


class Panel(NamedTuple):
    """A picture and its title."""

    title: str
    image: Image.Image


class WordRow(NamedTuple):
    """A number for each word: an influence (`signed`; NaN where it was not measured), or an attention's share."""

    title: str
    values: FloatArray
    signed: bool


def panels(explanation: Explanation, side: int = 480) -> list[Panel]:
    """The picture as the model sees it, the influence of its parts, and the attention of each head."""
    seen = crop(explanation.picture, explanation.view, side)
    shown = [Panel("What the model sees", seen)]
    if (influence := explanation.image_influence) is not None and influence.any():
        shown.append(Panel("Influence: red for, blue against the match", colour(seen, influence)))
    heads = [(a, n) for a in explanation.image_attention for n in _chosen_heads(a, explanation)]
    return shown + [Panel(_title(a, a.heads[n]), brighten(seen, a.weights[n])) for a, n in heads[:_MOST_HEADS]]


def word_rows(explanation: Explanation) -> list[WordRow]:
    """The influence of each word, then the attention of each head."""
    rows = [WordRow("Influence", explanation.text_influence, True)]
    for attention in explanation.text_attention:
        for name, weights in zip(attention.heads, attention.weights, strict=True):
            rows.append(WordRow(_title(attention, name), weights, False))
    return rows[: 1 + _MOST_HEADS]


def _title(attention: Attention, head: str) -> str:
    kind, _, detail = attention.of.partition(" (")  # "mean (head 2)"
    if attention.of == "each word" and head:
        return f"Attention of “{head}”"
    name = _ATTENTION_OF.get(kind, kind) + (f" ({detail}" if detail else "")
    return f"Attention of {name}" + (f", {head} of {len(attention.heads)}" if head else "")


def _chosen_heads(attention: Attention, explanation: Explanation) -> list[int]:
    """All heads; if there is one for each word, those of the words with the largest influence."""
    count = len(attention.heads)
    if attention.of != "each word" or count <= _MOST_WORD_HEADS:
        return list(range(count))
    strength = {
        word.lower().strip(".,;:!?'\""): abs(float(influence))
        for word, influence in zip(explanation.words, np.nan_to_num(explanation.text_influence), strict=True)
    }
    strongest = sorted(range(count), key=lambda n: -strength.get(attention.heads[n], 0.0))
    return sorted(strongest[:_MOST_WORD_HEADS])


def _largest(values: FloatArray) -> float:
    """The largest absolute value that is not NaN, above 0: shades and bars are relative to it."""
    known = np.abs(values[~np.isnan(values)])
    return max(float(known.max(initial=0)), 1e-12)


def _score_rows(e: Explanation) -> list[tuple[str, float, str]]:
    """(name, value, formula) of the parts of the score, if there are several, and of the score."""
    if len(e.parts) == 1:
        return [("score", e.score, f"{e.similarity}: {e.parts[0].formula}")]
    parts = [(part.name, part.value, part.formula) for part in e.parts]
    return [*parts, ("score", e.score, f"{e.similarity}: the sum; bigger = closer")]


def _other_rows(e: Explanation) -> list[tuple[str, str, str]]:
    """(name, number, what it is) of everything beside the parts of the score."""
    probability = "not known" if e.probability is None else percent(e.probability)
    rows = [("match probability", probability, e.about_probability)]
    return rows + [(name, significant(value), "") for name, value in e.facts.items()]


def as_table(explanation: Explanation) -> str:
    """The explanation as text: the score and its parts, then a row for each word, then notes."""
    blocks = [_score_table(explanation), _word_table(explanation)]
    if explanation.remarks:
        blocks.append("\n".join(f"note: {note}" for note in explanation.remarks))
    return "\n\n".join(blocks)


def _score_table(e: Explanation) -> str:
    rows = [(name, plain(value, 4), formula) for name, value, formula in _score_rows(e)] + _other_rows(e)
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{name.ljust(name_width)}  {value.rjust(value_width)}  {what}".rstrip() for name, value, what in rows]
    return "\n".join([f"{e.name}  and  “{e.text}”", "", *lines])


def _word_table(e: Explanation) -> str:
    attentions = word_rows(e)[1:]
    largest = _largest(e.text_influence)
    rows = []
    for position, word in enumerate(e.words):
        influence = float(e.text_influence[position])
        shares = [percent(float(attention.values[position])) for attention in attentions]
        name = word if e.known[position] else f"{word} (unknown)"
        cells = ["–", ""] if math.isnan(influence) else [plain(influence, 4), _text_bar(influence / largest)]
        rows.append([name, *cells, *shares])
    header = ["word", "influence", "against  for".center(2 * _BAR + 1), *(row.title for row in attentions)]
    return _table.text(header, rows)


def _text_bar(share: float) -> str:
    full = "█" * round(_BAR * abs(share))
    return f"{full:>{_BAR}}│{'':{_BAR}}" if share < 0 else f"{'':{_BAR}}│{full:<{_BAR}}"


def write_html(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Write the explanation as a page that needs no other file; everything that comes from data is escaped."""
    e = explanation
    likely = "" if e.probability is None else f" · match probability {percent(e.probability)}"
    body = [
        tag(
            "header",
            tag("h1", f"“{e.text}”"),
            tag("p", f"{e.name} · score {plain(e.score, 3)} ({e.similarity}){likely}"),
        ),
        tag(
            "main",
            tag("section", [_figure(panel, e) for panel in panels(e)], class_="pictures", aria_label="The picture"),
            tag("section", [_words(e, row) for row in word_rows(e)], aria_label="The words"),
            tag("section", _parts(e), _others(e), class_="numbers", aria_label="The numbers"),
            tag("ul", [tag("li", sentence(note)) for note in (_legend(e), *e.remarks)], class_="notes"),
        ),
    ]
    style = files("halation.report").joinpath("static").joinpath("explain.css").read_text(encoding="utf-8")
    write_text(path, document(f"{e.text} · halation explain", body, styles=[style]))


def _figure(panel: Panel, e: Explanation) -> Markup:
    source = f"data:image/jpeg;base64,{encode_picture(panel.image.convert('RGB'), 'JPEG', quality=90)}"
    return tag("figure", tag("figcaption", panel.title), tag("img", alt=f"{e.name}: {panel.title}", src=source))


def _words(e: Explanation, row: WordRow) -> Markup:
    largest = _largest(row.values)
    words = []
    for word, known, value in zip(e.words, e.known, map(float, row.values), strict=True):
        share = 0.0 if math.isnan(value) else value / largest
        kind = ("for" if share > 0 else "against") if row.signed else "look"
        number = "–" if math.isnan(value) else plain(value, 3) if row.signed else percent(value)
        text = tag("span", word, class_=None if known else "unknown", title=None if known else "unknown to the model")
        words.append(tag("li", text, tag("small", number), class_=f"{kind} s{round(_SHADES * abs(share))}"))
    return tag("div", tag("h2", row.title), tag("ol", words, class_="words"), class_="row")


def _parts(e: Explanation) -> Markup:
    named = _score_rows(e)
    several = len(named) > 1
    largest = max(1e-12, *(abs(value) for _, value, _ in named))
    rows = [
        tag(
            "tr",
            _row_head(name, formula),
            tag("td", _bar(value, abs(value) / largest)) if several else None,
            tag("td", plain(value, 4), class_="value"),
        )
        for name, value, formula in named
    ]
    return tag("table", tag("caption", "Parts of the score" if several else "Score"), rows)


def _others(e: Explanation) -> Markup:
    rows = [tag("tr", _row_head(name, what), tag("td", value, class_="value")) for name, value, what in _other_rows(e)]
    return tag("table", tag("caption", "Probability and uncertainty"), rows)


def _row_head(name: str, what: str) -> Markup:
    return tag("th", name, tag("small", what), scope="row")


def _bar(value: float, share: float) -> Markup:
    filled = tag("rect", class_="for" if value > 0 else "against", width=f"{100 * share:.2f}", height=8)
    whole = tag("rect", width=100, height=8)
    return tag("svg", whole, filled, class_="bar", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")


def _legend(e: Explanation) -> str:
    notes = [
        "Influence is how much the score falls when a word is left out, or when a part of the picture is filled with "
        "its mean colour. Red-orange speaks for the match, blue against it."
    ]
    if e.image_attention:
        notes.append("Bright areas are where a head looks.")
    if e.image_attention or e.text_attention:
        notes.append("Attention alone does not prove that something mattered.")
    return " ".join(notes)
