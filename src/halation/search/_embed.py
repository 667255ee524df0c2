"""`embed`: every picture and caption of a collection through the model once, however often it is interrupted."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

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

_LEAST = 256  # items per batch of captions or features: with fewer, waiting for the disk would take most of the time


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
    side      "images", "captions", or what the source has ("auto", "both")
    split     of a dataset; None = all of it
    root      the folder that holds the pictures of a .jsonl; None = its own
    backbone  what computed the features, for a run trained on features; EfficientNet-Lite0 is recognised
    workers   threads that decode pictures; None = a few
    shard     (i, n): the i-th of n processes that share the work, each started with its own i; by default what
              torchrun set

    Killed at any moment, the same call resumes: what is in the journals is neither computed again nor lost. Pictures
    that were added or changed since are embedded, those that are gone leave the listing. What cannot be read is left
    out and named in `Embeddings.corrupt`; the same call tries it again, unless it is not a picture at all. With
    shards, the process that ends last completes the folder.
    """
    index, of = _shard(shard)
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
    try:
        for name, items in collection.sides.items():
            mine = [item for item in items if of == 1 or zlib.crc32(item.id.encode(errors="replace")) % of == index]
            part = folder / name / f"part-{index:05d}-of-{of:05d}"
            readers = workers or min(4, threads() + 1)
            _work(part, name, mine, collection, model, batch_size=batch_size, workers=readers, progress=progress)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            ": the disk is full", path=out, remedy="make room and run the same again; what is done is kept"
        ) from None
    return complete_folder(folder, collection, manifest)


def _shard(shard: tuple[int, int] | None) -> tuple[int, int]:
    given = shard or (os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1"))
    try:
        index, of = map(int, given)
    except (ValueError, TypeError):
        raise InputError(
            f"shard {given} is not two whole numbers (or RANK and WORLD_SIZE, where torchrun set them)"
        ) from None
    if not 0 <= index < of:
        raise InputError(f"shard ({index}, {of}) does not exist; they are counted from (0, {of}) to ({of - 1}, {of})")
    return index, of


def _work(
    part: Path,
    side: Side,
    mine: Sequence[SourceItem],
    source: Source,
    model: Model,
    *,
    batch_size: int,
    workers: int,
    progress: Progress,
) -> None:
    """Add to `part` the items that no part of this side has yet."""
    with JournalWriter(part) as writer:
        have = finished_rows(part.parent)
        missing = [item for item in mine if (item.id, item.stamp) not in have]
        finished = len(mine) - len(missing)
        progress(side, finished, len(mine))
        size = batch_size if side == "images" and not source.stores else max(batch_size, _LEAST)
        batches = [missing[start : start + size] for start in range(0, len(missing), size)]
        for items, values, corrupt, missed in _encoded(batches, side, source, model, workers):
            _check_finite(items, values)
            writer.add([(item.id, item.stamp) for item in items], values, corrupt, missed)
            finished += len(items) + len(corrupt) + len(missed)
            progress(side, finished, len(mine))


def finished_rows(folder: Path) -> set[tuple[str, str]]:
    """(id, stamp) of every item that the parts of a side hold, or know to be corrupt."""
    have: set[tuple[str, str]] = set()
    for journal in read_parts(folder):
        have.update(journal.rows)
        have.update((name, stamp) for name, (stamp, _) in journal.corrupt.items())
    return have


EncodedBatch = tuple[Sequence[SourceItem], Gaussian | None, list[Failure], list[Failure]]
Decoded = tuple[list[SourceItem], list[Tensor], list[Failure], list[Failure]]


def _encoded(
    batches: Sequence[Sequence[SourceItem]], side: Side, source: Source, model: Model, workers: int
) -> Iterator[EncodedBatch]:
    """(items, their Gaussians, the corrupt ones, those missed this time) of each batch."""
    if side == "captions":
        for batch in batches:
            yield batch, _gaussian(model.encode_texts([item.captions[0] for item in batch])), [], []
    elif source.stores:
        for batch in batches:
            yield batch, _gaussian(model.encode_images(source.features(batch), batch_size=len(batch))), [], []
    else:
        for batch, pixels, corrupt, missed in _decoded(batches, source, model, workers):
            yield batch, _gaussian(model.encode_images(torch.stack(pixels))) if pixels else None, corrupt, missed


def _decoded(batches: Sequence[Sequence[SourceItem]], source: Source, model: Model, workers: int) -> Iterator[Decoded]:
    """Pictures as tensors, decoded by threads one batch ahead of the network."""

    def load(item: SourceItem) -> Tensor:
        assert item.location is not None
        return model.preprocess(read_picture(read_location(source.roots, item.location), item.id))

    for batch, futures in load_ahead(((batch, batch) for batch in batches), load, workers=workers):
        yield _collected(batch, futures)


def _collected(batch: Sequence[SourceItem], futures: Sequence[Future[Tensor]]) -> Decoded:
    kept: list[SourceItem] = []
    pixels: list[Tensor] = []
    corrupt: list[Failure] = []
    missed: list[Failure] = []
    for item, future in zip(batch, futures, strict=True):
        try:
            pixels.append(future.result())
            kept.append(item)
        except UnreadablePicture as error:
            corrupt.append((item.id, item.stamp, one_line(str(error))))
        except InputError as error:
            missed.append((item.id, item.stamp, one_line(str(error))))
        except (OSError, MemoryError) as error:
            why = "not enough memory" if isinstance(error, MemoryError) else error.strerror or str(error)
            missed.append((item.id, item.stamp, one_line(f"{item.id} could not be read ({why}); try again")))
    return kept, pixels, corrupt, missed


def _gaussian(encoded: Encoded) -> Gaussian:
    assert isinstance(encoded, Gaussian)  # other models were refused
    return encoded


def _check_finite(items: Sequence[SourceItem], values: Gaussian | None) -> None:
    if values is None:
        return
    finite = values.mean.isfinite().all(1) & (values.log_var is None or values.log_var.isfinite().all(1))
    if not finite.all():
        raise InputError(f"the model's output is not finite for {items[int(finite.int().argmin())].id}; train it again")
