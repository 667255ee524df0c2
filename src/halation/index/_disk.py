"""An index as a folder: index.json, written last, and beside it the folder of data it speaks of."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import halation
from halation._errors import HalationError, InputError
from halation._files import read_json
from halation._storage import DATA, check_files, checksums, read_version, replace_version
from halation.index._backend import Backend
from halation.index._choose import choose
from halation.index._gallery import Gallery
from halation.index._hubness import Hubness
from halation.index._items import Names
from halation.index._mapped import Blocks, read_mapped, write_arrays
from halation.index._named import describe, from_description
from halation.index._store import Store
from halation.index._table import Table
from halation.similarity import Gaussian, Similarity

__all__ = ["Saved", "read_index", "write_index"]

FORMAT = 2
_HEAD, _BACKEND = "index.json", "backend"
_GAUSSIANS, _ITEMS, _FORM = "gaussians.safetensors", "items.safetensors", "form.safetensors"


@dataclass
class Saved:
    """All of an index that is worth a file."""

    similarity: Similarity
    gallery: Gallery
    rerank: int
    meta: dict[str, Any]


def write_index(saved: Saved, folder: str | os.PathLike[str]) -> None:
    """Write an index to a folder, in place of the one that is there."""
    target = Path(folder)
    head = _head(saved)
    if target.is_file() or not target.absolute().parent.is_dir():
        raise InputError("is a file, or the folder it should lie in does not exist; name a new folder", path=target)
    try:
        with replace_version(target, _HEAD) as version:
            _write_data(saved.gallery, version.folder)
            version.head |= head | {"files": checksums(version.folder)}
    except OSError as error:
        if isinstance(error, HalationError):
            raise
        raise InputError(f"could not be written ({error}); what was there before is untouched", path=target) from None


def _head(saved: Saved) -> dict[str, Any]:
    gallery = saved.gallery
    hubness = gallery.hubness
    head = {
        "format": FORMAT,
        "halation": halation.__version__,
        "items": len(gallery),
        "dim": gallery.store.dim,
        "similarity": describe(saved.similarity),
        "backend": gallery.backend.name,
        "rerank": saved.rerank,
        "next_key": gallery.store.next_key,
        "floor": gallery.form.floor,
        "hubness": None if hubness is None else {
            "kind": hubness.kind, "neighbours": hubness.neighbours,
            "temperature": hubness.temperature, "centre": hubness.centre,
        },
        "meta": saved.meta,
    }  # fmt: skip
    try:
        json.dumps(head, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the index's meta holds something JSON cannot ({error})") from None
    return head


def _write_data(gallery: Gallery, folder: Path) -> None:
    columns = gallery.store.table.for_file()
    items = Names.for_file(gallery.store.names_at(np.arange(len(gallery))))
    items |= {name: columns.pop(name) for name in list(columns) if name in ("keys", "penalty")}
    write_arrays(folder / _GAUSSIANS, columns)
    write_arrays(folder / _ITEMS, items)
    kind = np.dtype("<f4")
    form: dict[str, Blocks] = {}
    for name, array in _form_arrays(gallery).items():
        form[name] = (array.shape, kind, [array])
    write_arrays(folder / _FORM, form)
    (folder / _BACKEND).mkdir()
    gallery.backend.save(folder / _BACKEND)


def _form_arrays(gallery: Gallery) -> dict[str, Any]:
    arrays = {} if gallery.form.origin is None else {"origin": gallery.form.origin}
    banks = {"queries": gallery.queries, "bank": None if gallery.hubness is None else gallery.hubness.bank}
    for name, bank in banks.items():
        if bank is not None:
            arrays[f"{name}.mean"] = bank.mean.numpy()
            if bank.log_var is not None:
                arrays[f"{name}.log_var"] = bank.log_var.numpy()
    return arrays


def read_index(folder: str | os.PathLike[str], backend: Backend | None, *, verify: bool) -> Saved:
    """What `write_index` wrote; with another backend, that one is still empty."""
    target = Path(folder)

    def read(head: dict[str, Any]) -> Saved:
        check_files(target / head["data"], head["files"], verify=verify)
        return _assemble(head, target / head["data"], backend)

    return read_version(lambda: _read_head(target), read)


def _read_head(target: Path) -> dict[str, Any]:
    if not (target / _HEAD).is_file():
        raise InputError(f"holds no {_HEAD}; is it the folder of an index? (halation index makes one)", path=target)
    head = read_json(target / _HEAD)
    if not isinstance(head, dict) or "format" not in head:
        raise InputError("is not that of an index; make the index again", path=target / _HEAD)
    if head["format"] != FORMAT:
        raise InputError(
            f"has the format {head['format']}, written by halation {head.get('halation', '(unknown)')}, and "
            f"this halation ({halation.__version__}) reads format {FORMAT}; make the index again",
            path=target,
        )
    missing = {"data", "files", "similarity", "backend", "dim", "next_key", "meta"} - head.keys()
    if missing or not str(head["data"]).startswith(DATA) or "/" in head["data"]:
        raise InputError(
            f"is incomplete ({', '.join(sorted(missing)) or 'data'}); make the index again", path=target / _HEAD
        )
    return head


def _assemble(head: dict[str, Any], data: Path, backend: Backend | None) -> Saved:
    similarity = from_description(head["similarity"])
    items, form = read_mapped(data / _ITEMS), read_mapped(data / _FORM)
    columns = read_mapped(data / _GAUSSIANS)
    keys = items.pop("keys")
    names = Names(items.pop("text"), items.pop("ends"))
    store = Store.over(Table.over(keys, columns | items), names, int(head["next_key"]))
    said = head["hubness"]
    hubness = None if said is None else Hubness(**said, bank=_stored(form, "bank"))
    queries = _stored(form, "queries") if "queries.mean" in form else None
    gallery = Gallery(similarity, store, backend or choose(head["backend"]), hubness, queries)
    gallery.form.floor = float(head["floor"])
    gallery.form.origin = np.array(form["origin"]) if "origin" in form else None
    if backend is None:
        gallery.backend.load(data / _BACKEND)
    return Saved(similarity, gallery, int(head["rerank"]), head["meta"])


def _stored(form: dict[str, Any], name: str) -> Gaussian:
    log_var = form.get(f"{name}.log_var")
    return Gaussian(np.array(form[f"{name}.mean"]), None if log_var is None else np.array(log_var))  # type: ignore[arg-type]
