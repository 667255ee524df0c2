"""What a search gives back: hits with a probability, and what the query itself is worth."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from halation._errors import InputError

__all__ = ["Answer", "Hit", "Item", "Side", "UnknownItem"]

Side = Literal["images", "captions"]
"""What an item is, and what a query asks for."""


class UnknownItem(InputError):
    """No item of that id is in the index."""


@dataclass(frozen=True)
class Item:
    """One thing that was indexed.

    id          as the source calls it: a path below its root, a dataset's id, "captions.txt:12"
    side        "images" or "captions"
    captions    of a picture: what is known about it; of a caption: itself
    path        the picture's file, if it is still there and inside the indexed roots
    uncertainty geometric mean of σ; None for models without one
    """

    id: str
    side: Side
    captions: list[str] = field(default_factory=list)
    path: Path | None = None
    uncertainty: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {**asdict(self), "path": None if self.path is None else str(self.path)}


@dataclass(frozen=True)
class Hit:
    """An item that was found, the best first.

    score         the model's similarity, bigger = closer
    probability   that it matches, 0…1, as calibrated on a held-out part of the data; None where nothing was calibrated,
                  or below the rank up to which it was
    captions      of a picture: what is known about it; of a caption: itself
    path          the picture's file, if it is still there and inside the indexed roots
    """

    id: str
    score: float
    probability: float | None = None
    captions: list[str] = field(default_factory=list)
    path: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {**asdict(self), "path": None if self.path is None else str(self.path)}


@dataclass(frozen=True)
class Answer:
    """What was found, and how far to trust it.

    query            the words, or the picture's name
    side             "images" or "captions": what the hits are
    nothing_matches  True if even the best hit is below the abstention threshold
    ambiguity        "specific", "ordinary" or "broad", by the query's uncertainty; None where nothing was calibrated
    uncertainty      geometric mean of σ of the query; None for models without one
    notes            what you should know: words that were cut off, pictures that are gone, …
    within           if anything here matches, a match is among this many of the best with the probability `coverage`;
                     None where that is not known: not calibrated, or a larger gallery than was fitted

    >>> Answer("two dogs", [Hit("a.jpg", -0.5, 0.9)]).to_dict()["hits"][0]["probability"]
    0.9
    """

    query: str
    hits: list[Hit] = field(default_factory=list)
    nothing_matches: bool = False
    ambiguity: Literal["specific", "ordinary", "broad"] | None = None
    uncertainty: float | None = None
    encode_ms: float = 0.0
    search_ms: float = 0.0
    notes: list[str] = field(default_factory=list)
    side: Side = "images"
    within: int | None = None
    coverage: float | None = None

    @property
    def promise(self) -> str | None:
        """What `within` says, in words.

        >>> Answer("two dogs", within=7, coverage=0.9).promise
        'if anything here matches, a match is among the first 7 (holds for 90 % of queries)'
        """
        if self.within is None or self.coverage is None or self.nothing_matches:
            return None
        among = "the first" if self.within == 1 else f"among the first {self.within:,}"
        return f"if anything here matches, a match is {among} (holds for {100 * self.coverage:g} % of queries)"

    def to_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {**asdict(self), "hits": [hit.to_dict() for hit in self.hits], "promise": self.promise}
