"""`embed`: encode every picture and caption of a collection once, however often it is interrupted."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from halation._ahead import load_ahead
from halation._errors import InputError
from halation._parallel import threads
from halation._progress import Progress, silent
from halation.data import UnreadablePicture, read_picture
from halation.encoders import Encoded, Model, load
from halation.search._answers import Side
from halation.search._embeddings import Embeddings, read_parts
from halation.search._journal import Failure, JournalWriter
from halation.search._manifest import begin_folder, complete_folder
from halation.search._open_source import open_source
from halation.search._source import Source, SourceItem, one_line, read_location
from halation.similarity import Gaussian

__all__ = ["embed"]

_MIN_BATCH = 256  # captions or features per batch: with fewer, waiting for the disk would take most of the time


def embed(
    run: str | os.PathLike[str] | Model,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    side: str = "auto",
    split: str | None = None,
    root: str | os.PathLike[str] | None = None,
    backbone: str | None = None,
    batch_size: int = 64,
    workers: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress = silent,
) -> Embeddings:
    """Embed a collection with a run's model into the folder `out`.

    source    a folder of pictures, a .jsonl of `{"image": path, "captions": […]}` or `{"caption": …}`, a .txt of
              captions, .tar shards (a file, or a folder of them), or a dataset's folder
    side      "images" or "captions"; "auto" and "both": all that the source has
    split     of a dataset; None: all splits
    root      the folder that holds the pictures of a .jsonl; None: the folder of the .jsonl
    backbone  the network that computed the features, for a run trained on features; EfficientNet-Lite0 is recognised
    workers   threads that decode pictures; None: a few
    shard     (i, n): this process is the i-th of n that share the work, counted from 0; None: as torchrun started it

    If it is killed, run the same call again: it embeds what is missing and nothing twice. It also embeds pictures that
    were added or changed since, and drops those that are gone. Items that cannot be read are left out and listed in
    `Embeddings.corrupt`; the next call tries them again, unless they are not pictures at all. With shards, the process
    that ends last completes the folder.
    """
    index, n_shards = _shard(shard)
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be 1 or more")
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more, or left out")
    model = run if isinstance(run, Model) else load(run, backbone=backbone)
    _ = model.indexed_similarity  # an InputError where nothing could search these embeddings
    collection = open_source(source, model, side=side, split=split, root=root)
    if "images" in collection.sides and not collection.stores:
        _ = model.images.network  # an InputError if it cannot read pictures, before anything is written
    folder = Path(out)
    manifest = begin_folder(folder, collection, model)
    encoder = _Encoder(collection, model, batch_size, workers or min(4, threads() + 1))
    with _disk_full_explained(folder):
        for name, items in collection.sides.items():
            mine = [item for item in items if _shard_of(item, n_shards) == index]
            _embed_side(folder / name / f"part-{index:05d}-of-{n_shards:05d}", name, mine, encoder, progress)
    return complete_folder(folder, collection, manifest)


def _shard(shard: tuple[int, int] | None) -> tuple[int, int]:
    given = shard or (os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1"))
    try:
        index, n_shards = map(int, given)
    except (ValueError, TypeError):
        raise InputError(
            f"shard {given} is not two whole numbers (or RANK and WORLD_SIZE, where torchrun set them)"
        ) from None
    if not 0 <= index < n_shards:
        raise InputError(
            f"shard ({index}, {n_shards}) does not exist; shards are counted from (0, {n_shards}) to "
            f"({n_shards - 1}, {n_shards})"
        )
    return index, n_shards


def _shard_of(item: SourceItem, n_shards: int) -> int:
    return zlib.crc32(item.id.encode(errors="replace")) % n_shards


@contextmanager
def _disk_full_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            ": the disk is full", path=folder, remedy="make room and run the same again; what is done is kept"
        ) from None


def _embed_side(part: Path, side: Side, items: Sequence[SourceItem], encoder: _Encoder, progress: Progress) -> None:
    """Add to `part` the items that no part of this side has yet."""
    with JournalWriter(part) as writer:
        finished = finished_rows(part.parent)
        missing = [item for item in items if (item.id, item.stamp) not in finished]
        done = len(items) - len(missing)
        progress(side, done, len(items))
        for batch in encoder.encode(side, missing):
            _check_finite(batch)
            rows = [(item.id, item.stamp) for item in batch.items]
            writer.add(rows, batch.gaussians, batch.corrupt, batch.missed)
            done += len(batch.items) + len(batch.corrupt) + len(batch.missed)
            progress(side, done, len(items))


def finished_rows(folder: Path) -> set[tuple[str, str]]:
    """(id, stamp) of every item that the parts of a side hold, or know to be corrupt."""
    finished: set[tuple[str, str]] = set()
    for journal in read_parts(folder):
        finished.update(journal.rows)
        finished.update((name, stamp) for name, (stamp, _) in journal.corrupt.items())
    return finished


class _EncodedBatch(NamedTuple):
    """The items of a batch that could be read, with their Gaussians (None: no item could), and the failures."""

    items: Sequence[SourceItem]
    gaussians: Gaussian | None
    corrupt: Sequence[Failure] = ()  # never readable
    missed: Sequence[Failure] = ()  # not readable this time


class _DecodedBatch(NamedTuple):
    """The pictures of a batch that could be decoded, and the failures."""

    items: list[SourceItem]
    pixels: list[Tensor]
    corrupt: list[Failure]
    missed: list[Failure]


@dataclass(frozen=True)
class _Encoder:
    """Encodes the items of a collection: captions, stored features, or pictures."""

    source: Source
    model: Model
    batch_size: int
    workers: int

    def encode(self, side: Side, items: Sequence[SourceItem]) -> Iterator[_EncodedBatch]:
        """The items in batches, in order."""
        if side == "captions":
            for batch in self._batches(items, max(self.batch_size, _MIN_BATCH)):
                yield _EncodedBatch(batch, _gaussian(self.model.encode_texts([item.captions[0] for item in batch])))
        elif self.source.stores:
            for batch in self._batches(items, max(self.batch_size, _MIN_BATCH)):
                features = self.source.features(batch)
                yield _EncodedBatch(batch, _gaussian(self.model.encode_images(features, batch_size=len(batch))))
        else:
            for kept, pixels, corrupt, missed in self._decode(self._batches(items, self.batch_size)):
                gaussians = _gaussian(self.model.encode_images(torch.stack(pixels))) if pixels else None
                yield _EncodedBatch(kept, gaussians, corrupt, missed)

    @staticmethod
    def _batches(items: Sequence[SourceItem], size: int) -> Iterator[Sequence[SourceItem]]:
        for start in range(0, len(items), size):
            yield items[start : start + size]

    def _decode(self, batches: Iterator[Sequence[SourceItem]]) -> Iterator[_DecodedBatch]:
        """Pictures as tensors, decoded by threads one batch ahead of the network."""
        for batch, futures in load_ahead(((batch, batch) for batch in batches), self._pixels, workers=self.workers):
            yield _collected(batch, futures)

    def _pixels(self, item: SourceItem) -> Tensor:
        assert item.location is not None
        return self.model.preprocess(read_picture(read_location(self.source.roots, item.location), item.id))


def _collected(batch: Sequence[SourceItem], futures: Sequence[Future[Tensor]]) -> _DecodedBatch:
    decoded = _DecodedBatch([], [], [], [])
    for item, future in zip(batch, futures, strict=True):
        try:
            decoded.pixels.append(future.result())
            decoded.items.append(item)
        except UnreadablePicture as error:
            decoded.corrupt.append((item.id, item.stamp, one_line(str(error))))
        except InputError as error:
            decoded.missed.append((item.id, item.stamp, one_line(str(error))))
        except (OSError, MemoryError) as error:
            why = "not enough memory" if isinstance(error, MemoryError) else error.strerror or str(error)
            decoded.missed.append((item.id, item.stamp, one_line(f"{item.id} could not be read ({why}); try again")))
    return decoded


def _gaussian(encoded: Encoded) -> Gaussian:
    assert isinstance(encoded, Gaussian)  # other models were refused
    return encoded


def _check_finite(batch: _EncodedBatch) -> None:
    gaussians = batch.gaussians
    if gaussians is None:
        return
    finite = gaussians.mean.isfinite().all(1) & (gaussians.log_var is None or gaussians.log_var.isfinite().all(1))
    if not finite.all():
        first = batch.items[int(finite.int().argmin())]
        raise InputError(f"the model's output is not finite for {first.id}; train it again")
