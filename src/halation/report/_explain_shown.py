"""What of an explanation is drawn, chosen once for every form: pictures with a title, words with their shades."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image

from halation._arrays import FloatArray
from halation.report._explain_heat import influenced, lit, seen_part
from halation.report._explanation import Attention, Explanation

__all__ = ["Panel", "Shades", "panels", "shades", "strongest", "summands"]

_MOST = 6  # pictures of attention
_TITLES = {
    "mean": "where the mean looks",
    "spread": "where the spread looks",
    "points": "where an embedding looks",
    "means": "where a head looks",
    "whole": "where the whole looks",
    "each word": "where a word looks",
    "filter": "what the filter lets through",
}


class Panel(NamedTuple):
    """A picture and what it shows."""

    title: str
    image: Image.Image


class Shades(NamedTuple):
    """A number for every word: of both signs (influence; NaN: not looked at), or a share (attention)."""

    title: str
    values: FloatArray
    both_signs: bool


def panels(explanation: Explanation, side: int = 480) -> list[Panel]:
    """What the model sees, the influence of its parts, and where heads look."""
    seen = seen_part(explanation.picture, explanation.view, side)
    found = [Panel("what the model sees", seen)]
    if (influence := explanation.image_influence) is not None and influence.any():
        found.append(Panel("red speaks for it, blue against", influenced(seen, influence)))
    heads = [(a, n) for a in explanation.image_attention for n in _chosen(a, explanation)]
    return found + [Panel(_titled(a, a.heads[n]), lit(seen, a.weights[n])) for a, n in heads[:_MOST]]


def summands(explanation: Explanation) -> list[tuple[str, float, str]]:
    """(name, value, formula) of the parts, where there are several, and of the score."""
    e = explanation
    if len(e.parts) == 1:
        return [("score", e.score, f"{e.similarity}: {e.parts[0].formula}")]
    parts = [(part.name, part.value, part.formula) for part in e.parts]
    return [*parts, ("score", e.score, f"{e.similarity}: the sum, bigger = closer")]


def shades(explanation: Explanation) -> list[Shades]:
    """The rows of words."""
    found = [Shades("speaks for, against", explanation.text_influence, True)]
    for attention in explanation.text_attention:
        for name, weights in zip(attention.heads, attention.weights, strict=True):
            found.append(Shades(_titled(attention, name), weights, False))
    return found[: 1 + _MOST]


def strongest(values: FloatArray) -> float:
    """The largest absolute value among those that are known, above 0: shades are relative to it."""
    known = np.abs(values[~np.isnan(values)])
    return max(float(known.max(initial=0)), 1e-12)


def _titled(attention: Attention, head: str) -> str:
    name = attention.of.partition(" (")[0]
    title = _TITLES.get(name, f"attention: {attention.of}").replace(name, attention.of) if "(" in attention.of else None
    title = title or _TITLES.get(attention.of, f"attention: {attention.of}")
    if not head:
        return title
    return f"where “{head}” looks" if attention.of == "each word" else f"{title}, {head} of {len(attention.heads)}"


def _chosen(attention: Attention, explanation: Explanation) -> list[int]:
    """Of many heads those that matter: of the words of a scorer, the ones with the most influence."""
    count = len(attention.heads)
    if attention.of != "each word" or count <= 4:
        return list(range(count))
    strength = {
        word.lower().strip(".,;:!?'\""): abs(float(x))
        for word, x in zip(explanation.words, np.nan_to_num(explanation.text_influence), strict=True)
    }
    best = sorted(range(count), key=lambda n: -strength.get(attention.heads[n], 0.0))[:4]
    return sorted(best)
