"""The JSON of requests and answers, as OpenAPI describes it."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from halation import search

__all__ = [
    "About", "Answer", "ErrorMessage", "ExplainQuery", "Explanation", "Health", "Item", "ItemPage", "Reloaded",
    "SessionToken", "TextQuery", "Want", "answer_schema", "item_schema",
]  # fmt: skip

Want = Literal["auto", "images", "captions"]


def _valid_unicode(text: str) -> str:
    """Check for half a surrogate pair: JSON can write one ("\\\\ud800"), but no answer could repeat it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode (half of a surrogate pair)") from None
    return text


def _whole_number(number: object) -> object:
    """Turn 13.0 into 13: JSON does not tell integers from floats."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


_Text = Annotated[str, AfterValidator(_valid_unicode)]


class TextQuery(BaseModel):
    """Words to search for."""

    model_config = ConfigDict(extra="forbid")
    text: _Text = Field(
        min_length=1,
        description="What to search for, in words.",
        examples=["two dogs in the snow"],
        json_schema_extra={"pattern": r"\S"},  # documented here; the search checks it, with a better message
    )
    k: Annotated[int, BeforeValidator(_whole_number)] = Field(
        10, ge=1, strict=True, description="How many hits; an index with fewer items returns all of them."
    )
    want: Want = Field("auto", description="Pictures or captions; auto: pictures where the index has any.")


class SessionToken(BaseModel):
    """The server's token, to be exchanged for a cookie."""

    model_config = ConfigDict(extra="forbid")
    token: str = Field(max_length=1024)


class ErrorMessage(BaseModel):
    """Why a request was not served."""

    error: str


class Item(BaseModel):
    """An item of the index."""

    id: str
    side: Literal["images", "captions"]
    captions: list[str] = Field(description="A picture's known captions, or the caption itself.")
    image: str | None = Field(description="Address of its picture, relative to the server's.")
    uncertainty: float | None = Field(None, description="Geometric mean of σ; null for models without one.")


class Hit(BaseModel):
    """An item that was found."""

    id: str
    score: float = Field(description="The model's similarity, bigger = closer.")
    probability: float | None = Field(
        description="Calibrated match probability, 0…1; null without calibration, or below the calibrated ranks."
    )
    captions: list[str]
    image: str | None = Field(description="Address of its picture, relative to the server's.")


class Answer(BaseModel):
    """The hits of a query, best first, and how far to trust them."""

    query: str
    side: Literal["images", "captions"] = Field(description="Whether the hits are images or captions.")
    hits: list[Hit]
    verdict: Literal["matches", "unsure", "nothing"] | None = Field(
        description="Whether anything here matches: yes, not sure, no; null without calibration."
    )
    expected_matches: float | None = Field(
        description="How many of the hits match, on average; null without probabilities."
    )
    expectation: str | None = Field(description="What `expected_matches` says, in words; null where nothing matches.")
    ambiguity: Literal["specific", "ordinary", "broad"] | None = Field(description="How much the query can mean.")
    uncertainty: float | None
    encode_ms: float
    search_ms: float
    notes: list[str] = Field(description="What you should know, such as words cut off or pictures gone.")
    within: int | None = Field(description="If anything matches, a match is among this many of the best hits.")
    coverage: float | None = Field(description="The share of queries that `within` holds for.")
    promise: str | None = Field(description="What `within` says, in words.")


class ItemPage(BaseModel):
    """A page of items, in the order of the index."""

    total: int
    items: list[Item]


class About(BaseModel):
    """What is served, and the limits of a request."""

    images: int
    captions: int
    calibrated: bool
    judge: str | None = Field(
        description="Whose judgement a probability predicts: people (or a level of it), annotations or exact; null "
        "without calibration."
    )
    similarity: str
    notes: list[str] = Field(description="What applies to all answers, such as why there are no probabilities.")
    generation: int = Field(description="Counts the reloads.")
    version: str
    max_k: int
    max_upload: int
    max_pixels: int


class Health(BaseModel):
    """Proof that the server answers."""

    status: Literal["ok"] = "ok"
    items: int
    generation: int


class Reloaded(BaseModel):
    """The new index is in use."""

    generation: int
    items: int


class ExplainQuery(BaseModel):
    """A picture of the index and the words it was found by."""

    model_config = ConfigDict(extra="forbid")
    text: _Text = Field(
        min_length=1,
        description="The words, as they were searched for.",
        examples=["two dogs in the snow"],
        json_schema_extra={"pattern": r"\S"},
    )
    id: _Text = Field(min_length=1, description="The picture's id, as a hit gives it.")


class ScorePart(BaseModel):
    """One of the numbers that add up to a score."""

    name: str
    value: float
    formula: str


class QueryWord(BaseModel):
    """A word of the query."""

    word: str
    known: bool = Field(description="Whether the model has a vector for it.")
    influence: float | None = Field(
        description="The score minus the score of the query without this word; null after the first 48 words."
    )


class Attention(BaseModel):
    """Where a head looks."""

    of: str = Field(description="What it looks for: mean, spread, points, …")
    heads: list[str]
    weights: list[list[float]] | list[list[list[float]]] = Field(
        description="Over words (heads, words), over a picture (heads, rows, columns)."
    )


class Explanation(BaseModel):
    """Why a picture scores as it does for these words."""

    image: str
    text: str
    score: float = Field(description="The sum of the parts, bigger = closer.")
    similarity: str
    parts: list[ScorePart]
    facts: dict[str, float] = Field(description="Other numbers, such as σ of both sides.")
    probability: float | None
    about_probability: str = Field(description="What the probability refers to, or why there is none.")
    words: list[QueryWord]
    image_influence: list[list[float]] | None = Field(
        description="(rows, columns) the score minus the score of the picture with that part in its mean colour; null "
        "if the model cannot look at pictures. At most 8 × 8 parts: the model's cells, or groups of them."
    )
    image_attention: list[Attention]
    text_attention: list[Attention]
    about_image_attention: str = Field(
        description="Why there is none: the head has none or does not report it, or the model did not see the picture."
    )
    about_text_attention: str = Field(description="The same for the text.")
    view: list[float] = Field(
        description="The part that the model sees: left, top, right, bottom, as shares of the picture."
    )
    notes: list[str]


def answer_schema(answer: search.Answer) -> Answer:
    """An answer as JSON gives it, without the paths of files on the server."""
    return Answer(
        query=answer.query, side=answer.side, hits=[_hit(hit, answer.side == "images") for hit in answer.hits],
        verdict=answer.verdict, expected_matches=answer.expected_matches, expectation=answer.expectation,
        ambiguity=answer.ambiguity, uncertainty=answer.uncertainty,
        encode_ms=answer.encode_ms, search_ms=answer.search_ms, notes=answer.notes,
        within=answer.within, coverage=answer.coverage, promise=answer.promise,
    )  # fmt: skip


def item_schema(item: search.Item) -> Item:
    """An item as JSON gives it, without the paths of files on the server."""
    image = _image_url(item.id) if item.side == "images" else None
    return Item(id=item.id, side=item.side, captions=item.captions, image=image, uncertainty=item.uncertainty)


def _hit(hit: search.Hit, is_image: bool) -> Hit:
    image = _image_url(hit.id) if is_image else None
    return Hit(id=hit.id, score=hit.score, probability=hit.probability, captions=hit.captions, image=image)


def _image_url(item: str) -> str:
    return f"items/{quote(item, safe='')}/image"
