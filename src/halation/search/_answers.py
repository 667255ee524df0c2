"""The answer to a search: hits with match probabilities, and how far to trust them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from halation._errors import InputError
from halation.calibration import Verdict

__all__ = ["Answer", "Hit", "Item", "Side", "UnknownItem"]

Side = Literal["images", "captions"]
"""The two kinds of items; a query asks for one of them."""


class UnknownItem(InputError):
    """The index has no item with this id."""


@dataclass(frozen=True)
class Item:
    """An item of an index.

    id          the source's name for it: a path below its root, a dataset's id, "captions.txt:12"
    side        "images" or "captions"
    captions    of a picture: the captions it came with; of a caption: itself
    path        the picture's file, if it is still there and inside the indexed roots
    uncertainty geometric mean of σ; None for models without one
    """

    id: str
    side: Side
    captions: list[str] = field(default_factory=list)
    path: Path | None = None
    uncertainty: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {**asdict(self), "path": None if self.path is None else str(self.path)}


@dataclass(frozen=True)
class Hit:
    """An item that a search found.

    score         the model's similarity, bigger = closer
    probability   that it matches, 0…1, calibrated on held-out data; None if the run is not calibrated, or below the
                  rank up to which it is
    captions      of a picture: the captions it came with; of a caption: itself
    path          the picture's file, if it is still there and inside the indexed roots
    """

    id: str
    score: float
    probability: float | None = None
    captions: list[str] = field(default_factory=list)
    path: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {**asdict(self), "path": None if self.path is None else str(self.path)}


@dataclass(frozen=True)
class Answer:
    """The hits of a query, best first, and how far to trust them.

    query            the words, or the picture's name
    side             "images" or "captions": the kind of the hits
    verdict          does anything here match? "matches" and "nothing" are right for nine in ten such queries, unless
                     calibration asked for another precision; the rest is "unsure". None if the run is not calibrated
    expected_matches how many of the hits match, on average: the sum of their probabilities; None if they have none
    ambiguity        "specific", "ordinary" or "broad", by the query's uncertainty; None if the run is not calibrated
    uncertainty      geometric mean of σ of the query; None for models without one
    notes            for the reader: words that were cut off, pictures that are gone, …
    within           if anything here matches, a match is among this many of the best with the probability `coverage`;
                     None if that is unknown: the run is not calibrated, or the gallery is larger than the fitted one

    >>> Answer("two dogs", [Hit("a.jpg", -0.5, 0.9)]).to_dict()["hits"][0]["probability"]
    0.9
    """

    query: str
    hits: list[Hit] = field(default_factory=list)
    verdict: Verdict | None = None
    ambiguity: Literal["specific", "ordinary", "broad"] | None = None
    uncertainty: float | None = None
    encode_ms: float = 0.0
    search_ms: float = 0.0
    notes: list[str] = field(default_factory=list)
    side: Side = "images"
    within: int | None = None
    coverage: float | None = None
    expected_matches: float | None = None

    @property
    def promise(self) -> str | None:
        """The meaning of `within` in a sentence.

        >>> Answer("two dogs", within=7, coverage=0.9).promise
        'if anything here matches, a match is among the first 7 (holds for 90 % of queries)'
        """
        if self.within is None or self.coverage is None or self.verdict == "nothing":
            return None
        among = "the first" if self.within == 1 else f"among the first {self.within:,}"
        return f"if anything here matches, a match is {among} (holds for {100 * self.coverage:g} % of queries)"

    @property
    def expectation(self) -> str | None:
        """The meaning of `expected_matches` in a sentence; None where nothing matches.

        >>> Answer("two dogs", [Hit("a.jpg", 1, 0.9), Hit("b.jpg", 0, 0.3)], expected_matches=1.2).expectation
        'about 1 of these 2 matches'
        """
        if self.expected_matches is None or self.verdict == "nothing":
            return None
        judged, expected = sum(hit.probability is not None for hit in self.hits), round(self.expected_matches)
        if judged == len(self.hits) == 1:
            return "it probably matches" if expected else "it may not match"
        is_unsure = self.verdict == "unsure"
        amount = f"{'perhaps' if is_unsure else 'about'} {expected:,}"
        if expected == 0:
            amount = "perhaps none" if is_unsure else "hardly any"
        these = f"these {judged:,}" if judged == len(self.hits) else f"the first {judged:,}"
        return f"{amount} of {these} {'matches' if expected == 1 else 'match'}"

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        sentences = {"promise": self.promise, "expectation": self.expectation}
        return {**asdict(self), "hits": [hit.to_dict() for hit in self.hits], **sentences}
