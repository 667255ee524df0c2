"""`Truth`: which captions are relevant to which images, many-to-many, each direction separately."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from halation._arrays import Array, BoolArray, FloatArray, IntArray, as_indices, to_numpy
from halation._errors import InputError, one_of
from halation.data._truth_input import (
    Id,
    as_codes,
    as_gains,
    as_ids,
    as_image_of,
    as_lost,
    as_names,
    as_queries,
    as_texts,
    captions_matrix,
    classes_matrix,
    pairs_matrix,
)
from halation.data._truth_parts import answerable, fingerprint, subset

__all__ = ["KINDS", "Direction", "Truth"]

Direction = Literal["i2t", "t2i"]
"""Image→text (rows are images) or text→image (rows are captions)."""

KINDS = ("captions", "pairs", "graded", "classes", "cxc", "eccv")
"""The sources of relevance: values of `Truth.kind`."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Which captions answer an image, and which images answer a caption.

    Gains are sparse: `i2t` (n_images, n_captions) and `t2i` (n_captions, n_images), 1.0 where relevance is yes or no.
    The two may differ (ECCV Caption judged them apart); without `t2i` it is the transpose. An item is *positive* where
    its gain reaches `threshold` (None: any gain above 0). Make one with `from_captions`, `from_pairs`, `from_graded`,
    `from_classes`, or with a reader of this package. Frozen; `replace` gives a changed copy.

    image_ids, caption_ids       names in the order of the scores' rows and columns, each unique
    image_queries, caption_queries   indices of the queries; None = all. The others stay in the gallery
    captions, image_of           texts, and the image each belongs to (any number per image)
    classes, class_names         bool (n_images, n_classes): what appears in each image
    annotated                    bool (n_images,): images with class annotations at all; the others leave PMRP
    lost_i2t, lost_t2i           per query, positives of the source that are not in the gallery but count in its R
    kind                         where relevance comes from, whatever the name: "captions" (an image's own), "pairs",
                                 "graded", "classes" (the same class), "cxc" or "eccv"
    notes                        remarks for a reader of the numbers
    query_notes                  remarks on the choice of queries: those without a positive, those of the source that
                                 are not in the gallery. Reading other positives replaces them

    >>> truth = Truth.from_captions(["a dog", "a puppy", "a red bus"], [0, 0, 1])
    >>> truth.positives("i2t")
    array([[ True,  True, False],
           [False, False,  True]])
    """

    image_ids: tuple[Id, ...]
    caption_ids: tuple[Id, ...]
    i2t: Any  # csr_array float32 (n_images, n_captions)
    t2i: Any = None  # csr_array float32 (n_captions, n_images)
    threshold: float | None = None
    image_queries: IntArray | None = None
    caption_queries: IntArray | None = None
    captions: tuple[str, ...] | None = None
    image_of: IntArray | None = None
    classes: BoolArray | None = None
    class_names: tuple[str, ...] | None = None
    annotated: BoolArray | None = None
    lost_i2t: IntArray | None = None
    lost_t2i: IntArray | None = None
    name: str = "truth"
    notes: tuple[str, ...] = ()
    kind: str = "captions"
    query_notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        images = as_ids(self.image_ids, None, "image")
        captions = as_ids(self.caption_ids, None, "caption")
        if not images or not captions:
            raise InputError(f"a truth needs images and captions; there are {len(images)} and {len(captions)}")
        shape = (len(images), len(captions))
        i2t = as_gains(self.i2t, shape, "i2t")
        t2i = as_gains(i2t.T if self.t2i is None else self.t2i, shape[::-1], "t2i")
        one_of(self.kind, KINDS, "kind of truth")
        if self.threshold is not None and not self.threshold > 0:
            raise InputError(f"threshold is {self.threshold}; it must be above 0 (None counts every gain above 0)")
        self._set(image_ids=images, caption_ids=captions, i2t=i2t, t2i=t2i)
        self._set(notes=tuple(self.notes), query_notes=tuple(self.query_notes))
        self._set(image_queries=as_queries(self.image_queries, shape[0], "image_queries"))
        self._set(caption_queries=as_queries(self.caption_queries, shape[1], "caption_queries"))
        self._set(
            lost_i2t=as_lost(self.lost_i2t, shape[0], "lost_i2t"), lost_t2i=as_lost(self.lost_t2i, shape[1], "lost_t2i")
        )
        self._check_captions()
        self._check_classes()

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _check_captions(self) -> None:
        if self.captions is not None:
            self._set(captions=as_texts(self.captions, self.n_captions))
        if self.image_of is not None:
            self._set(image_of=as_image_of(self.image_of, self.n_captions, self.image_ids))

    def _check_classes(self) -> None:
        if self.classes is None:
            return
        codes, names = as_codes(self.classes, self.n_images, self.class_names)
        annotated = codes.any(axis=1) if self.annotated is None else to_numpy(self.annotated)
        if annotated.shape != (self.n_images,) or annotated.dtype != np.bool_:
            raise InputError(f"annotated must be true or false for each of the {self.n_images} images")
        self._set(classes=codes, class_names=names, annotated=annotated)

    @classmethod
    def from_captions(
        cls,
        captions: Sequence[str],
        image_of: Array,
        *,
        image_ids: Iterable[Id] | None = None,
        caption_ids: Iterable[Id] | None = None,
        classes: Array | None = None,
        class_names: Sequence[str] | None = None,
        name: str = "captions",
    ) -> Truth:
        """Caption k is relevant to image `image_of[k]` and to no other: the papers' R@K.

        An image may have any number of captions. `classes` is a 0/1 matrix (n_images, n_classes), or for each image
        the names of its classes.

        >>> Truth.from_captions(["a dog", "a cat", "a bus"], [0, 1, 1], image_ids=["d.jpg", "c.jpg"]).n_images
        2
        """
        ids = None if image_ids is None else as_ids(image_ids, None, "image")
        belongs = as_image_of(image_of, len(captions), ids)
        n_images = int(belongs.max(initial=-1)) + 1 if ids is None else len(ids)
        return cls(
            image_ids=tuple(range(n_images)) if ids is None else ids,
            caption_ids=as_names(caption_ids, len(captions), "caption"),
            i2t=captions_matrix(belongs, n_images),
            captions=as_texts(captions, len(captions)),
            image_of=belongs,
            classes=classes,
            class_names=None if class_names is None else tuple(class_names),
            name=name,
            kind="captions",
        )

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[Id, Id]],
        *,
        image_ids: Iterable[Id] | None = None,
        caption_ids: Iterable[Id] | None = None,
        n_images: int | None = None,
        n_captions: int | None = None,
        captions: Sequence[str] | None = None,
        image_of: Array | None = None,
        name: str = "pairs",
    ) -> Truth:
        """Each (image, caption) of `pairs` is relevant, both ways: ids where ids are given, otherwise indices.

        Items in no pair are distractors: they are in the gallery. As queries they have no answer; `answerable()`
        leaves them out.

        >>> Truth.from_pairs([(0, 0), (1, 0), (1, 1)], n_captions=3).positives("t2i")
        array([[ True,  True],
               [False,  True],
               [False, False]])
        """
        images = None if image_ids is None else as_ids(image_ids, n_images, "image")
        texts = None if caption_ids is None else as_ids(caption_ids, n_captions, "caption")
        i2t = pairs_matrix(pairs, images, texts, n_images, n_captions)
        return cls(
            image_ids=images or tuple(range(i2t.shape[0])),
            caption_ids=texts or tuple(range(i2t.shape[1])),
            i2t=i2t,
            captions=None if captions is None else as_texts(captions, len(captions)),
            image_of=image_of,
            name=name,
            kind="pairs",
        )

    @classmethod
    def from_graded(
        cls,
        matrix: Any,
        *,
        threshold: float | None = None,
        image_ids: Iterable[Id] | None = None,
        caption_ids: Iterable[Id] | None = None,
        captions: Sequence[str] | None = None,
        image_of: Array | None = None,
        name: str = "graded",
    ) -> Truth:
        """Graded gains ≥ 0 (n_images, n_captions), dense or sparse; metrics of yes and no count gains ≥ `threshold`.

        >>> Truth.from_graded([[1.0, 0.2], [0.0, 0.6]], threshold=0.5).positives("i2t")
        array([[ True, False],
               [False,  True]])
        """
        gains = as_gains(matrix, None, "the graded matrix")
        return cls(
            image_ids=as_names(image_ids, gains.shape[0], "image"),
            caption_ids=as_names(caption_ids, gains.shape[1], "caption"),
            i2t=gains,
            threshold=threshold,
            captions=None if captions is None else as_texts(captions, len(captions)),
            image_of=image_of,
            name=name,
            kind="graded",
        )

    @classmethod
    def from_classes(
        cls,
        image_classes: Array,
        caption_classes: Array | None = None,
        *,
        image_of: Array | None = None,
        zeta: int = 0,
        captions: Sequence[str] | None = None,
        image_ids: Iterable[Id] | None = None,
        caption_ids: Iterable[Id] | None = None,
        name: str = "classes",
    ) -> Truth:
        """Same class = relevant (CUB Captions): one label per image; captions have labels or inherit by `image_of`.

        A 0/1 matrix (n_images, d) of class codes works too: relevant where the Hamming distance is at most `zeta`
        (the plausible matches of PCME, Chun et al., CVPR 2021).

        >>> Truth.from_classes(["wren", "gull", "wren"], image_of=[0, 1, 2, 2]).positives("i2t")
        array([[ True, False,  True,  True],
               [False,  True, False, False],
               [ True, False,  True,  True]])
        """
        i2t = classes_matrix(image_classes, caption_classes, image_of, zeta)
        return cls(
            image_ids=as_names(image_ids, i2t.shape[0], "image"),
            caption_ids=as_names(caption_ids, i2t.shape[1], "caption"),
            i2t=i2t,
            captions=None if captions is None else as_texts(captions, len(captions)),
            image_of=image_of,
            name=name,
            kind="classes",
        )

    @property
    def n_images(self) -> int:
        return len(self.image_ids)

    @property
    def n_captions(self) -> int:
        return len(self.caption_ids)

    @property
    def binary(self) -> bool:
        """Whether every gain is 0 or 1, so that gains and positives say the same."""
        return self.threshold is None and all((gains.data == 1).all() for gains in (self.i2t, self.t2i))

    @property
    def caption_classes(self) -> BoolArray | None:
        """Class codes of the captions, inherited from their images, (n_captions, n_classes)."""
        return None if self.classes is None or self.image_of is None else self.classes[self.image_of]

    def queries(self, direction: Direction) -> IntArray:
        """Indices of the queries: the declared subset, or all."""
        rows = self._gains(direction).shape[0]
        declared = self.image_queries if direction == "i2t" else self.caption_queries
        return np.arange(rows) if declared is None else declared

    def gains(self, direction: Direction, rows: Array | slice | None = None) -> FloatArray:
        """Dense float32 gains of the given queries (all without `rows`), (len(rows), n)."""
        block = self._gains(direction)
        if rows is not None:
            block = block[rows if isinstance(rows, slice) else as_indices(rows, block.shape[0], "rows")]
        dense: FloatArray = block.toarray()
        return dense

    def positives(self, direction: Direction, rows: Array | slice | None = None) -> BoolArray:
        """What counts as relevant for metrics of yes and no, dense (len(rows), n)."""
        return self._positive(self.gains(direction, rows))

    def n_positives(self, direction: Direction) -> IntArray:
        """How many positives in the gallery each query has, (n,); those of `lost` come on top in R."""
        gains = self._gains(direction)
        running = np.concatenate([[0], np.cumsum(self._positive(gains.data))])
        counts: IntArray = np.diff(running[gains.indptr])
        return counts

    def lost(self, direction: Direction) -> IntArray:
        """How many positives of each query its source names that are not in the gallery, (n,)."""
        count = self._gains(direction).shape[0]
        lost = self.lost_i2t if direction == "i2t" else self.lost_t2i
        return np.zeros(count, dtype=np.int64) if lost is None else lost

    def pairs(self, direction: Direction) -> IntArray:
        """Every positive as (query, item), (p, 2), in the order of the queries."""
        gains = self._gains(direction).tocoo()
        keep = self._positive(gains.data)
        return np.stack([gains.row[keep], gains.col[keep]], axis=1).astype(np.int64)

    def _gains(self, direction: Direction) -> Any:
        return self.i2t if one_of(direction, ("i2t", "t2i"), "direction") == "i2t" else self.t2i

    def _positive(self, gains: FloatArray) -> BoolArray:
        return gains > 0 if self.threshold is None else gains >= np.float32(self.threshold)

    def replace(self, **changes: Any) -> Truth:
        """A copy with some fields changed, checked as a new one is; fields that depend on them are made anew."""
        known = sorted(field.name for field in dataclasses.fields(self))
        for field in changes:
            one_of(field, known, "field of Truth")
        if "i2t" in changes:
            changes = {"t2i": None, **changes}
        if "classes" in changes:
            changes = {"class_names": None, "annotated": None, **changes}
        return dataclasses.replace(self, **changes)

    def answerable(self) -> Truth:
        """The same truth with only the queries that have a positive; `query_notes` counts the others."""
        return answerable(self)

    def captions_of(self, images: Array) -> IntArray:
        """Indices of the captions that belong to the given images, in their old order."""
        if self.image_of is None:
            problem = "this truth does not know which image a caption belongs to"
            raise InputError(problem, remedy="give captions as well, or image_of")
        return np.flatnonzero(np.isin(self.image_of, as_indices(images, self.n_images, "images")))

    def subset(self, images: Array, captions: Array | None = None) -> Truth:
        """The truth of some images (indices or mask, in the given order) and their captions: a fold, a sample.

        Ids, texts and classes are carried along; relevance to what is left out is gone. Where queries were declared,
        those that lose every positive are no longer queries. Scores of the subset are
        `scores[np.ix_(images, truth.captions_of(images))]`.

        >>> Truth.from_captions(["a dog", "a puppy", "a bus"], [0, 0, 1]).subset([1]).captions
        ('a bus',)
        """
        return subset(self, images, captions)

    def fingerprint(self) -> str:
        """A sha256 that is equal for two truths only when scores measure the same against both.

        It covers ids, gains, threshold, queries, lost positives, captions, `image_of`, classes (in any order) with
        their names, and `annotated`; not `name`, `kind`, `notes` and `query_notes`, which only describe it.
        """
        return fingerprint(self)

    def __repr__(self) -> str:
        size = f"{self.n_images:,} images, {self.n_captions:,} captions"
        positive = f"{self.n_positives('i2t').sum():,} positives i2t, {self.n_positives('t2i').sum():,} t2i"
        queries = f"{len(self.queries('i2t')):,} + {len(self.queries('t2i')):,} queries"
        return f"Truth({self.name!r}: {size}, {positive}, {queries})"
