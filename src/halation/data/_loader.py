"""`Loader`: turns indices into tensors, with pictures decoded before the step that needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from halation._ahead import load_ahead
from halation._arrays import Array, IntArray, as_indices
from halation._errors import InputError
from halation.data._batches import Batch, Batches
from halation.data._dataset import Dataset
from halation.data._inputs import Features, Tokens

__all__ = ["BatchInputs", "Loader"]

Preprocess = Callable[[Image.Image], Tensor]
Tokenize = Callable[[Sequence[str]], Tokens]


class BatchInputs(NamedTuple):
    """The inputs of a training step: one process's part of a batch."""

    images: Features | Tensor  # features, or pixels (b, 3, H, W)
    tokens: Tokens


class Loader:
    """Images and captions of a dataset as tensors.

    preprocess   a backbone's, picture → (3, H, W), to load pixels. None loads the dataset's features
    tokenize     a text backbone's, captions → Tokens; every caption is tokenized once, at the start
    workers      threads that decode pictures (decoding lets other threads run)
    ahead        batches to decode in advance
    memory       bytes: if all pictures fit, they are kept as tensors after their first use; 0 = never (for a
                 preprocess that gives another tensor each time)

    >>> from halation.data import Truth
    >>> from halation.data import FeatureArray, FeatureStore
    >>> truth = Truth.from_captions(["a dog", "a red bus"], [0, 1])
    >>> loader = Loader(Dataset("tiny", truth, features=FeatureStore(FeatureArray(np.eye(2)))))
    >>> loader.images([1]).pooled
    tensor([[0., 1.]])
    """

    def __init__(
        self,
        dataset: Dataset,
        preprocess: Preprocess | None = None,
        tokenize: Tokenize | None = None,
        *,
        workers: int = 2,
        ahead: int = 4,
        memory: int = 1 << 30,
    ) -> None:
        if preprocess is None and dataset.features is None:
            remedy = "compute them (halation features), or load pictures"
            raise InputError(f"{dataset.name} has no features", remedy=remedy)
        if preprocess is not None and dataset.photos is None:
            raise InputError(f"{dataset.name} has no pictures, and this backbone needs them", remedy="unpack them")
        self.dataset, self._preprocess, self._memory = dataset, preprocess, memory
        self._workers, self._ahead = max(1, workers), max(1, ahead)
        self._kept: Tensor | None = None  # (n, 3, H, W), rows filled as they are seen
        self._have = np.zeros(len(dataset), dtype=np.bool_)
        self._tokens = None if tokenize is None else _tokenize(dataset.captions, tokenize)

    def images(self, index: Array) -> Features | Tensor:
        """Features, or pixels (b, 3, H, W), of some images."""
        wanted = as_indices(index, len(self.dataset), "images")
        if self._preprocess is None:
            assert self.dataset.features is not None
            return self.dataset.features.rows(wanted)
        ((_, images),) = self._loaded([(wanted, None)])
        return images

    def tokens(self, index: Array) -> Tokens:
        """Tokens of some captions, no wider than the longest of them."""
        if self._tokens is None:
            raise InputError("this loader was made without tokenize", remedy="give it the text backbone's")
        rows = torch.from_numpy(as_indices(index, self.dataset.n_captions, "captions"))
        mask = self._tokens.mask.index_select(0, rows)
        used = mask.any(dim=0).nonzero()
        width = int(used[-1]) + 1 if len(used) else 1
        ids, sentence = self._tokens.ids.index_select(0, rows)[:, :width].long(), self._tokens.sentence
        return Tokens(ids, mask[:, :width], None if sentence is None else sentence.index_select(0, rows).float())

    def epoch(self, batches: Batches, epoch: int, start: int = 0) -> Iterator[tuple[Batch, BatchInputs]]:
        """The batches of an epoch, each with this rank's part of it loaded."""
        planned = batches.epoch(epoch, start)
        for batch, images in self._loaded((batch.images[batch.my_images], batch) for batch in planned):
            yield batch, BatchInputs(images, self.tokens(batch.captions[batch.my_captions]))

    def all_images(self, batch_size: int = 256) -> Iterator[Features | Tensor]:
        """Every image in order, in blocks."""
        for _, images in self._loaded((index, None) for index in _ranges(len(self.dataset), batch_size)):
            yield images

    def all_captions(self, batch_size: int = 256) -> Iterator[Tokens]:
        """Every caption in order, in blocks."""
        return (self.tokens(index) for index in _ranges(self.dataset.n_captions, batch_size))

    def _loaded(self, wanted: Iterable[tuple[IntArray, Any]]) -> Iterator[tuple[Any, Features | Tensor]]:
        """(label, images) for each (indices, label), decoded ahead."""
        if self._preprocess is None:
            yield from ((label, self.images(index)) for index, label in wanted)
            return
        batches = ((index, label, self._not_kept(index)) for index, label in wanted)
        jobs = ((batch, batch[2]) for batch in batches)
        for (index, label, fresh), futures in load_ahead(jobs, self._pixels, workers=self._workers, ahead=self._ahead):
            yield label, self._collect(index, dict(zip(fresh, futures, strict=True)))

    def _not_kept(self, index: IntArray) -> list[int]:
        return list(dict.fromkeys(index[~self._have[index]].tolist()))

    def _pixels(self, image: int) -> Tensor:
        assert self.dataset.photos is not None and self._preprocess is not None
        return self._preprocess(self.dataset.photos[image])

    def _collect(self, index: IntArray, futures: dict[int, Future[Tensor]]) -> Tensor:
        fresh = {image: future.result() for image, future in futures.items()}
        shapes = {tuple(pixels.shape) for pixels in fresh.values()}
        if self._kept is not None:
            shapes.add(tuple(self._kept.shape[1:]))
        if len(shapes) > 1:
            raise InputError(f"preprocess gave tensors of shapes {sorted(shapes)}; a batch needs one shape")
        self._keep(fresh)
        if self._kept is not None:
            return self._kept.index_select(0, torch.from_numpy(index))
        return torch.stack([fresh[int(image)] for image in index])

    def _keep(self, fresh: dict[int, Tensor]) -> None:
        if self._kept is None and fresh:
            one = next(iter(fresh.values()))
            if one.numel() * one.element_size() * len(self.dataset) <= self._memory:
                self._kept = torch.empty(len(self.dataset), *one.shape, dtype=one.dtype)
        if self._kept is not None:
            for image, pixels in fresh.items():
                self._kept[image] = pixels
                self._have[image] = True


def _ranges(count: int, size: int) -> Iterator[IntArray]:
    return (np.arange(start, min(start + size, count)) for start in range(0, count, size))


def _tokenize(captions: Sequence[str], tokenize: Tokenize, block: int = 8192) -> Tokens:
    """All captions as one matrix, as wide as the longest; int32 to spare memory."""
    parts = [tokenize(captions[start : start + block]) for start in range(0, len(captions), block)]
    width = max(part.ids.shape[1] for part in parts)
    ids = torch.zeros(len(captions), width, dtype=torch.int32)
    mask = torch.zeros(len(captions), width, dtype=torch.bool)
    for number, part in enumerate(parts):
        rows = slice(number * block, number * block + len(part.ids))
        ids[rows, : part.ids.shape[1]] = part.ids.int()
        mask[rows, : part.mask.shape[1]] = part.mask
    sentences = [part.sentence.half() for part in parts if part.sentence is not None]
    return Tokens(ids, mask, torch.cat(sentences) if sentences else None)
