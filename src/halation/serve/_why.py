"""Why a picture was found: an explanation, as it goes over the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from halation.serve._live import Searcher
from halation.serve._schemas import sayable

__all__ = ["Why", "WhyQuery", "explained"]


class WhyQuery(BaseModel):
    """A picture of the index and the words it was found by."""

    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, AfterValidator(sayable)] = Field(
        min_length=1,
        description="The words, as they were searched for.",
        examples=["two dogs in the snow"],
        json_schema_extra={"pattern": r"\S"},
    )
    id: Annotated[str, AfterValidator(sayable)] = Field(min_length=1, description="The picture, as a hit names it.")


class WhyPart(BaseModel):
    """One of the numbers a score is the sum of."""

    name: str
    value: float
    formula: str


class WhyWord(BaseModel):
    """A word of the query."""

    word: str
    known: bool = Field(description="Whether the model has a vector for it.")
    influence: float | None = Field(
        description="The score less the score of the query without this word; none where that was not looked at, after "
        "the first 48 words."
    )


class WhyAttention(BaseModel):
    """Where a head looks."""

    of: str = Field(description="What it looks for: mean, spread, points, …")
    heads: list[str]
    weights: list[list[float]] | list[list[list[float]]] = Field(
        description="Of words (heads, words), of a picture (heads, rows, columns)."
    )


class WhyJoined(BaseModel):
    """Detail and gist, joined by a soft maximum."""

    score: float
    detail: float
    gist: float
    share: float


class Why(BaseModel):
    """Why a picture scores as it does for these words."""

    image: str
    text: str
    score: float = Field(description="The sum of the parts, bigger = closer.")
    similarity: str
    parts: list[WhyPart]
    facts: dict[str, float] = Field(description="What else is known: σ of both sides, …")
    joined: WhyJoined | None
    probability: float | None
    about_probability: str = Field(description="What the probability refers to, or why there is none.")
    words: list[WhyWord]
    image_influence: list[list[float]] | None = Field(
        description="(rows, columns) the score less the score of the picture with that part in its mean colour; none "
        "where the model cannot look at pictures. At most 8 × 8 parts: cells of the model's, or several together."
    )
    image_attention: list[WhyAttention]
    text_attention: list[WhyAttention]
    about_image_attention: str = Field(
        description="Where there is none, why: the head attends to nothing, does not say, or was not looked at."
    )
    about_text_attention: str = Field(description="The same of the text.")
    view: list[float] = Field(
        description="What the model looks at: left, top, right, bottom, as shares of the picture."
    )
    notes: list[str]


def explained(search: Searcher, query: WhyQuery, max_pixels: int, is_wanted: Callable[[], bool]) -> Why:
    """The explanation; `is_wanted` says whether somebody waits for it."""
    from halation.report import explain_hit  # loads torch, which a search has loaded already

    told = explain_hit(search, query.id, query.text, max_pixels=max_pixels, is_wanted=is_wanted).to_dict()
    return Why(**told)
