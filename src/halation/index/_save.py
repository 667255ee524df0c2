"""An index as a folder: index.json, and the data folder it names."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import halation
from halation._errors import HalationError, InputError
from halation._files import read_json
from halation._storage import DATA, check_files, checksums, read_version, replace_version
from halation._tensors import Blocks, map_arrays, write_arrays
from halation.index._backend import Backend, choose_backend
from halation.index._hubness import Hubness
from halation.index._items import Items
from halation.index._similarity import PointEncoder, describe, from_description
from halation.similarity import Gaussian, Similarity

__all__ = ["Contents", "read_index", "write_index"]

_FORMAT, _READABLE = 3, (2, 3)  # format 2, of halation 0.1, has strings as ids and is otherwise the same
_HEAD, _BACKEND = "index.json", "backend"
_GAUSSIANS, _ITEMS, _FORM = "gaussians.safetensors", "items.safetensors", "form.safetensors"
_KEYS = {"data", "files", "similarity", "backend", "dim", "next_key", "meta"}


@dataclass
class Contents:
    """The parts of an index that are saved."""

    similarity: Similarity
    items: Items
    encoder: PointEncoder
    backend: Backend
    hubness: Hubness | None
    queries: Gaussian | None
    rerank: int
    meta: dict[str, Any]


def write_index(contents: Contents, folder: str | os.PathLike[str]) -> None:
    """Write an index to a folder; an index that is there is replaced."""
    target = Path(folder)
    head = _head(contents)
    if target.is_file() or not target.absolute().parent.is_dir():
        raise InputError("is a file, or its parent folder does not exist", path=target, remedy="name a new folder")
    try:
        with replace_version(target, _HEAD) as version:
            _write_data(contents, version.folder)
            version.head |= head | {"files": checksums(version.folder)}
    except OSError as error:
        if isinstance(error, HalationError):
            raise
        raise InputError(f"could not be written ({error}); what was there before is untouched", path=target) from None


def _head(contents: Contents) -> dict[str, Any]:
    hubness = contents.hubness
    head = {
        "format": _FORMAT,
        "halation": halation.__version__,
        "items": len(contents.items),
        "dim": contents.items.dim,
        "similarity": describe(contents.similarity),
        "backend": contents.backend.name,
        "rerank": contents.rerank,
        "next_key": contents.items.next_key,
        "floor": contents.encoder.floor,
        "hubness": None if hubness is None else {
            "kind": hubness.kind, "neighbours": hubness.neighbours,
            "temperature": hubness.temperature, "centre": hubness.centre,
        },
        "meta": contents.meta,
    }  # fmt: skip
    try:
        json.dumps(head, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the index's meta holds a value that JSON cannot ({error})") from None
    return head


def _write_data(contents: Contents, folder: Path) -> None:
    columns = contents.items.for_file()
    gaussians: dict[str, Blocks] = {name: columns.pop(name) for name in ("mean", "log_var") if name in columns}
    write_arrays(folder / _GAUSSIANS, gaussians)
    write_arrays(folder / _ITEMS, columns)
    write_arrays(folder / _FORM, _form(contents))
    (folder / _BACKEND).mkdir()
    contents.backend.save(folder / _BACKEND)


def _form(contents: Contents) -> dict[str, Blocks]:
    """The arrays that points are made with: the encoder's origin, the queries given, the bank of `Hubness`."""
    arrays = {} if contents.encoder.origin is None else {"origin": contents.encoder.origin}
    banks = {"queries": contents.queries, "bank": None if contents.hubness is None else contents.hubness.bank}
    for name, bank in banks.items():
        if bank is not None:
            arrays[f"{name}.mean"] = bank.mean.numpy()
            if bank.log_var is not None:
                arrays[f"{name}.log_var"] = bank.log_var.numpy()
    return {name: (array.shape, np.dtype("<f4"), [array]) for name, array in arrays.items()}


def read_index(folder: str | os.PathLike[str], backend: Backend | None, *, verify: bool) -> Contents:
    """The index that `write_index` wrote. With a `backend`, that one is used, and is still empty."""
    target = Path(folder)

    def read(head: dict[str, Any]) -> Contents:
        check_files(target / head["data"], head["files"], verify=verify)
        return _contents(head, target / head["data"], backend)

    return read_version(lambda: _read_head(target), read)


def _read_head(target: Path) -> dict[str, Any]:
    if not (target / _HEAD).is_file():
        raise InputError(f"holds no {_HEAD}; is it the folder of an index? (`halation index` makes one)", path=target)
    head = read_json(target / _HEAD)
    if not isinstance(head, dict) or "format" not in head:
        raise InputError("is not the head file of an index", path=target / _HEAD, remedy="make the index again")
    if head["format"] not in _READABLE:
        raise InputError(
            f"has the format {head['format']}, written by halation {head.get('halation', '(unknown)')}, and "
            f"this halation ({halation.__version__}) reads formats {' and '.join(map(str, _READABLE))}",
            path=target,
            remedy="make the index again from the embeddings: halation index EMBEDDINGS -o INDEX",
        )
    missing = _KEYS - head.keys()
    if missing or not str(head["data"]).startswith(DATA) or "/" in head["data"]:
        raise InputError(
            f"is incomplete ({', '.join(sorted(missing)) or 'data'})",
            path=target / _HEAD,
            remedy="make the index again",
        )
    return head


def _contents(head: dict[str, Any], data: Path, backend: Backend | None) -> Contents:
    similarity = from_description(head["similarity"])
    items = Items.mapped(map_arrays(data / _GAUSSIANS) | map_arrays(data / _ITEMS), int(head["next_key"]))
    form, hubness = map_arrays(data / _FORM), None
    if head["hubness"] is not None:
        hubness = Hubness(**head["hubness"], bank=_gaussian(form, "bank"))
    queries = _gaussian(form, "queries") if "queries.mean" in form else None
    encoder = PointEncoder(similarity, penalty=hubness is not None)
    encoder.floor = float(head["floor"])
    encoder.origin = np.array(form["origin"]) if "origin" in form else None
    chosen = backend or choose_backend(head["backend"])
    if backend is None:
        chosen.load(data / _BACKEND)
    return Contents(similarity, items, encoder, chosen, hubness, queries, int(head["rerank"]), head["meta"])


def _gaussian(form: dict[str, Any], name: str) -> Gaussian:
    mean, log_var = np.array(form[f"{name}.mean"]), form.get(f"{name}.log_var")
    return Gaussian(torch.from_numpy(mean), None if log_var is None else torch.from_numpy(np.array(log_var)))
