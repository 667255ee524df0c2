"""`Facts`: all that a report says, as numbers and references to items; nothing of HTML, nothing of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from halation._arrays import FloatArray, IntArray
from halation.data import Direction
from halation.evaluation import Comparison, Report

__all__ = [
    "Absent",
    "Bars",
    "Certain",
    "Facts",
    "Gallery",
    "Histogram",
    "Items",
    "Knows",
    "Line",
    "Map",
    "Mark",
    "Placed",
    "Query",
    "Reliabilities",
    "RunFacts",
    "Training",
]

Knows = Literal["written", "judged", "classes", "all"]
"""How far a truth can be believed of the pairs it does not call right.

written   each caption has the picture it was written for; nobody looked at other pairs
judged    more pairs were judged (CxC, ECCV Caption), not all
classes   right is what is of the same class
all       every pair is known (drawn scenes)
"""

Mark = Literal["own", "right", ""]
"""own: the caption was written for that picture; right: a match by the truth, though nobody wrote it; or neither."""


@dataclass(frozen=True)
class Absent:
    """A section that cannot be there: why, and what to run to get it."""

    why: str
    remedy: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a figure; `run` is 0 for the run of the report, 1 for the one it is held against."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    run: int = 0


@dataclass(frozen=True)
class Histogram:
    """Counts of values between edges; `edges` has one more."""

    name: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Bars:
    """Shares of groups of queries in percent, each with its 95 % interval; `ends` are the groups' limits."""

    name: str
    ends: tuple[tuple[float, float], ...]
    sizes: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    run: int = 0


@dataclass(frozen=True)
class Training:
    """What a run wrote while it learnt: losses by step, validation by epoch; the epoch whose weights were kept."""

    losses: tuple[Line, ...]
    validation: tuple[Line, ...]
    kept: int | None


@dataclass(frozen=True)
class RunFacts:
    """A run in a line: name and recipe, what its model is, how long it learnt."""

    name: str
    recipe: str
    model: str
    seconds: float | None
    training: Training | Absent


@dataclass(frozen=True)
class Reliabilities:
    """What was said against what was so: (name, said, was, ECE) of each line; `note` says of what."""

    lines: tuple[tuple[str, tuple[float, ...], tuple[float, ...], float], ...]
    note: str
    missing: Absent | None = None  # the calibrated line, where the run has none
    seen: str = ""  # where the calibration was fitted on images that are shown here: which


@dataclass(frozen=True)
class Placed:
    """An item in a query's rankings. Equal values share a range of ranks: (first, last), 1 = best.

    ratio   the mean of min/max of the two ranks over random orders of equals: what the item adds to n · ASP
    """

    item: int
    score: float
    relevance: float
    by_score: tuple[int, int]
    by_meaning: tuple[int, int]
    ratio: float
    mark: Mark


@dataclass(frozen=True)
class Query:
    """One query with the heads of its rankings: by the run's scores, by meaning, and by the other run's scores."""

    direction: Direction
    item: int
    values: Mapping[str, float]  # metrics as fractions; "rank": of the first right answer
    right: int  # how many items the truth calls right
    sigma: float | None
    by_score: tuple[Placed, ...]
    by_meaning: tuple[Placed, ...]
    by_other: tuple[Placed, ...] = ()  # scores and ranks are the other run's


@dataclass(frozen=True)
class Gallery:
    """Queries worth looking at, and why these."""

    key: str
    title: str
    why: str
    direction: Direction
    queries: tuple[int, ...]  # indices of images or captions
    of: int  # how many there were to choose from


@dataclass(frozen=True)
class Certain:
    """The items with the smallest and the largest σ."""

    kind: Literal["images", "captions"]
    most: tuple[int, ...]
    least: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Map:
    """Images and captions on a plane.

    xy (n, 2); kinds (n,) 0 = image, 1 = caption; items (n,) their indices; shapes (n, 3): half-axes and angle of the
    one-σ ellipse, None for points
    """

    method: str
    xy: FloatArray
    kinds: IntArray
    items: IntArray
    shapes: FloatArray | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Items:
    """Names of the images, texts of the captions, which belongs to which."""

    names: tuple[str, ...]
    captions: tuple[str, ...]
    image_of: tuple[int, ...]

    @cached_property
    def _captions_of(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for caption, image in zip(self.captions, self.image_of, strict=True):
            found.setdefault(image, []).append(caption)
        return found

    def caption_of(self, image: int, besides: Collection[str] = ()) -> str:
        """The first caption written for an image that is not among those `besides` it; empty where there is none."""
        return next((text for text in self._captions_of.get(image, ()) if text not in besides), "")


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything a report says of a run on a split.

    report, other, comparison   the measures of the run, of the run it is held against, and run − other
    recall       per direction, share of queries with a right answer among the first K, over K
    found        pairs called positive from the best on: x positives found, y the share of the called that are right
    knows        what the truth knows of the pairs it does not call right
    agreement    per direction, ASP of the queries that R@1 calls hits and of those it calls misses
    galleries    in the order they are shown; their queries are all in `queries`
    """

    data: str
    runs: tuple[RunFacts, ...]
    items: Items
    report: Report
    other: Report | None
    comparison: Comparison | None
    recall: Mapping[Direction, tuple[Line, ...]]
    found: tuple[Line, ...]
    found_note: str
    reliability: Mapping[Direction, Reliabilities | Absent]
    fifths: Mapping[Direction, tuple[Bars, ...]] | Absent
    spread: tuple[Histogram, ...] | Absent
    agreement: Mapping[Direction, tuple[Histogram, ...]]
    galleries: tuple[Gallery, ...]
    certain: tuple[Certain, ...]
    queries: tuple[Query, ...]
    sigma: Mapping[str, FloatArray] = field(default_factory=dict)  # "images" and "captions", where there are any
    right: Mapping[str, IntArray] = field(default_factory=dict)  # how many answers each image and caption has
    knows: Knows = "written"
    map: Map | Absent = Absent("it was not asked for")
    notes: tuple[str, ...] = ()
