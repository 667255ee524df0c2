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
from halation.search._close import begin, close
from halation.search._embeddings import Embeddings, parts_of
from halation.search._entries import Entry, Source, one_line, read_place
from halation.search._journal import Lost, Writer
from halation.search._sources import open_source
from halation.similarity import Gaussian

__all__ = ["embed"]

_QUICK = 256  # captions and features take so little time that waiting for the disk would be most of it


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
    root      the folder the pictures of a .jsonl lie below; None = beside it
    backbone  what computed the features, for a run trained on features; EfficientNet-Lite0 is recognised
    workers   threads that decode pictures; None = a few
    shard     (i, n): the i-th of n processes that share the work, each started with its own i; what torchrun says
              where it started this process

    Killed at any moment, the same call goes on: what is in the journals is neither computed again nor lost. Pictures
    that were added or changed since are looked at, those that are gone leave the list. What cannot be read is listed
    in `Embeddings.corrupt` and left out; the same call tries it again, unless it is no picture at all. With shards,
    the process that ends last completes the folder.
    """
    index, of = _shard(shard)
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be 1 or more")
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more, or left out")
    model = (run if isinstance(run, Model) else load(run, backbone=backbone)).without_gist()
    _ = model.indexed_similarity  # an InputError where nothing could search these embeddings
    collection = open_source(source, model, side=side, split=split, root=root)
    if "images" in collection.entries and not collection.stores:
        _ = model.images.network  # one that cannot look at pictures is known before anything is written
    folder = Path(out)
    said = begin(folder, collection, model)
    try:
        for name, entries in collection.entries.items():
            mine = [
                entry for entry in entries if of == 1 or zlib.crc32(entry.id.encode(errors="replace")) % of == index
            ]
            part = folder / name / f"part-{index:05d}-of-{of:05d}"
            _work(part, name, mine, collection, model, batch_size, workers or min(4, threads() + 1), progress)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            ": the disk is full; make room and run the same again, what is done is kept", path=out
        ) from None
    return close(folder, collection, said)


def _shard(shard: tuple[int, int] | None) -> tuple[int, int]:
    said = shard or (os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1"))
    try:
        index, of = map(int, said)
    except (ValueError, TypeError):
        raise InputError(
            f"shard {said} is not two whole numbers (or RANK and WORLD_SIZE, where torchrun set them)"
        ) from None
    if not 0 <= index < of:
        raise InputError(f"shard ({index}, {of}) does not exist; they are counted from (0, {of}) to ({of - 1}, {of})")
    return index, of


def _work(
    part: Path,
    side: Side,
    mine: Sequence[Entry],
    source: Source,
    model: Model,
    batch_size: int,
    workers: int,
    progress: Progress,
) -> None:
    """Add to `part` what no part of this side has yet."""
    with Writer(part) as writer:
        have = done(part.parent)
        missing = [entry for entry in mine if (entry.id, entry.stamp) not in have]
        finished = len(mine) - len(missing)
        progress(side, finished, len(mine))
        size = batch_size if side == "images" and not source.stores else max(batch_size, _QUICK)
        batches = [missing[start : start + size] for start in range(0, len(missing), size)]
        for entries, values, corrupt, missed in _encoded(batches, side, source, model, workers):
            _check_finite(entries, values)
            writer.add([(entry.id, entry.stamp) for entry in entries], values, corrupt, missed)
            finished += len(entries) + len(corrupt) + len(missed)
            progress(side, finished, len(mine))


def done(folder: Path) -> set[tuple[str, str]]:
    """(id, stamp) of everything the parts of a side hold, or know to be broken."""
    have: set[tuple[str, str]] = set()
    for journal in parts_of(folder):
        have.update(journal.rows)
        have.update((name, stamp) for name, (stamp, _) in journal.corrupt.items())
    return have


EncodedBatch = tuple[Sequence[Entry], Gaussian | None, list[Lost], list[Lost]]
Decoded = tuple[list[Entry], list[Tensor], list[Lost], list[Lost]]


def _encoded(
    batches: Sequence[Sequence[Entry]], side: Side, source: Source, model: Model, workers: int
) -> Iterator[EncodedBatch]:
    """(entries, their Gaussians, what is broken, what could not be read this time) of each batch."""
    if side == "captions":
        for batch in batches:
            yield batch, _gaussian(model.encode_texts([entry.captions[0] for entry in batch])), [], []
    elif source.stores:
        for batch in batches:
            yield batch, _gaussian(model.encode_images(source.features(batch), batch_size=len(batch))), [], []
    else:
        for batch, pixels, corrupt, missed in _decoded(batches, source, model, workers):
            yield batch, _gaussian(model.encode_images(torch.stack(pixels))) if pixels else None, corrupt, missed


def _decoded(batches: Sequence[Sequence[Entry]], source: Source, model: Model, workers: int) -> Iterator[Decoded]:
    """Pictures as tensors, decoded by threads one batch ahead of the network."""

    def load(entry: Entry) -> Tensor:
        assert entry.place is not None
        return model.preprocess(read_picture(read_place(source.roots, entry.place), entry.id))

    for batch, futures in load_ahead(((batch, batch) for batch in batches), load, workers=workers):
        yield _sorted_out(batch, futures)


def _sorted_out(batch: Sequence[Entry], futures: Sequence[Future[Tensor]]) -> Decoded:
    kept: list[Entry] = []
    pixels: list[Tensor] = []
    corrupt: list[Lost] = []
    missed: list[Lost] = []
    for entry, future in zip(batch, futures, strict=True):
        try:
            pixels.append(future.result())
            kept.append(entry)
        except UnreadablePicture as error:
            corrupt.append((entry.id, entry.stamp, one_line(str(error))))
        except InputError as error:
            missed.append((entry.id, entry.stamp, one_line(str(error))))
        except (OSError, MemoryError) as error:
            why = "not enough memory" if isinstance(error, MemoryError) else error.strerror or str(error)
            missed.append((entry.id, entry.stamp, one_line(f"{entry.id} could not be read ({why}); try again")))
    return kept, pixels, corrupt, missed


def _gaussian(encoded: Encoded) -> Gaussian:
    assert isinstance(encoded, Gaussian)  # models that give anything else were refused
    return encoded


def _check_finite(entries: Sequence[Entry], values: Gaussian | None) -> None:
    if values is None:
        return
    finite = values.mean.isfinite().all(1) & (values.log_var is None or values.log_var.isfinite().all(1))
    if not finite.all():
        raise InputError(
            f"the model gives no finite numbers for {entries[int(finite.int().argmin())].id}; train it anew"
        )
