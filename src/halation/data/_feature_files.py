"""Files of features: folders that halation made, bare arrays beside an images.txt, HDF5."""

from __future__ import annotations

import importlib
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from halation._errors import InputError, MissingExtra
from halation._files import read_json, read_lines, read_npy
from halation._storage import read_version
from halation.data._features import MEMORY, FeatureArray, FeatureStore
from halation.data._origin import NOT_PROJECTED, FeatureOrigin
from halation.data._projection import Projection

__all__ = ["CORRUPT", "LOCAL", "META", "NAMES", "PARTIAL", "POOLED", "open_features"]

META, POOLED, LOCAL, NAMES, CORRUPT = "meta.json", "pooled.npy", "local.npy", "images.txt", "corrupt.txt"
PARTIAL = "partial"  # folder of features that are being computed
_HDF5 = (".h5", ".hdf5")


def open_features(path: str | os.PathLike[str], *, memory: int = MEMORY) -> FeatureStore:
    """The features at `path`, memory-mapped; arrays of at most `memory` bytes are loaded on their first use.

    - a folder that `cache_features` made;
    - a folder of arrays and an images.txt that names their rows: (n, d) is pooled, (n, cells, d) local, int8 is
      multiplied by "scale" of the `…_params.npz` beside it; where it holds several of a kind, name the files by what
      they begin with ("features/efflite0");
    - one such array;
    - an HDF5 file with "pooled", "local" or both, and perhaps "images", the names of the rows (extra `hdf5`).
    """
    source = Path(path)
    if source.is_dir():
        if (source / META).is_file():
            return _cache(source, memory)
        if (source / PARTIAL).is_dir():
            raise _not_finished(source)
        return _arrays(sorted(source.glob("*.npy")), source, memory)
    if source.suffix in _HDF5:
        return _hdf5(source, memory)
    if source.is_file():
        return _arrays([source], source, memory)
    matching = sorted(source.parent.glob(f"{source.name}*.npy")) if source.parent.is_dir() else []
    if not matching:
        raise InputError("does not exist", path=source, remedy="name a folder, .npy or HDF5 file of features")
    return _arrays(matching, source, memory)


def _cache(folder: Path, memory: int) -> FeatureStore:
    def read_head() -> dict[str, Any]:
        meta = read_json(folder / META)
        if not isinstance(meta, dict) or meta.get("complete") is not True:
            raise _not_finished(folder)
        return {"data": ".", **meta}  # older versions kept the data beside meta.json

    def read(meta: dict[str, Any]) -> FeatureStore:
        data = folder / meta["data"]
        pooled, local = (_rows(data / name, memory) if (data / name).is_file() else None for name in (POOLED, LOCAL))
        projection = Projection.load(data / Projection.FILE) if (data / Projection.FILE).is_file() else None
        digest = NOT_PROJECTED if projection is None else projection.digest
        return FeatureStore(
            pooled,
            local,
            names=_names(data / NAMES),
            source=str(folder),
            corrupt=_names(data / CORRUPT) or (),
            projection=projection,
            origin=FeatureOrigin.from_dict({**meta, "projection": None if local is None else digest}),
        )

    return read_version(read_head, read)


def _not_finished(folder: Path) -> InputError:
    return InputError("is not finished", path=folder, remedy="run the same `halation features` again; it goes on")


def _arrays(files: list[Path], source: Path, memory: int) -> FeatureStore:
    if not files:
        raise InputError("holds no .npy file of features", path=source, remedy="`halation features` makes them")
    kinds: dict[int, list[Path]] = {}
    for file in files:
        kinds.setdefault(read_npy(file).ndim, []).append(file)
    for dims, same in kinds.items():
        if dims not in (2, 3):
            remedy = "features are (n, d) or (n, cells, d)"
            raise InputError(f"has {dims} dimensions", path=same[0], remedy=remedy)
        if len(same) > 1:
            problem = f": {same[0].name} or {same[1].name}?"
            raise InputError(problem, path=source, remedy="Name a file, or the beginning of its name")
    pooled, local = (_rows(kinds[dims][0], memory) if dims in kinds else None for dims in (2, 3))
    names = _names(files[0].parent / NAMES)
    params = _params(kinds[3][0]) if 3 in kinds else None
    projection = None if params is None else Projection.read(params)
    origin = FeatureOrigin(projection=None if projection is None else projection.digest)
    return FeatureStore(pooled, local, names=names, source=str(source), projection=projection, origin=origin)


def _rows(file: Path, memory: int) -> FeatureArray:
    array = read_npy(file)
    scale = None
    if array.dtype.kind in "iu":
        scale = _scale(file, array)
    return FeatureArray(array, scale, memory=memory)


def _scale(file: Path, array: Any) -> Tensor:
    params_file = _params(file)
    if params_file is None:
        raise InputError(f'holds {array.dtype} but no {file.stem}_params.npz with its "scale" is beside it', path=file)
    try:
        with np.load(params_file, allow_pickle=False) as params:
            scale = params["scale"].astype(np.float32)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f': no readable "scale" ({error}); it turns {file.name} into numbers', path=params_file
        ) from None
    try:
        fits = np.broadcast_shapes(scale.shape, array.shape[1:]) == array.shape[1:]
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f': "scale" has shape {scale.shape}, which does not fit rows of {array.shape[1:]}', path=params_file
        )
    return torch.from_numpy(scale)


def _params(file: Path) -> Path | None:
    """The `…_params.npz` of an array that was made smaller."""
    candidates = (
        path for path in file.parent.glob("*_params.npz") if file.stem.startswith(path.stem[: -len("_params")])
    )
    return next(candidates, None)


def _names(file: Path) -> list[str] | None:
    if not file.is_file():
        return None
    names = [line.split("\t")[0].strip() for _, line in read_lines(file)]
    if len(set(names)) != len(names):
        twice = next(name for row, name in enumerate(names) if name in names[:row])
        remedy = "each row of features needs a name of its own"
        raise InputError(f": {twice} is listed twice", path=file, remedy=remedy)
    return names


def _hdf5(file: Path, memory: int) -> FeatureStore:
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise MissingExtra(f"{file.name} (HDF5)", "hdf5") from None
    try:
        opened = h5py.File(file, "r")
    except OSError as error:
        problem = f"is not a readable HDF5 file ({error})"
        raise InputError(problem, path=file, remedy="was it written completely?") from None
    if not {"pooled", "local"} & set(opened):
        remedy = 'call the features "pooled" and "local"'
        raise InputError(f"holds {', '.join(opened) or 'nothing'}", path=file, remedy=remedy)
    pooled, local = (
        FeatureArray(opened[name], memory=memory) if name in opened else None for name in ("pooled", "local")
    )
    names = [str(name) for name in opened["images"].asstr()[:]] if "images" in opened else None
    return FeatureStore(pooled, local, names=names, source=str(file))
