"""`Explanation`: everything that is known about one picture and one text, as plain values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from halation._arrays import FloatArray

__all__ = ["Attention", "Explanation", "Joined", "Part"]

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Part:
    """One of the numbers a score is the sum of.

    value     what it adds to the score; a distance takes from it, so it is negative
    formula   how it is computed
    """

    name: str
    value: float
    formula: str


@dataclass(frozen=True)
class Joined:
    """A score in detail and a gist, joined by their soft maximum, where a run has a gist (`model.gist`).

        score = τ log(exp(detail / τ) + exp(gist / τ)),    share = σ((detail − gist) / τ)

    detail   the score in detail on the soft maximum's scale: 0 = the median pair, 1 = where it decides alone
    gist     what the gists say, on the same scale
    share    how much of the joined score is the detail's, 0…1
    """

    score: float
    detail: float
    gist: float
    share: float


@dataclass(frozen=True, eq=False)
class Attention:
    """Where a head looks.

    of        what the weights are for: "mean", "spread", "points", …
    heads     a name for each head; "" where there is one
    weights   of a picture (heads, rows, columns), of a text (heads, words); each head's add up to 1, but for what goes
              to marks that are no word
    """

    of: str
    heads: tuple[str, ...]
    weights: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {"of": self.of, "heads": list(self.heads), "weights": _rounded(self.weights)}


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a picture scores as it does for a text; made by `explain`.

    score               the model's similarity, bigger = closer: the sum of `parts`. As search ranks; of a run with a
                        gist it is the score in detail, and `joined` has both
    parts               what the score is the sum of
    facts               what else is known of the two: their σ, their distance, …
    probability         that they match, as calibrated; None where that is not known
    about_probability   what the probability refers to, or why there is none
    words, known        the words of the text, and whether the model has a vector for them
    image_attention     where the image head looks, over `rows × columns` cells of the part of the picture in `view`
    text_attention      what the text head looks at
    about_…_attention   where there is none, why: the head attends to nothing, does not say, or was not looked at
    image_influence     (rows, columns) score − score with that part filled with the picture's mean colour: above 0 it
                        speaks for the match; None where the run cannot look at pictures. A part is a cell of the
                        model's, or several where it has more than 8 in a row
    text_influence      (words,) score − score of the text without that word: above 0 the word speaks for the match;
                        NaN for words that were not looked at, those after the first 48
    view                the part of the picture the model looks at (left, top, right, bottom), in pixels
    notes               what a person should know
    """

    name: str
    text: str
    similarity: str
    score: float
    parts: tuple[Part, ...]
    facts: Mapping[str, float]
    probability: float | None
    about_probability: str
    words: tuple[str, ...]
    known: tuple[bool, ...]
    image_attention: tuple[Attention, ...]
    text_attention: tuple[Attention, ...]
    image_influence: FloatArray | None
    text_influence: FloatArray
    picture: Image.Image = field(repr=False)
    view: Box
    joined: Joined | None = None
    notes: tuple[str, ...] = ()
    about_image_attention: str = ""
    about_text_attention: str = ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and why there are no attentions: what every form that a person reads says in the end."""
        return (*self.notes, *filter(None, (self.about_image_attention, self.about_text_attention)))

    def to_dict(self) -> dict[str, Any]:
        """The same, for JSON, without the picture; no zero is negative."""
        width, height = self.picture.size
        told = {
            "image": self.name,
            "text": self.text,
            "score": self.score,
            "similarity": self.similarity,
            "parts": [{"name": part.name, "value": part.value, "formula": part.formula} for part in self.parts],
            "facts": dict(self.facts),
            "joined": None if self.joined is None else vars(self.joined),
            "probability": self.probability,
            "about_probability": self.about_probability,
            "words": [
                {"word": word, "known": known, "influence": _rounded(influence)}
                for word, known, influence in zip(self.words, self.known, self.text_influence, strict=True)
            ],
            "image_influence": None if self.image_influence is None else _rounded(self.image_influence),
            "image_attention": [attention.to_dict() for attention in self.image_attention],
            "text_attention": [attention.to_dict() for attention in self.text_attention],
            "about_image_attention": self.about_image_attention,
            "about_text_attention": self.about_text_attention,
            "view": [round(share, 6) for share in _shares(self.view, width, height)],
            "notes": list(self.notes),
        }
        plain: dict[str, Any] = _without_negative_zeros(told)
        return plain

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """One page that needs nothing else: no network, no files beside it."""
        from halation.report._explain_html import write_html

        write_html(self, path)

    def __str__(self) -> str:
        from halation.report._explain_table import as_table

        return as_table(self)


def _rounded(values: Any) -> Any:
    """Floats of six significant digits, in lists as deep as the array; None for what was not looked at (NaN)."""
    if np.ndim(values) == 0:
        return None if np.isnan(values) else float(f"{float(values):.6g}") + 0.0  # −0.0 + 0.0 = 0.0
    return [_rounded(value) for value in values]


def _without_negative_zeros(told: Any) -> Any:
    """The same lists, dicts and values.

    >>> _without_negative_zeros({"a": [-0.0, -1.5], "b": "-0.0"})
    {'a': [0.0, -1.5], 'b': '-0.0'}
    """
    if isinstance(told, dict):
        return {name: _without_negative_zeros(value) for name, value in told.items()}
    if isinstance(told, list):
        return [_without_negative_zeros(value) for value in told]
    return told + 0.0 if isinstance(told, float) else told


def _shares(view: Box, width: int, height: int) -> Box:
    """The view as shares of the picture's width and height."""
    left, top, right, bottom = view
    return left / width, top / height, right / width, bottom / height
