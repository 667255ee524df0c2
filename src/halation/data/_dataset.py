"""`Dataset`: one split of images and captions, with their relevance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halation._arrays import Array, IntArray, as_indices
from halation._errors import InputError
from halation.data._pictures import Photos
from halation.data._truth import Truth

if TYPE_CHECKING:
    from halation.data._features import FeatureStore

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """One split. Rows of `photos`, `features` and `labels` are the images of `truth`, in its order.

    name       to show: "flickr8k-train"
    truth      ids, captions, the image of each, and their relevance
    photos     the image files, opened one by one; None if there are none
    features   of a frozen backbone; None if none were computed
    labels     (n_images,) the class of each image; CUB has them

    >>> data = Dataset("tiny", Truth.from_captions(["a dog", "a puppy", "a bus"], [0, 0, 1]))
    >>> len(data), data.n_captions, data.first_captions(1).captions
    (2, 3, ('a dog', 'a bus'))
    """

    name: str
    truth: Truth
    photos: Photos | None = None
    features: FeatureStore | None = None
    labels: IntArray | None = None

    def __post_init__(self) -> None:
        if self.truth.captions is None or self.truth.image_of is None:
            raise InputError(f"{self.name}: a dataset needs a truth with captions and image_of")
        for part, what in ((self.photos, "photos"), (self.features, "rows of features"), (self.labels, "labels")):
            if part is not None and len(part) != len(self):
                raise InputError(f"{self.name}: {len(part)} {what} for {len(self)} images", remedy="give one for each")

    def __len__(self) -> int:
        """The number of images."""
        return self.truth.n_images

    @property
    def n_captions(self) -> int:
        return self.truth.n_captions

    @property
    def captions(self) -> tuple[str, ...]:
        assert self.truth.captions is not None
        return self.truth.captions

    @property
    def image_of(self) -> IntArray:
        """(n_captions,): the image that each caption was written for."""
        assert self.truth.image_of is not None
        return self.truth.image_of

    def subset(self, images: Array) -> Dataset:
        """Some images (indices or a mask, in the given order) with their captions."""
        index = as_indices(images, len(self), "images")
        return replace(
            self,
            truth=self.truth.subset(index),
            photos=None if self.photos is None else self.photos.take(index),
            features=None if self.features is None else self.features.take(index),
            labels=None if self.labels is None else self.labels[index],
        )

    def first_captions(self, k: int) -> Dataset:
        """Every image with at most its first k captions, as if there were fewer annotations."""
        if k < 1:
            raise InputError(f"captions_per_image is {k}; it must be 1 or more")
        order = np.argsort(self.image_of, kind="stable")
        sizes = np.bincount(self.image_of)
        nth = np.empty_like(order)  # (n_captions,): which of its image's captions each is
        nth[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept = np.flatnonzero(nth < k)
        return self if len(kept) == len(nth) else replace(self, truth=self.truth.subset(np.arange(len(self)), kept))

    def __repr__(self) -> str:
        seen = [repr(part) for part in (self.photos, self.features) if part is not None] or ["captions alone"]
        return f"Dataset({self.name!r}: {len(self):,} images, {self.n_captions:,} captions, {', '.join(seen)})"
