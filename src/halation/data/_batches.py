"""The images and captions of a training step: a function of the seed, the epoch and the step alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from halation._arrays import BoolArray, IntArray
from halation._errors import InputError, one_of
from halation.data._dataset import Dataset

__all__ = ["Batch", "Batches"]


class Batch(NamedTuple):
    """Indices of one global batch, and the part of it for this process."""

    images: IntArray  # (B,) indices into the dataset's images; by captions, an image may occur twice
    captions: IntArray  # (B·k,) indices into its captions; those of images[i] are i·k … i·k + k − 1
    image_of_caption: IntArray  # (B·k,) position in `images`
    my_images: slice  # this rank's part of `images`
    my_captions: slice  # this rank's part of `captions`

    @property
    def matches(self) -> BoolArray:
        """(B, B·k): the caption belongs to the image, also if the image is in the batch twice."""
        return np.asarray(self.images[:, None] == self.images[self.image_of_caption][None, :])


class Batches:
    """Batches of an epoch, the same in every process and after every restart.

    unit="captions"   every image–caption pair once per epoch in random order (VSE++); captions_per_image must be 1
    unit="images"     every image once per epoch, with `captions_per_image` of its captions drawn at random
    one_per_class     no two items of a batch share a class of `dataset.labels` (PCME on CUB), as many batches as that
                      allows; an item occurs at most once per epoch
    rank, world       this process and how many there are: each takes an equal part of the global batch

    The last incomplete batch of an epoch is dropped. Other items fall into it in each epoch.

    >>> from halation.data import Truth
    >>> truth = Truth.from_captions(["a dog", "a puppy", "a bus", "a red bus"], [0, 0, 1, 1])
    >>> batches = Batches(Dataset("tiny", truth), batch_size=2, seed=0, unit="images")
    >>> sorted(batches.batch(epoch=3, step=0).images.tolist())
    [0, 1]
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        seed: int,
        unit: Literal["captions", "images"] = "captions",
        captions_per_image: int = 1,
        one_per_class: bool = False,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        one_of(unit, ("captions", "images"), "unit of a batch")
        self.batch_size, self.seed, self.unit, self.captions_per_image = batch_size, seed, unit, captions_per_image
        self.rank, self.world = rank, world
        self._image_of = dataset.image_of
        self._n_items = dataset.n_captions if unit == "captions" else len(dataset)
        self._check(dataset)
        self._labels = self._classes(dataset) if one_per_class else None
        self._steps = self._n_items // batch_size if self._labels is None else _steps(self._labels, batch_size)
        self._drawn: tuple[int, IntArray, IntArray] | None = None

    def _check(self, dataset: Dataset) -> None:
        size, k = self.batch_size, self.captions_per_image
        if size < 1 or self.seed < 0:
            raise InputError(f"batch_size is {size} and seed {self.seed}; they must be at least 1 and 0")
        if size > self._n_items:
            raise InputError(
                f"batch_size is {size} but {dataset.name} has {self._n_items} {self.unit}", remedy="take a smaller one"
            )
        if not 0 <= self.rank < self.world or size % self.world:
            raise InputError(f"rank {self.rank} of {self.world} cannot take an equal part of batches of {size}")
        if self.unit == "captions" and k != 1:
            raise InputError(f'captions_per_image is {k}; with unit="captions" it is 1, else use unit="images"')
        fewest = int(np.bincount(self._image_of).min())
        if not 1 <= k <= fewest:
            raise InputError(f"captions_per_image is {k}; it must be 1 … {fewest}, the fewest of an image")

    def _classes(self, dataset: Dataset) -> IntArray:
        if dataset.labels is None:
            raise InputError(f"one_per_class needs a class for each image, and {dataset.name} has none (CUB has)")
        labels = dataset.labels[self._image_of] if self.unit == "captions" else dataset.labels
        codes = np.unique(labels, return_inverse=True)[1].reshape(-1)
        if self.batch_size > codes.max() + 1:
            raise InputError(
                f"a batch of {self.batch_size} with one item per class needs more classes than {codes.max() + 1}"
            )
        return np.asarray(codes)

    def __len__(self) -> int:
        """Steps of an epoch."""
        return self._steps

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from step `start` on."""
        return (self.batch(epoch, step) for step in range(start, len(self)))

    def batch(self, epoch: int, step: int) -> Batch:
        """One batch, without going through those before it."""
        if not 0 <= step < len(self):
            raise InputError(f"step {step} of an epoch of {len(self)} steps, counted from 0")
        items, chosen = self._epoch(epoch)
        items_of_step = items[step * self.batch_size : (step + 1) * self.batch_size]
        k = self.captions_per_image
        part = self.batch_size // self.world
        mine = slice(self.rank * part, (self.rank + 1) * part)
        return Batch(
            images=self._image_of[items_of_step] if self.unit == "captions" else items_of_step,
            captions=items_of_step if self.unit == "captions" else chosen[items_of_step].reshape(-1),
            image_of_caption=np.repeat(np.arange(self.batch_size), k),
            my_images=mine,
            my_captions=slice(mine.start * k, mine.stop * k),
        )

    def _epoch(self, epoch: int) -> tuple[IntArray, IntArray]:
        """Items in the order of the epoch, and by images (n_images, k) the captions drawn for each."""
        if self._drawn is None or self._drawn[0] != epoch:
            generator = np.random.default_rng((self.seed, epoch))
            items: IntArray
            if self._labels is None:
                items = generator.permutation(self._n_items)
            else:
                items = _spread(self._labels, self.batch_size, self._steps, generator)
            chosen: IntArray = np.empty((0, 0), dtype=np.int64)
            if self.unit == "images":
                chosen = _draw_captions(self._image_of, self.captions_per_image, generator)
            self._drawn = (epoch, items, chosen)
        return self._drawn[1], self._drawn[2]


def _draw_captions(image_of: IntArray, k: int, generator: np.random.Generator) -> IntArray:
    """(n_images, k): k different captions of each image."""
    order = np.lexsort((generator.random(len(image_of)), image_of))  # by image, at random within it
    sizes = np.bincount(image_of)
    first = np.cumsum(sizes) - sizes
    return np.asarray(order[first[:, None] + np.arange(k)])


def _steps(labels: IntArray, size: int) -> int:
    """The most batches of `size` items of different classes: the largest T with Σ min(items of a class, T) ≥ size·T."""
    counts = np.bincount(labels)
    low, high = 1, len(labels) // size
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(counts, middle).sum() >= size * middle else (low, middle - 1)
    return low


def _spread(labels: IntArray, size: int, steps: int, generator: np.random.Generator) -> IntArray:
    """Items dealt in turn to `steps` batches, class after class, so that no two of a class are in one batch."""
    shuffled = generator.permutation(len(labels))
    turn = generator.permutation(int(labels.max()) + 1)  # the classes' order
    order = shuffled[np.argsort(turn[labels[shuffled]], kind="stable")]
    sizes = np.bincount(turn[labels])
    nth = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within its class
    dealt = order[nth < steps][: size * steps].reshape(size, steps)
    return np.asarray(dealt[:, generator.permutation(steps)].T.reshape(-1))
