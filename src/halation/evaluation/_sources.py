"""Where scores come from: a matrix, two sets of embeddings, or finished rankings; read in blocks of queries.

A source answers two questions, and nothing else of evaluation knows what is behind it:

    i2t(images)    (len(images), n_captions)     scores of these images against every caption
    t2i(captions)  (len(captions), n_images)     scores of these captions against every image; maybe a transposed view
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from halation._arrays import Array, FloatArray, IntArray, as_scores, to_numpy
from halation._errors import InputError
from halation.relevance import Truth

__all__ = ["Embeddings", "Matrix", "Rankings", "Similarity", "Source"]

Similarity = Callable[[Any, Any], Array]
"""similarity(a, b) -> (len(a), len(b)), bigger = closer."""


class Source(Protocol):
    """Scores of n_images × n_captions pairs, read by blocks of queries."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def i2t(self, images: IntArray) -> FloatArray: ...

    def t2i(self, captions: IntArray) -> FloatArray: ...

    def subset(self, images: IntArray, captions: IntArray) -> Source: ...


class Matrix:
    """A score matrix that exists: (n_images, n_captions)."""

    def __init__(self, scores: Array) -> None:
        self._scores = as_scores(scores)

    @property
    def shape(self) -> tuple[int, int]:
        return self._scores.shape[0], self._scores.shape[1]

    def i2t(self, images: IntArray) -> FloatArray:
        return self._scores[images]

    def t2i(self, captions: IntArray) -> FloatArray:
        return np.asarray(_columns(self._scores, captions).T)

    def subset(self, images: IntArray, captions: IntArray) -> Matrix:
        return Matrix(_columns(self._scores[images], captions))


class Embeddings:
    """Images and captions as embeddings (arrays, tensors or Gaussians); the score matrix never exists as a whole."""

    def __init__(self, images: Any, captions: Any, similarity: Similarity) -> None:
        self._images, self._captions, self._similarity = images, captions, similarity

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._images), len(self._captions)

    def i2t(self, images: IntArray) -> FloatArray:
        return self._scores(_take(self._images, images), self._captions)

    def t2i(self, captions: IntArray) -> FloatArray:
        # the similarity is always asked (images, captions): it need not be symmetric (KL is not)
        return np.asarray(self._scores(self._images, _take(self._captions, captions)).T)

    def subset(self, images: IntArray, captions: IntArray) -> Embeddings:
        return Embeddings(_take(self._images, images), _take(self._captions, captions), self._similarity)

    def _scores(self, images: Any, captions: Any) -> FloatArray:
        block = as_scores(self._similarity(images, captions), "the similarity's scores")
        if block.shape != (len(images), len(captions)):
            raise InputError(
                f"the similarity gave shape {block.shape} for {len(images)} images and {len(captions)} captions; "
                "similarity(images, captions) must return one row per image and one column per caption"
            )
        return block


@dataclass(frozen=True)
class Rankings:
    """Finished rankings, best first: `i2t[image id]` lists every caption id, `t2i[caption id]` every image id.

    Rankings are turned into scores (minus the rank), so whatever measures scores measures them. They must be whole:
    a list cut at the top K would inflate R-Precision and PMRP, so it is refused.
    """

    i2t_ranks: FloatArray  # (n_images, n_captions)
    t2i_ranks: FloatArray  # (n_captions, n_images)

    @classmethod
    def from_ids(cls, i2t: Mapping[Any, Sequence[Any]], t2i: Mapping[Any, Sequence[Any]], truth: Truth) -> Rankings:
        """From lists of ids, as eccv-caption takes them; queries that the truth does not ask may be absent."""
        return cls(
            _negative_ranks(i2t, truth.image_ids, truth.caption_ids, truth.queries("i2t"), "image"),
            _negative_ranks(t2i, truth.caption_ids, truth.image_ids, truth.queries("t2i"), "caption"),
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.i2t_ranks.shape[0], self.i2t_ranks.shape[1]

    def i2t(self, images: IntArray) -> FloatArray:
        return self.i2t_ranks[images]

    def t2i(self, captions: IntArray) -> FloatArray:
        return self.t2i_ranks[captions]

    def subset(self, images: IntArray, captions: IntArray) -> Rankings:
        return Rankings(self.i2t_ranks[np.ix_(images, captions)], self.t2i_ranks[np.ix_(captions, images)])


def _negative_ranks(
    rankings: Mapping[Any, Sequence[Any]],
    query_ids: Sequence[Hashable],
    item_ids: Sequence[Hashable],
    asked: IntArray,
    kind: str,
) -> FloatArray:
    place = {item: index for index, item in enumerate(item_ids)}
    scores = np.zeros((len(query_ids), len(item_ids)), dtype=np.float32)
    for query in asked:
        name = query_ids[query]
        if name not in rankings:
            raise InputError(f"the rankings have no list for {kind} {name!r}")
        ranked = rankings[name]
        if len(ranked) != len(place):
            raise InputError(
                f"the ranking of {kind} {name!r} has {len(ranked)} of {len(place)} items; truncated rankings inflate "
                "R-Precision and PMRP: give the whole gallery, best first"
            )
        try:
            order = np.fromiter((place[item] for item in ranked), dtype=np.int64, count=len(ranked))
        except KeyError as error:
            raise InputError(
                f"the ranking of {kind} {name!r} names {error.args[0]!r}, which is not in the gallery"
            ) from None
        if len(np.unique(order)) != len(order):
            raise InputError(f"the ranking of {kind} {name!r} names an item twice")
        scores[query, order] = -np.arange(1, len(order) + 1)
    return scores


def _columns(matrix: FloatArray, columns: IntArray) -> FloatArray:
    """matrix[:, columns]; a contiguous range stays a view."""
    if len(columns) and np.array_equal(columns, np.arange(columns[0], columns[0] + len(columns))):
        return matrix[:, int(columns[0]) : int(columns[0]) + len(columns)]
    return matrix[:, columns]


def _take(embeddings: Any, rows: IntArray) -> Any:
    """Rows of an array, a tensor or a Gaussian; lists become arrays first."""
    if isinstance(embeddings, Sequence):
        embeddings = to_numpy(embeddings)
    return embeddings[rows]
