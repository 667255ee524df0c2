"""`JudgedScores`: scores of queries against a gallery, with what matches; what everything in this room is fitted on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation._errors import InputError
from halation.calibration._candidates import best_first
from halation.data import Direction

__all__ = ["JudgedScores"]


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """Queries of one direction, each with at least one match in the gallery.

    scores        (q, n), bigger = closer
    matches       (q, n) which item answers which query; any number
    query_image   (q,) and item_image (n,): the image each belongs to. An image's captions are not independent, so
                  everything is split and resampled by image
    uncertainty   (q,) the query's σ; None for a model of points
    near          (q, n) items that may well match though nobody annotated them; None where the truth is complete

    >>> import numpy as np
    >>> scores = np.array([[0.9, 0.1], [0.8, 0.3], [0.2, 0.7]])
    >>> own = np.array([0, 0, 1])
    >>> judged = JudgedScores(scores, own[:, None] == np.arange(2), own, np.arange(2))
    >>> judged.gallery, judged.positives, len(judged.of(np.array([1])))
    (2, 1.0, 1)
    """

    scores: FloatArray
    matches: BoolArray
    query_image: IntArray
    item_image: IntArray
    uncertainty: FloatArray | None = None
    near: BoolArray | None = None
    direction: Direction = "t2i"

    def __post_init__(self) -> None:
        q, n = self.scores.shape
        fits = (
            self.matches.shape == (q, n) and self.query_image.shape == (q,) and self.item_image.shape == (n,),
            self.uncertainty is None or self.uncertainty.shape == (q,),
            self.near is None or self.near.shape == (q, n),
        )
        if not all(fits):
            raise InputError(f"what is judged does not fit the scores {(q, n)}: one match a pair, one image an item")
        if q == 0 or not self.matches.any(axis=1).all():
            raise InputError("every query needs a match in the gallery; leave out those that have none")

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def gallery(self) -> int:
        """How many items there are to find."""
        return int(self.scores.shape[1])

    @cached_property
    def images(self) -> IntArray:
        """Images that ask, in order, each once."""
        return np.unique(self.query_image)

    @cached_property
    def positives(self) -> float:
        """How many items match a query, on average."""
        return float(self.matches.sum() / len(self))

    def of(self, images: IntArray) -> JudgedScores:
        """Queries and gallery of these images alone; queries that lose their last match go."""
        rows = np.flatnonzero(np.isin(self.query_image, images))
        columns = np.flatnonzero(np.isin(self.item_image, images))
        rows = rows[self.matches[np.ix_(rows, columns)].any(axis=1)]
        return self._part(rows, columns)

    def asked_by(self, images: IntArray) -> JudgedScores:
        """Queries of these images alone, the gallery as it is."""
        return self.rows(np.flatnonzero(np.isin(self.query_image, images)))

    def rows(self, queries: IntArray) -> JudgedScores:
        """These queries alone, the gallery as it is."""
        return self._part(queries, np.arange(self.gallery))

    def _part(self, rows: IntArray, columns: IntArray) -> JudgedScores:
        block = np.ix_(rows, columns)
        return replace(
            self,
            scores=self.scores[block],
            matches=self.matches[block],
            query_image=self.query_image[rows],
            item_image=self.item_image[columns],
            uncertainty=None if self.uncertainty is None else self.uncertainty[rows],
            near=None if self.near is None else self.near[block],
        )

    def halves(self, seed: int) -> tuple[IntArray, IntArray]:
        """The images in two halves at random."""
        drawn = np.random.default_rng(seed).permutation(self.images)
        half = len(drawn) // 2
        return np.sort(drawn[:half]), np.sort(drawn[half:])

    def smaller(self, least: int, seed: int) -> list[JudgedScores]:
        """This, and what it would be with a half, a quarter and an eighth of the images, if `least` items are left."""
        generator = np.random.default_rng(seed)
        everything = np.unique(self.item_image)
        found = [self]
        for part in (2, 4, 8):
            if self.gallery // part < least:
                break
            drawn = generator.permutation(everything)
            found += [self.of(own) for own in np.array_split(drawn, part)]
        return found

    @property
    def taken_out(self) -> FloatArray:
        """The scores with −inf at all that matches or may match, (q, n): every query where nothing answers it."""
        out = self.matches if self.near is None else self.matches | self.near
        return np.where(out, -np.inf, self.scores)

    def mixed(self, k: int) -> tuple[FloatArray, BoolArray]:
        """Scores and matches of the k best where half of the queries have a match, (2q, min(k, n)).

        First every query with the gallery as it is, then every query with all that matches or may match taken out;
        −inf where that leaves less than k.
        """
        scores, matches = self.top(k)
        left = self.taken_out
        none = np.take_along_axis(left, best_first(left, k), axis=1)
        return np.concatenate([scores, none]), np.concatenate([matches, np.zeros_like(matches)])

    @property
    def mixed_rate(self) -> float:
        """Share of all pairs of query and item that match, in the galleries of `mixed`."""
        return float(self.matches.sum() / (self.scores.size + np.isfinite(self.taken_out).sum()))

    def top(self, k: int) -> tuple[FloatArray, BoolArray]:
        """Scores and matches of each query's k best, best first, (q, min(k, n))."""
        order = best_first(self.scores, k, self.matches)
        return np.take_along_axis(self.scores, order, axis=1), np.take_along_axis(self.matches, order, axis=1)
