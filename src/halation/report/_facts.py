"""`Facts`: everything a report shows, as numbers and indices of items; no HTML, no models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from halation._arrays import FloatArray, IntArray
from halation.data import Direction
from halation.evaluation import Comparison, Report

__all__ = [
    "Bars",
    "CertaintyExtremes",
    "Facts",
    "Gallery",
    "Histogram",
    "Items",
    "Line",
    "Map",
    "Mark",
    "Missing",
    "Query",
    "RankedItem",
    "ReliabilityFacts",
    "ReliabilityLine",
    "RunFacts",
    "Training",
    "TruthCoverage",
]

TruthCoverage = Literal["written", "judged", "classes", "all"]
"""How much a truth knows about the pairs that it does not call right.

written   each caption has the image it was written for; nobody looked at other pairs
judged    more pairs were judged (CxC, ECCV Caption), but not all
classes   a pair is right if both are of the same class
all       every pair is known (drawn scenes)
"""

Mark = Literal["written", "right", ""]
"""written: the caption was written for that image; right: the truth calls it a match anyway; "": neither."""


@dataclass(frozen=True)
class Missing:
    """Why a part of the report is missing, and what to run to get it."""

    why: str
    remedy: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a figure. `run` is 0 for the run of the report, 1 for the run it is compared with."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    run: int = 0


@dataclass(frozen=True)
class Histogram:
    """Counts of values in bins; there is one more edge than there are bins."""

    name: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Bars:
    """A percentage for each group of queries, with its 95 % interval; `ranges` has the lowest and highest σ of each."""

    name: str
    ranges: tuple[tuple[float, float], ...]
    sizes: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    run: int = 0


@dataclass(frozen=True)
class Training:
    """The training log of a run: losses by step, validation by epoch, and the epoch whose weights it kept."""

    losses: tuple[Line, ...]
    validation: tuple[Line, ...]
    kept_epoch: int | None


@dataclass(frozen=True)
class RunFacts:
    """A run in one line: its name and recipe, its model, how long it trained."""

    name: str
    recipe: str
    model: str
    seconds: float | None
    training: Training | Missing


@dataclass(frozen=True)
class ReliabilityLine:
    """Predicted match probabilities against the observed shares of matches, and the expected calibration error."""

    name: str
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    ece: float


@dataclass(frozen=True)
class ReliabilityFacts:
    """The reliability of match probabilities in one direction.

    note          which hits were measured
    missing       why there is no calibrated line, if there is none
    fitted_here   if the calibrator was fitted on images of this report: a sentence that says on which
    """

    lines: tuple[ReliabilityLine, ...]
    note: str
    missing: Missing | None = None
    fitted_here: str = ""


@dataclass(frozen=True)
class RankedItem:
    """An item in a query's rankings. Tied items share a range of ranks, (first, last); 1 is best.

    ratio   min/max of the two ranks, averaged over random orders of ties: the mean over all items is the ASP
    """

    item: int
    score: float
    relevance: float
    score_ranks: tuple[int, int]
    relevance_ranks: tuple[int, int]
    ratio: float
    mark: Mark


@dataclass(frozen=True)
class Query:
    """One query with the first items of its rankings: by the run's scores, by relevance, by the other run's scores."""

    direction: Direction
    item: int
    values: Mapping[str, float]  # metrics as fractions; "rank": of the first right answer
    right_count: int  # how many items are right by the truth
    sigma: float | None
    by_score: tuple[RankedItem, ...]
    by_relevance: tuple[RankedItem, ...]
    by_other_score: tuple[RankedItem, ...] = ()  # with the other run's scores and ranks


@dataclass(frozen=True)
class Gallery:
    """Queries worth looking at, and why they were chosen."""

    key: str
    title: str
    why: str
    direction: Direction
    queries: tuple[int, ...]  # indices of images or captions
    candidates: int  # how many queries they were chosen from


@dataclass(frozen=True)
class CertaintyExtremes:
    """The items with the smallest and the largest σ, the most extreme first."""

    kind: Literal["images", "captions"]
    most_certain: tuple[int, ...]
    least_certain: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Map:
    """Images and captions on a plane.

    xy       (n, 2)
    kinds    (n,) 0 = image, 1 = caption
    items    (n,) indices of the images and captions
    shapes   (n, 3) half-axes and angle of the one-σ ellipses; None if embeddings are points
    """

    method: str
    xy: FloatArray
    kinds: IntArray
    items: IntArray
    shapes: FloatArray | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Items:
    """The names of the images, the texts of the captions, and the image each caption was written for."""

    names: tuple[str, ...]
    captions: tuple[str, ...]
    image_of: tuple[int, ...]

    @cached_property
    def _captions_of(self) -> dict[int, list[str]]:
        captions: dict[int, list[str]] = {}
        for caption, image in zip(self.captions, self.image_of, strict=True):
            captions.setdefault(image, []).append(caption)
        return captions

    def caption_of(self, image: int, excluding: Collection[str] = ()) -> str:
        """The first caption written for an image that is not among `excluding`; empty if there is none."""
        return next((text for text in self._captions_of.get(image, ()) if text not in excluding), "")


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything a report shows of a run on a split. `gather_facts` makes it, `write_page` makes the page of it.

    report, other, comparison   the measures of the run, of the run it is compared with, and run − other
    recall             per direction, R@K over K
    precision          of the highest-scored pairs: x right pairs found, y the percentage that is right so far
    recall_by_sigma    per direction, R@1 for each fifth of the queries by σ
    sigma_histograms   the distribution of σ
    asp_histograms     per direction, the ASP of the queries that are hits by R@1, and of those that are misses
    galleries          in the order they are shown; their queries are all in `queries`
    sigma              of "images" and "captions"; empty if embeddings are points
    right_counts       how many right answers each of the "images" and "captions" has
    coverage           how much the truth knows about the pairs that it does not call right
    """

    data: str
    runs: tuple[RunFacts, ...]
    items: Items
    report: Report
    other: Report | None
    comparison: Comparison | None
    recall: Mapping[Direction, tuple[Line, ...]]
    precision: tuple[Line, ...]
    precision_note: str
    reliability: Mapping[Direction, ReliabilityFacts | Missing]
    recall_by_sigma: Mapping[Direction, tuple[Bars, ...]] | Missing
    sigma_histograms: tuple[Histogram, ...] | Missing
    asp_histograms: Mapping[Direction, tuple[Histogram, ...]]
    galleries: tuple[Gallery, ...]
    certainty: tuple[CertaintyExtremes, ...]
    queries: tuple[Query, ...]
    sigma: Mapping[str, FloatArray] = field(default_factory=dict)
    right_counts: Mapping[str, IntArray] = field(default_factory=dict)
    coverage: TruthCoverage = "written"
    map: Map | Missing = Missing("it was not computed")
    notes: tuple[str, ...] = ()
