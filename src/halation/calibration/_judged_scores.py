"""`JudgedScores`: scores of queries against a gallery, and what matches. Everything in this room is fitted on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation._errors import InputError
from halation.data import Direction

__all__ = ["FAR", "MATCH", "PAGE", "POSSIBLE", "JudgedScores", "best_first"]

PAGE = 24
"""How many of a query's best candidates are calibrated unless you say otherwise: a page of hits."""


MATCH, POSSIBLE, FAR = 0.5, 0.2, 0.05
"""An item matches if the judge accepts it with this probability; it may match; below the last it does not come near."""


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """The queries of one direction, each with at least one match in the gallery.

    scores        (q, n), bigger = closer
    truth         (q, n): the probability that the item answers the query, by the judge; true or false where it is known
    query_image   (q,) and item_image (n,): the image each belongs to. The captions of an image are not independent, so
                  everything is split and resampled by image
    uncertainty   (q,) the query's σ; None for a model of points

    >>> import numpy as np
    >>> scores = np.array([[0.9, 0.1], [0.8, 0.3], [0.2, 0.7]])
    >>> image = np.array([0, 0, 1])
    >>> judged = JudgedScores(scores, image[:, None] == np.arange(2), image, np.arange(2))
    >>> judged.gallery, judged.positives, len(judged.of_images(np.array([1])))
    (2, 1.0, 1)
    """

    scores: FloatArray
    truth: FloatArray | BoolArray
    query_image: IntArray
    item_image: IntArray
    uncertainty: FloatArray | None = None
    direction: Direction = "t2i"

    def __post_init__(self) -> None:
        q, n = self.scores.shape
        expected = {
            "truth": (self.truth, (q, n)),
            "query_image": (self.query_image, (q,)),
            "item_image": (self.item_image, (n,)),
            "uncertainty": (self.uncertainty, (q,)),
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
    def matches(self) -> BoolArray:
        """(q, n): whether the item answers the query, more likely than not."""
        return np.asarray(self.truth >= MATCH)

    @cached_property
    def positives(self) -> float:
        """The mean number of matches per query that the judge expects."""
        return float(self.truth.sum(dtype=np.float64) / len(self))

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
            truth=self.truth[block],
            query_image=self.query_image[rows],
            item_image=self.item_image[columns],
            uncertainty=None if self.uncertainty is None else self.uncertainty[rows],
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

    def without(self, least: float = POSSIBLE) -> FloatArray:
        """The scores with −inf for every item that matches with probability `least` or more, (q, n)."""
        return np.where(self.truth >= least, -np.inf, self.scores)

    def top(self, k: int = PAGE) -> tuple[FloatArray, FloatArray]:
        """Scores and match probabilities of each query's k best, best first, (q, min(k, n))."""
        order = best_first(self.scores, k, self.matches)
        truth = np.take_along_axis(self.truth, order, axis=1).astype(np.float64)
        return np.take_along_axis(self.scores, order, axis=1).astype(np.float64), truth

    def candidates(self, k: int = PAGE) -> tuple[FloatArray, FloatArray]:
        """Scores and match probabilities of the candidates that probabilities are fitted on, best first.

        Where people judge, each query's k best, (q, min(k, n)). Where matches are known as true or false, every query
        comes a second time with all its matches taken out, (2q, min(k, n)), −inf where that leaves fewer than k: a
        truth of one match per query would teach that something always matches.
        """
        scores, truth = self.top(k)
        if self.is_graded:
            return scores, truth
        left = self.without(MATCH)
        none = np.take_along_axis(left, best_first(left, k), axis=1).astype(np.float64)
        return np.concatenate([scores, none]), np.concatenate([truth, np.zeros_like(truth)])

    def candidate_values(self, function: Callable[[FloatArray], FloatArray], k: int = PAGE) -> FloatArray:
        """What `function` makes of the candidates of `candidates(k)`, in their shape.

        It takes scores of queries against all items (q, n), and must rank items as the scores do.
        """
        galleries = [self.scores] if self.is_graded else [self.scores, self.without(MATCH)]
        values = [function(scores.astype(np.float64)) for scores in galleries]
        return np.concatenate([-np.sort(-np.nan_to_num(part), axis=1)[:, :k] for part in values])

    @property
    def candidate_uncertainty(self) -> FloatArray | None:
        """The σ of the query of each row of `candidates`."""
        return self.uncertainty if self.is_graded or self.uncertainty is None else np.tile(self.uncertainty, 2)

    @property
    def is_graded(self) -> bool:
        """Whether the judge gives probabilities, about each pair by itself, and not true or false."""
        return self.truth.dtype.kind == "f"

    @property
    def has_sigma(self) -> bool:
        """Whether every query has an uncertainty above 0, and they differ."""
        return self.uncertainty is not None and bool((self.uncertainty > 0).all()) and bool(np.ptp(self.uncertainty))

    @property
    def base_rate(self) -> float:
        """The share of all pairs of query and item that match, in the galleries of `candidates`."""
        if self.is_graded:
            return self.positives / self.gallery
        matches = int(self.matches.sum())
        return matches / (2 * self.scores.size - matches)


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
