"""What goes over the wire, as OpenAPI describes it."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from halation.search import Answer, Hit, Item

__all__ = [
    "About", "Found", "FoundItem", "Health", "Listing", "Problem", "Reloaded", "Shown", "TextQuery", "Token", "Want",
    "found", "sayable", "shown",
]  # fmt: skip

Want = Literal["auto", "images", "captions"]


def sayable(text: str) -> str:
    """JSON can write half of a character ("\\\\ud800"), which no answer could repeat."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode (half of a surrogate pair)") from None
    return text


def _whole(number: object) -> object:
    """JSON has one kind of number: 13.0 is an integer there."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


class TextQuery(BaseModel):
    """Words to look for."""

    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, AfterValidator(sayable)] = Field(
        min_length=1,
        description="What to look for, in words.",
        examples=["two dogs in the snow"],
        json_schema_extra={"pattern": r"\S"},  # said here, checked by the search, which says it in words
    )
    k: Annotated[int, BeforeValidator(_whole)] = Field(
        10, ge=1, strict=True, description="How many hits; an index with fewer items gives all it has."
    )
    want: Want = Field("auto", description="Pictures or captions; auto: pictures where the index has any.")


class Token(BaseModel):
    """The server's token, to be exchanged for a cookie."""

    model_config = ConfigDict(extra="forbid")
    token: str = Field(max_length=1024)


class Problem(BaseModel):
    """Why a request was not served, in words."""

    error: str


class Shown(BaseModel):
    """An item of the index."""

    id: str
    side: Literal["images", "captions"]
    captions: list[str] = Field(description="Of a picture: what is known about it; of a caption: itself.")
    image: str | None = Field(description="Where its picture is, relative to the server's address.")
    uncertainty: float | None = Field(None, description="Geometric mean of σ; none for models without one.")


class FoundItem(BaseModel):
    """An item that was found."""

    id: str
    score: float = Field(description="The model's similarity, bigger = closer.")
    probability: float | None = Field(
        description="That it matches, 0…1, calibrated; none where it is not, or so far down."
    )
    captions: list[str]
    image: str | None


class Found(BaseModel):
    """What was found, best first, and how far to trust it."""

    query: str
    found: Literal["images", "captions"] = Field(description="What the hits are.")
    hits: list[FoundItem]
    nothing: bool = Field(description="True: even the best hit is too far away to be called a match.")
    ambiguity: Literal["specific", "ordinary", "broad"] | None = Field(description="How much the query can mean.")
    uncertainty: float | None
    encode_ms: float
    search_ms: float
    notes: list[str] = Field(description="What a person should know: words cut off, pictures gone.")
    within: int | None = Field(
        description="If anything matches, a match is among so many of the best; none: not known."
    )
    held: float | None = Field(description="The share of queries that `within` holds for.")
    promise: str | None = Field(description="What `within` says, in words.")


class Listing(BaseModel):
    """A part of the index, in its own order."""

    total: int
    items: list[Shown]


class About(BaseModel):
    """What is being served, and what may be asked of it."""

    images: int
    captions: int
    calibrated: bool
    similarity: str
    notes: list[str] = Field(description="What to know of all answers: that it cannot tell when nothing matches, say.")
    generation: int = Field(description="Counts the reloads.")
    version: str
    max_k: int
    max_upload: int
    max_pixels: int


class Health(BaseModel):
    """The server answers."""

    status: Literal["ok"] = "ok"
    items: int
    generation: int


class Reloaded(BaseModel):
    """The new index is in use."""

    generation: int
    items: int


def found(answer: Answer) -> Found:
    """An answer without what is nobody's business: the files' places on the server."""
    hits = [_hit(hit, answer.found == "images") for hit in answer.hits]
    return Found(
        query=answer.query, found=answer.found, hits=hits, nothing=answer.nothing, ambiguity=answer.ambiguity,
        uncertainty=answer.uncertainty, encode_ms=answer.encode_ms, search_ms=answer.search_ms, notes=answer.notes,
        within=answer.within, held=answer.held, promise=answer.promise,
    )  # fmt: skip


def shown(item: Item) -> Shown:
    """An item likewise."""
    image = _image_url(item.id) if item.side == "images" else None
    return Shown(id=item.id, side=item.side, captions=item.captions, image=image, uncertainty=item.uncertainty)


def _hit(hit: Hit, is_image: bool) -> FoundItem:
    image = _image_url(hit.id) if is_image else None
    return FoundItem(id=hit.id, score=hit.score, probability=hit.probability, captions=hit.captions, image=image)


def _image_url(item: str) -> str:
    return f"items/{quote(item, safe='')}/image"
