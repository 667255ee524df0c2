"""`JudgedScores`: scores of queries against a gallery, and what matches. Everything in this room is fitted on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation._errors import InputError
from halation.data import Direction

__all__ = ["PAGE", "JudgedScores", "best_first"]

PAGE = 24
"""How many of a query's best candidates are calibrated unless you say otherwise: a page of hits."""


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """The queries of one direction, each with at least one match in the gallery.

    scores        (q, n), bigger = closer
    matches       (q, n) bool: whether the item answers the query; a query may have many matches
    query_image   (q,) and item_image (n,): the image each belongs to. The captions of an image are not independent, so
                  everything is split and resampled by image
    uncertainty   (q,) the query's σ; None for a model of points
    plausible     (q, n) bool: items that may well match though nobody annotated them; None where the truth is complete

    >>> import numpy as np
    >>> scores = np.array([[0.9, 0.1], [0.8, 0.3], [0.2, 0.7]])
    >>> image = np.array([0, 0, 1])
    >>> judged = JudgedScores(scores, image[:, None] == np.arange(2), image, np.arange(2))
    >>> judged.gallery, judged.positives, len(judged.of_images(np.array([1])))
    (2, 1.0, 1)
    """

    scores: FloatArray
    matches: BoolArray
    query_image: IntArray
    item_image: IntArray
    uncertainty: FloatArray | None = None
    plausible: BoolArray | None = None
    direction: Direction = "t2i"

    def __post_init__(self) -> None:
        q, n = self.scores.shape
        expected = {
            "matches": (self.matches, (q, n)),
            "query_image": (self.query_image, (q,)),
            "item_image": (self.item_image, (n,)),
            "uncertainty": (self.uncertainty, (q,)),
            "plausible": (self.plausible, (q, n)),
        }
        for name, (array, shape) in expected.items():
            if array is not None and array.shape != shape:
                raise InputError(f"{name} has shape {array.shape}, which does not fit scores of shape {(q, n)}")
        if q == 0 or not self.matches.any(axis=1).all():
            raise InputError("every query needs a match in the gallery; leave out those that have none")

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def gallery(self) -> int:
        """The number of items each query is ranked against."""
        return int(self.scores.shape[1])

    @cached_property
    def images(self) -> IntArray:
        """The images of the queries, sorted, each once."""
        return np.unique(self.query_image)

    @cached_property
    def positives(self) -> float:
        """The mean number of matches per query."""
        return float(self.matches.sum() / len(self))

    @property
    def matching_or_plausible(self) -> BoolArray:
        """(q, n): whether an item matches the query or may well match it."""
        return self.matches if self.plausible is None else self.matches | self.plausible

    def of_images(self, images: IntArray) -> JudgedScores:
        """The queries and the gallery of these images alone, without queries that lose their last match."""
        rows = np.flatnonzero(np.isin(self.query_image, images))
        columns = np.flatnonzero(np.isin(self.item_image, images))
        rows = rows[self.matches[np.ix_(rows, columns)].any(axis=1)]
        return self._part(rows, columns)

    def queries_of(self, images: IntArray) -> JudgedScores:
        """The queries of these images alone, against the whole gallery."""
        return self.queries(np.flatnonzero(np.isin(self.query_image, images)))

    def queries(self, rows: IntArray) -> JudgedScores:
        """These queries alone, against the whole gallery."""
        return self._part(rows, np.arange(self.gallery))

    def _part(self, rows: IntArray, columns: IntArray) -> JudgedScores:
        block = np.ix_(rows, columns)
        return replace(
            self,
            scores=self.scores[block],
            matches=self.matches[block],
            query_image=self.query_image[rows],
            item_image=self.item_image[columns],
            uncertainty=None if self.uncertainty is None else self.uncertainty[rows],
            plausible=None if self.plausible is None else self.plausible[block],
        )

    def halves(self, seed: int) -> tuple[IntArray, IntArray]:
        """The images in two random halves."""
        drawn = np.random.default_rng(seed).permutation(self.images)
        half = len(drawn) // 2
        return np.sort(drawn[:half]), np.sort(drawn[half:])

    def smaller_galleries(self, least: int, seed: int) -> list[JudgedScores]:
        """This, and its halves, quarters and eighths by image, as long as `least` items are left in each."""
        generator = np.random.default_rng(seed)
        images = np.unique(self.item_image)
        galleries = [self]
        for parts in (2, 4, 8):
            if self.gallery // parts < least:
                break
            drawn = generator.permutation(images)
            galleries += [self.of_images(part) for part in np.array_split(drawn, parts)]
        return galleries

    @property
    def without_matches(self) -> FloatArray:
        """The scores with −inf for all that matches or may match, (q, n): galleries in which nothing answers."""
        return np.where(self.matching_or_plausible, -np.inf, self.scores)

    def top(self, k: int) -> tuple[FloatArray, BoolArray]:
        """Scores and matches of each query's k best, best first, (q, min(k, n))."""
        order = best_first(self.scores, k, self.matches)
        return np.take_along_axis(self.scores, order, axis=1), np.take_along_axis(self.matches, order, axis=1)

    def mixed(self, k: int = PAGE) -> tuple[FloatArray, BoolArray]:
        """Scores and matches of the k best where half of the queries have a match, (2q, min(k, n)).

        First every query in the gallery as it is, then every query with all that matches or may match taken out;
        −inf where that leaves fewer than k.
        """
        scores, matches = self.top(k)
        left = self.without_matches
        none = np.take_along_axis(left, best_first(left, k), axis=1)
        return np.concatenate([scores, none]), np.concatenate([matches, np.zeros_like(matches)])

    def mixed_values(self, function: Callable[[FloatArray], FloatArray], k: int = PAGE) -> FloatArray:
        """What `function` makes of the candidates of `mixed(k)`, (2q, min(k, n)).

        It takes scores of queries against all items (q, n), and must rank items as the scores do.
        """
        both = [function(scores.astype(np.float64)) for scores in (self.scores, self.without_matches)]
        return np.concatenate([-np.sort(-np.nan_to_num(values), axis=1)[:, :k] for values in both])

    @property
    def mixed_match_rate(self) -> float:
        """The share of all pairs of query and item that match, in the galleries of `mixed`."""
        return float(self.matches.sum() / (self.scores.size + np.isfinite(self.without_matches).sum()))


def best_first(scores: FloatArray, top: int, matches: BoolArray | None = None) -> IntArray:
    """Columns of the `top` biggest scores of each row, biggest first, (q, min(top, n)).

    With `matches` (q, n), what does not match comes first among equal scores: ties never help.

    >>> best_first(np.array([[0.7, 0.7, 0.2]]), 1, np.array([[True, False, False]]))
    array([[1]])
    """
    if top < 1:
        raise InputError(f"top is {top}; it must be 1 or more")
    top = min(top, scores.shape[1])
    late = np.zeros(1, dtype=np.bool_) if matches is None else matches
    order = np.argpartition(-scores, top - 1, axis=1)[:, :top]
    lowest = np.take_along_axis(scores, order, axis=1).min(axis=1, keepdims=True)
    crowded = np.flatnonzero((scores >= lowest).sum(axis=1) > top) if matches is not None else ()
    for row in crowded:  # more equal scores than ranks left: those that do not match take them
        order[row] = np.lexsort((late[row], -scores[row]))[:top]
    best = np.take_along_axis(scores, order, axis=1)
    marks = np.broadcast_to(late, best.shape) if matches is None else np.take_along_axis(late, order, axis=1)
    within = np.lexsort((marks, -best), axis=1)
    return np.take_along_axis(order, within, axis=1)
