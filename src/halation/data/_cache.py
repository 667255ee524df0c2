"""`cache_features`: computes the features of every picture once and stores them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from halation._ahead import load_ahead
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.data._dataset import Dataset
from halation.data._feature_files import open_features
from halation.data._feature_folder import FeatureFolder, size_of
from halation.data._feature_journal import FeatureJournal
from halation.data._features import FeatureStore
from halation.data._inputs import Features
from halation.data._layouts import recognise
from halation.data._open import photos_of
from halation.data._origin import FeatureOrigin
from halation.data._pictures import PICTURE_SUFFIXES, Photos, open_photo
from halation.data._projection import Projection

__all__ = ["cache_features"]


def cache_features(
    source: Dataset | Photos | str | os.PathLike[str],
    backbone: nn.Module,
    out: str | os.PathLike[str],
    *,
    batch_size: int = 64,
    workers: int = 2,
    cells: int | None = None,
    projection: Projection | None = None,
    progress: Progress = silent,
) -> FeatureStore:
    """Compute the features of every picture and store them in the folder `out` as float16, in the order of `source`.

    source      a dataset, its photos, or a folder: all splits of a dataset that is recognised, else every picture below
    backbone    any image backbone: `preprocess(picture)` → (3, H, W), `forward` → Features. It works in evaluation
                mode on the device it is on. Where it has a `name` and a text `preprocessing`, the features' `origin`
                keeps them
    out         a new or empty folder, or one with features of the same backbone. Pictures that it has are not
                computed again; new and changed ones are added
    cells       dimensions of a cell: principal components of the training split's cells (of all pictures without a
                split "train"). The projection is stored beside them, for new pictures. None = as the backbone gives
                them. Until the components are fitted, whole cells are on the disk: 125 kB per picture for
                EfficientNet-Lite0
    projection  a given projection of the cells, for example that of a run, to evaluate it on this data

    Blocks of `batch_size` pictures are written one by one. If you stop the call at any moment, the same call continues
    after the last block. The folder changes only when everything is complete. Pictures that cannot be read get no row;
    `corrupt` lists them.
    """
    path_of, fit_on = _pictures(source)
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be 1 or more")
    _check_cells(cells, projection, backbone)
    origin = FeatureOrigin.of(backbone).without_cells()
    try:
        folder = FeatureFolder(Path(out), origin, cells, projection)
        if folder.knows_none_of(list(path_of)):
            raise InputError("holds features of other pictures", path=out, remedy="name another folder")
        if all(folder.has(name, path) for name, path in path_of.items()):
            folder.tidy()
        else:
            with folder.journal() as journal:
                _fill(folder, journal, path_of, backbone, batch_size, workers, progress)
                folder.publish(journal, fit_on, progress)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        remedy = "make room and run the same again; what is done is kept"
        raise InputError(": the disk is full", path=out, remedy=remedy) from None
    store = open_features(out)
    assert store.names is not None
    row_of = {name: row for row, name in enumerate(store.names)}
    return store.take([row_of[name] for name in path_of if name in row_of])


def _check_cells(cells: int | None, projection: Projection | None, backbone: Any) -> None:
    if cells is None and projection is None:
        return
    given, name = int(getattr(backbone, "local_dim", 0)), type(backbone).__name__
    gives = f"gives cells of {given} numbers" if given else "gives no cells"
    if cells is not None and projection is not None:
        raise InputError("cells and projection both set the size of a cell", remedy="give one of them")
    if projection is not None and projection.dims[0] != given:
        raise InputError(f"the projection takes cells of {projection.dims[0]} numbers; {name} {gives}")
    if cells is not None and not 0 < cells <= given:
        raise InputError(f"cells of {cells} dimensions: {name} {gives}", remedy="take fewer, or none")


def _fill(
    folder: FeatureFolder,
    journal: FeatureJournal,
    path_of: Mapping[str, Path],
    backbone: nn.Module,
    batch_size: int,
    workers: int,
    progress: Progress,
) -> None:
    """Compute the features of every picture that neither the folder nor the journal has."""
    missing = [
        (name, path, size_of(path))
        for name, path in path_of.items()
        if not folder.has(name, path) and not journal.has(name, size_of(path))
    ]
    done = len(path_of) - len(missing)
    progress("features", done, len(path_of))
    blocks = (missing[start : start + batch_size] for start in range(0, len(missing), batch_size))
    was_training = backbone.training
    backbone.eval()
    try:
        with torch.inference_mode():
            for pictures, pixels, corrupt in _decoded(blocks, backbone, workers):
                arrays = _computed(backbone, pixels, folder.projection, [name for name, _ in pictures])
                journal.add(pictures, arrays, corrupt)
                done += len(pictures) + len(corrupt)
                progress("features", done, len(path_of))
    finally:
        backbone.train(was_training)


def _decoded(
    blocks: Iterable[Sequence[tuple[str, Path, int]]], backbone: Any, workers: int
) -> Iterator[tuple[list[tuple[str, int]], list[Tensor], list[tuple[str, int, str]]]]:
    """(name and size of the pictures that could be read, their pixels, the others and why), one block ahead."""

    def load(picture: tuple[str, Path, int]) -> Tensor:
        pixels: Tensor = backbone.preprocess(open_photo(picture[1]))
        return pixels

    for block, futures in load_ahead(((block, block) for block in blocks), load, workers=workers):
        pictures, pixels, corrupt = [], [], []
        for (name, _, size), future in zip(block, futures, strict=True):
            try:
                pixels.append(future.result())
                pictures.append((name, size))
            except InputError as error:
                corrupt.append((name, size, str(error)))
        yield pictures, pixels, corrupt


def _computed(
    backbone: nn.Module, pixels: Sequence[Tensor], projection: Projection | None, names: Sequence[str]
) -> dict[str, Any] | None:
    if not pixels:
        return None
    features: Features = backbone(torch.stack(list(pixels)).to(_device(backbone)))
    if projection is not None and features.local is not None:
        features = Features(features.pooled, projection(features.local))
    return _halved(features, names)


def _halved(features: Features, names: Sequence[str]) -> dict[str, Any]:
    arrays = {"pooled": features.pooled} | ({} if features.local is None else {"local": features.local})
    halved = {}
    for name, values in arrays.items():
        with np.errstate(over="ignore"):  # the check below reports it
            half = values.float().cpu().numpy().astype(np.float16)
        wrong = ~np.isfinite(half.reshape(len(half), -1)).all(axis=1)
        if wrong.any():
            problem = f"{name} features of {names[int(np.argmax(wrong))]} are not finite in float16"
            raise InputError(problem, remedy="scale them")
        halved[name] = half
    return halved


def _pictures(source: Dataset | Photos | str | os.PathLike[str]) -> tuple[dict[str, Path], list[str]]:
    """The path of every picture by its name in `open_dataset`, and the names of those to fit on."""
    if isinstance(source, Dataset):
        if source.photos is None:
            raise InputError(f"{source.name} has no pictures", remedy="unpack them beside its captions")
        return _by_name([str(name) for name in source.truth.image_ids], source.photos.paths)
    if isinstance(source, Photos):
        return _by_name([path.name for path in source.paths], source.paths)
    root = Path(source)
    try:
        layout = recognise(root)
    except InputError:
        return _by_name(*_all_below(root))
    path_of: dict[str, Path] = {}
    fit_on: list[str] = []
    for split in layout.splits:
        annotations = layout.read(split)
        if annotations.files is None:
            raise InputError(f"({layout.name}) consists of features and has no pictures", path=root)
        photos = photos_of(annotations, layout, layout.title(split), needed=True)
        if photos is None:
            problem = f": no pictures of {layout.title(split)}"
            raise InputError(problem, path=layout.folders[0], remedy="unpack them there")
        names = [candidates[0] for candidates in annotations.files]
        path_of.update(zip(names, photos.paths, strict=True))
        fit_on += names if split == "train" else []
    return path_of, fit_on or list(path_of)


def _by_name(names: Sequence[str], paths: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    path_of = dict(zip(names, paths, strict=True))
    if len(path_of) != len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise InputError(f"{twice} is listed twice", remedy="every picture needs a name of its own")
    return path_of, list(path_of)


def _all_below(root: Path) -> tuple[list[str], list[Path]]:
    if not root.is_dir():
        raise InputError("is not a folder", path=root, remedy="name the folder of a dataset or of pictures")
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file())
    if not paths:
        raise InputError(f"holds no picture ({', '.join(sorted(PICTURE_SUFFIXES))})", path=root)
    return [path.relative_to(root).as_posix() for path in paths], paths


def _device(backbone: nn.Module) -> torch.device:
    return next((parameter.device for parameter in backbone.parameters()), torch.device("cpu"))
