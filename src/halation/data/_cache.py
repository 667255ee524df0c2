"""`cache_features`: look at every picture once, keep what the backbone saw."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from torch import Tensor, nn

import halation
from halation._ahead import load_ahead
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.data._cache_files import Cache
from halation.data._dataset import Dataset
from halation.data._feature_files import open_features
from halation.data._features import FeatureStore
from halation.data._inputs import Features
from halation.data._layouts import recognise
from halation.data._open import photos_of
from halation.data._origin import FeatureOrigin
from halation.data._pictures import PICTURE_SUFFIXES, Photos, open_photo
from halation.data._smaller import Smaller

__all__ = ["cache_features"]


def cache_features(
    source: Dataset | Photos | str | os.PathLike[str],
    backbone: nn.Module,
    out: str | os.PathLike[str],
    *,
    batch_size: int = 64,
    workers: int = 2,
    cells: int | None = None,
    progress: Progress = silent,
) -> FeatureStore:
    """What a frozen backbone sees of every picture, in the folder `out`, as memory-mapped float16.

    source     a dataset, its photos, or a folder: all splits of a dataset that is recognised, else every picture below
    backbone   any image backbone: `preprocess(picture)` → (3, H, W), `forward` → Features. It works in evaluation mode
               on the device where it lies
    out        a new or empty folder, or one in which the same was begun
    cells      dimensions of a cell: principal components of the training split's cells (of all pictures, where there
               is no split "train"), kept beside them so that new pictures come to the same numbers; None = as the
               backbone gives them. Until they are fitted, the whole cells lie on the disk: 125 kB a picture for
               EfficientNet-Lite0

    Blocks of `batch_size` pictures are written and marked as done one by one. Stopped at any moment, the same call
    goes on behind the last mark; the folder counts as complete only when everything is in place. Pictures that cannot
    be read get no row: `corrupt.txt` says which and why.
    """
    names, paths, learn = _pictures(source)
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be 1 or more")
    _check_cells(cells, backbone)
    identity, folder = _identity(names, paths, backbone), Path(out)
    try:
        if cells is None:
            _fill(Cache(folder, names, identity, batch_size), paths, backbone, workers, progress)
        elif not (smaller := Smaller(folder, identity, cells)).complete:
            _fill(Cache(smaller.whole, names, identity, batch_size), paths, backbone, workers, progress)
            smaller.finish(learn, progress)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"{out}: the disk is full; make room and run the same again, what is done is kept") from None
    return open_features(out)


def _check_cells(cells: int | None, backbone: Any) -> None:
    if cells is None:
        return
    given = int(getattr(backbone, "local_dim", 0))
    if not 0 < cells <= given:
        what = f"gives cells of {given} numbers" if given else "gives no cells"
        raise InputError(f"cells of {cells} dimensions: {type(backbone).__name__} {what}; ask for fewer, or for none")


def _fill(cache: Cache, paths: Sequence[Path], backbone: nn.Module, workers: int, progress: Progress) -> None:
    """Everything the backbone sees, in a folder that is complete afterwards."""
    if cache.complete:
        return
    was_training = backbone.training
    backbone.eval()
    try:
        with torch.inference_mode():
            _compute(cache, paths, backbone, workers, progress)
        cache.finish()
    finally:
        backbone.train(was_training)


def _compute(cache: Cache, paths: Sequence[Path], backbone: nn.Module, workers: int, progress: Progress) -> None:
    done = cache.n_done
    progress("features", done, len(paths))
    for start, rows, pixels, corrupt in _decoded(cache.blocks_to_do(), paths, backbone, workers):
        seen = backbone(torch.stack(pixels).to(_device(backbone))) if pixels else None
        cache.write(start, rows, None if seen is None else _halved(seen, [str(paths[row]) for row in rows]), corrupt)
        done += len(rows) + len(corrupt)
        progress("features", done, len(paths))


def _decoded(
    blocks: Sequence[range], paths: Sequence[Path], backbone: Any, workers: int
) -> Iterator[tuple[int, list[int], list[Tensor], dict[int, str]]]:
    """(first row, rows that could be read, their pixels, the others and why) of each block, one block ahead."""

    def load(row: int) -> Tensor:
        pixels: Tensor = backbone.preprocess(open_photo(paths[row]))
        return pixels

    for block, futures in load_ahead(((block, block) for block in blocks), load, workers=workers):
        rows, pixels, corrupt = [], [], {}
        for row, future in zip(block, futures, strict=True):
            try:
                pixels.append(future.result())
                rows.append(row)
            except InputError as error:
                corrupt[row] = str(error)
        yield block.start, rows, pixels, corrupt


def _halved(seen: Features, paths: Sequence[str]) -> dict[str, Any]:
    arrays = {"pooled": seen.pooled} if seen.local is None else {"pooled": seen.pooled, "local": seen.local}
    halved = {}
    for name, values in arrays.items():
        with np.errstate(over="ignore"):  # said below
            half = values.float().cpu().numpy().astype(np.float16)
        wrong = ~np.isfinite(half.reshape(len(half), -1)).all(axis=1)
        if wrong.any():
            raise InputError(f"{name} features of {paths[int(np.argmax(wrong))]} are not finite in float16; scale them")
        halved[name] = half
    return halved


def _pictures(source: Dataset | Photos | str | os.PathLike[str]) -> tuple[list[str], list[Path], list[str]]:
    """Names and paths of all pictures, and the names of those to learn from; they are what `open_dataset` looks for."""
    if isinstance(source, Dataset):
        if source.photos is None:
            raise InputError(f"{source.name} has no pictures; unpack them beside its captions")
        names = [str(name) for name in source.truth.image_ids]
        return names, list(source.photos.paths), names
    if isinstance(source, Photos):
        names = [path.name for path in source.paths]
        return names, list(source.paths), names
    root = Path(source)
    try:
        layout = recognise(root)
    except InputError:
        names, below = _all_below(root)
        return names, below, names
    path_of: dict[str, Path] = {}
    learn: list[str] = []
    for split in layout.splits:
        annotations = layout.read(split)
        if annotations.files is None:
            raise InputError(f"{root} ({layout.name}) is made of features already; there are no pictures")
        photos = photos_of(annotations, layout, layout.title(split), needed=True)
        if photos is None:
            raise InputError(f"{root} ({layout.name}) has no pictures in {layout.folders[0]}; unpack them there")
        names = [candidates[0] for candidates in annotations.files]
        path_of.update(zip(names, photos.paths, strict=True))
        learn += names if split == "train" else []
    return list(path_of), list(path_of.values()), learn or list(path_of)


def _all_below(root: Path) -> tuple[list[str], list[Path]]:
    if not root.is_dir():
        raise InputError(f"{root} is no folder; name the folder of a dataset or of pictures")
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file())
    if not paths:
        raise InputError(f"{root} holds no picture ({', '.join(sorted(PICTURE_SUFFIXES))})")
    return [path.relative_to(root).as_posix() for path in paths], paths


def _identity(names: Sequence[str], paths: Sequence[Path], backbone: nn.Module) -> dict[str, Any]:
    """What two runs must share for one to go on with the other's blocks."""
    sizes = [path.stat().st_size if path.is_file() else -1 for path in paths]
    listing = "".join(f"{name}\t{size}\n" for name, size in zip(names, sizes, strict=True))
    origin = FeatureOrigin.of(backbone)
    return {
        "backbone": origin.backbone,
        "weights": origin.weights,
        "preprocessing": origin.preprocessing,
        "images": len(names),
        "source": hashlib.sha256(listing.encode()).hexdigest(),
        "dtype": "float16",
        "versions": {"halation": halation.__version__, "torch": torch.__version__, "pillow": PIL.__version__},
    }


def _device(backbone: nn.Module) -> torch.device:
    return next((parameter.device for parameter in backbone.parameters()), torch.device("cpu"))
