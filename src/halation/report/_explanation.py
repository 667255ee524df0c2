"""`Explanation`: the explanation of a score, as plain values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from halation._arrays import FloatArray

__all__ = ["Attention", "Explanation", "Part"]

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Part:
    """One of the numbers that add up to a score.

    value     what it adds to the score; a distance is negative
    formula   how it is computed
    """

    name: str
    value: float
    formula: str


@dataclass(frozen=True, eq=False)
class Attention:
    """Where a head looks.

    of        what the head computes: "mean", "spread", "points", …
    heads     the name of each head; "" if there is only one
    weights   over a picture (heads, rows, columns), over a text (heads, words). The weights of a head add up to 1,
              less what goes to tokens that are not words
    """

    of: str
    heads: tuple[str, ...]
    weights: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """The attention as a dict for JSON."""
        return {"of": self.of, "heads": list(self.heads), "weights": _rounded(self.weights)}


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a picture scores as it does for a text; made by `explain`.

    score               the score that search ranks by, bigger = closer: the sum of `parts`
    parts               the numbers that add up to the score
    facts               other numbers: the σ of both sides, …
    probability         the calibrated match probability; None if it is not known
    about_probability   what the probability refers to, or why there is none
    words, known        the words of the text, and whether the model has a vector for each
    image_attention     where the image head looks, over `rows × columns` cells of the part of the picture in `view`
    text_attention      where the text head looks, over the words
    about_…_attention   why there is no attention, if there is none
    image_influence     (rows, columns) score − score with that part filled with the picture's mean colour. Above 0, it
                        speaks for the match. None if the model cannot look at pictures. A part is a cell of the
                        model, or several cells if there are more than 8 per row
    text_influence      (words,) score − score of the text without that word. Above 0, the word speaks for the match.
                        NaN after the first 48 words
    view                the part of the picture that the model sees (left, top, right, bottom), in pixels
    notes               what else a reader should know
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
    notes: tuple[str, ...] = ()
    about_image_attention: str = ""
    about_text_attention: str = ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and why attentions are missing: shown at the end of the page and of the table."""
        return (*self.notes, *filter(None, (self.about_image_attention, self.about_text_attention)))

    def to_dict(self) -> dict[str, Any]:
        """The explanation as a dict for JSON, without the picture. No zero is negative."""
        width, height = self.picture.size
        values = {
            "image": self.name,
            "text": self.text,
            "score": self.score,
            "similarity": self.similarity,
            "parts": [{"name": part.name, "value": part.value, "formula": part.formula} for part in self.parts],
            "facts": dict(self.facts),
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
        plain: dict[str, Any] = _without_negative_zeros(values)
        return plain

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the explanation as one HTML page that needs no network and no other files."""
        from halation.report._explanation_views import write_html

        write_html(self, path)

    def __str__(self) -> str:
        from halation.report._explanation_views import as_table

        return as_table(self)


def _rounded(values: Any) -> Any:
    """Floats with six significant digits, in lists as deep as the array; None for NaN."""
    if np.ndim(values) == 0:
        return None if np.isnan(values) else float(f"{float(values):.6g}") + 0.0  # −0.0 + 0.0 = 0.0
    return [_rounded(value) for value in values]


def _without_negative_zeros(value: Any) -> Any:
    """The same lists, dicts and values, with 0.0 for −0.0.

    >>> _without_negative_zeros({"a": [-0.0, -1.5], "b": "-0.0"})
    {'a': [0.0, -1.5], 'b': '-0.0'}
    """
    if isinstance(value, dict):
        return {name: _without_negative_zeros(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_negative_zeros(one) for one in value]
    return value + 0.0 if isinstance(value, float) else value


def _shares(view: Box, width: int, height: int) -> Box:
    """A view as shares of the picture's width and height."""
    left, top, right, bottom = view
    return left / width, top / height, right / width, bottom / height
