"""Sources of scores: a matrix, two sets of embeddings, or finished rankings, read in blocks of queries.

The rest of evaluation reads scores by two methods:

    i2t(images)    (len(images), n_captions)     scores of these images against every caption
    t2i(captions)  (len(captions), n_images)     scores of these captions against every image; perhaps a transposed view
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from halation._arrays import Array, BoolArray, FloatArray, IntArray, as_scores, to_numpy
from halation._errors import InputError
from halation.data import Truth

__all__ = ["EmbeddingScores", "Rankings", "ScoreMatrix", "ScoreSource", "Similarity", "check_shape"]

Similarity = Callable[[Any, Any], Array]
"""similarity(a, b) -> (len(a), len(b)), bigger = closer."""


class ScoreSource(Protocol):
    """Scores of n_images × n_captions pairs, read by blocks of queries."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def i2t(self, images: IntArray) -> FloatArray: ...

    def t2i(self, captions: IntArray) -> FloatArray: ...

    def subset(self, images: IntArray, captions: IntArray) -> ScoreSource: ...


class ScoreMatrix:
    """A score matrix (n_images, n_captions) in memory."""

    def __init__(self, scores: Array, name: str = "scores") -> None:
        self._scores = as_scores(scores, name)

    @property
    def shape(self) -> tuple[int, int]:
        return self._scores.shape[0], self._scores.shape[1]

    def i2t(self, images: IntArray) -> FloatArray:
        return self._scores[images]

    def t2i(self, captions: IntArray) -> FloatArray:
        return np.asarray(_columns(self._scores, captions).T)

    def subset(self, images: IntArray, captions: IntArray) -> ScoreMatrix:
        return ScoreMatrix(_columns(self._scores[images], captions))


class EmbeddingScores:
    """Images and captions as embeddings (arrays, tensors or Gaussians); the score matrix never exists as a whole."""

    def __init__(self, images: Any, captions: Any, similarity: Similarity) -> None:
        self._images, self._captions, self._similarity = images, captions, similarity

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._images), len(self._captions)

    def i2t(self, images: IntArray) -> FloatArray:
        return self._scores(_take(self._images, images), self._captions)

    def t2i(self, captions: IntArray) -> FloatArray:
        # always similarity(images, captions): it need not be symmetric (KL is not)
        return np.asarray(self._scores(self._images, _take(self._captions, captions)).T)

    def subset(self, images: IntArray, captions: IntArray) -> EmbeddingScores:
        return EmbeddingScores(_take(self._images, images), _take(self._captions, captions), self._similarity)

    def _scores(self, images: Any, captions: Any) -> FloatArray:
        block = as_scores(self._similarity(images, captions), "the similarity's scores")
        if block.shape != (len(images), len(captions)):
            raise InputError(
                f"the similarity gave shape {block.shape} for {len(images)} images and {len(captions)} captions; "
                "similarity(images, captions) must return one row per image and one column per caption"
            )
        return block


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Rankings of one direction as scores (minus the rank), and the queries that have one."""

    scores: FloatArray  # (q, n)
    given: BoolArray  # (q,)
    kind: str

    @classmethod
    def from_ids(
        cls, rankings: Mapping[Any, Sequence[Any]], query_ids: Sequence[Any], item_ids: Sequence[Any], kind: str
    ) -> _Ranked:
        lists = {str(query): ranked for query, ranked in rankings.items()}
        index_of = {str(item): index for index, item in enumerate(item_ids)}
        scores = np.zeros((len(query_ids), len(item_ids)), dtype=np.float32)
        given = np.array([str(query) in lists for query in query_ids])
        for query in np.flatnonzero(given).tolist():
            order = _order(lists[str(query_ids[query])], index_of, f"the ranking of {kind} {query_ids[query]!r}")
            scores[query, order] = -np.arange(1, len(order) + 1)
        return cls(scores, given, kind)

    def rows(self, queries: IntArray) -> FloatArray:
        if not self.given[queries].all():
            missing = queries[~self.given[queries]][0]
            raise InputError(
                f"the rankings have no list for {self.kind} number {missing}, which is a query of the truth"
            )
        return self.scores[queries]

    def subset(self, queries: IntArray, items: IntArray) -> _Ranked:
        return _Ranked(self.scores[np.ix_(queries, items)], self.given[queries], self.kind)


@dataclass(frozen=True, eq=False)
class Rankings:
    """Finished rankings, best first, in place of scores; made by `Rankings.from_ids`.

    They must be complete: a list cut off at the top K would inflate R-Precision and PMRP, so it is refused.
    """

    _i2t: _Ranked
    _t2i: _Ranked

    @classmethod
    def from_ids(cls, i2t: Mapping[Any, Sequence[Any]], t2i: Mapping[Any, Sequence[Any]], truth: Truth) -> Rankings:
        """Rankings from lists of ids, as eccv-caption takes them.

        i2t   caption ids, best first, for each image id
        t2i   image ids, best first, for each caption id
        Items that are not queries of the truth may be absent.
        """
        return cls(
            _Ranked.from_ids(i2t, truth.image_ids, truth.caption_ids, "image"),
            _Ranked.from_ids(t2i, truth.caption_ids, truth.image_ids, "caption"),
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self._i2t.scores.shape[0], self._i2t.scores.shape[1]

    def i2t(self, images: IntArray) -> FloatArray:
        return self._i2t.rows(images)

    def t2i(self, captions: IntArray) -> FloatArray:
        return self._t2i.rows(captions)

    def subset(self, images: IntArray, captions: IntArray) -> Rankings:
        return Rankings(self._i2t.subset(images, captions), self._t2i.subset(captions, images))


def _order(ranked: Sequence[Any], index_of: Mapping[str, int], name: str) -> IntArray:
    """The indices of the ranked items; an InputError unless they are the whole gallery, each item once."""
    if len(ranked) != len(index_of):
        raise InputError(
            f"{name} has {len(ranked)} of {len(index_of)} items; truncated rankings inflate R-Precision and PMRP",
            remedy="give the whole gallery, best first",
        )
    try:
        order = np.fromiter((index_of[str(item)] for item in ranked), dtype=np.int64, count=len(ranked))
    except KeyError as error:
        raise InputError(f"{name} names {error.args[0]!r}, which is not in the gallery") from None
    if len(np.unique(order)) != len(order):
        raise InputError(f"{name} names an item twice")
    return order


def check_shape(source: ScoreSource, truth: Truth, name: str = "the scores") -> None:
    """An InputError unless the source has one row per image and one column per caption."""
    expected = (truth.n_images, truth.n_captions)
    if source.shape != expected:
        flipped = "; it fits transposed: rows must be images" if source.shape == expected[::-1] else ""
        raise InputError(f"{name} are {source.shape} but the truth has (images, captions) = {expected}{flipped}")


def _columns(matrix: FloatArray, columns: IntArray) -> FloatArray:
    """`matrix[:, columns]`, as a view if the columns are consecutive."""
    if len(columns) and np.array_equal(columns, np.arange(columns[0], columns[0] + len(columns))):
        return matrix[:, int(columns[0]) : int(columns[0]) + len(columns)]
    return matrix[:, columns]


def _take(embeddings: Any, rows: IntArray) -> Any:
    """Rows of an array, a tensor or a Gaussian; a list becomes an array first."""
    if isinstance(embeddings, Sequence):
        embeddings = to_numpy(embeddings)
    return embeddings[rows]
