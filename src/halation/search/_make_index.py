"""`make_index`: from embeddings to an index's folder.

An index's folder holds search.json, written last, and the folder of data it speaks of. A new index is written beside
the old; when search.json speaks of the new one, the old is removed. Who has it open keeps it. The new one is on the
disk before search.json speaks of it, and one process at a time lets it speak.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import halation
from halation._errors import HalationError, InputError
from halation._files import atomic_path, read_json, sync
from halation._progress import Progress, silent
from halation.index import Backend, HubnessKind, Index, Milvus
from halation.index._milvus import drop_saved
from halation.search._alone import alone_in
from halation.search._answers import Side
from halation.search._embeddings import Embedded, Embeddings
from halation.search._entries import in_utf8
from halation.search._fingerprint import sha256_of
from halation.search._items import Known, write_items
from halation.search._towers import SIMILARITIES
from halation.similarity import Gaussian

__all__ = ["ABOUT", "FORMAT", "ITEMS", "make_index"]

FORMAT, ABOUT, ITEMS = "halation search 1", "search.json", "items.sqlite"
_DATA, _PARTIAL = "data-", ".partial-"
_QUERIES = 10_000  # of the other side, to tune recall and measure hubness on


def make_index(
    embeddings: Embeddings | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    backend: str = "auto",
    uri: str | None = None,
    recall: float = 0.99,
    hubness: HubnessKind | None = None,
    queries: Embeddings | str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> Path:
    """Index embeddings into the folder `out`; what was there before stays in use until the new one is complete.

    backend   "auto", "exact", "faiss" or "milvus", as `halation.index.Index` takes them
    uri       of a Milvus server, or a path that ends in .db
    recall    share of the ten best that an approximate backend must find
    hubness   "csls" or "dual_softmax": order hits by scores that lose what an item gains by being near to every query
    queries   embeddings by the same model of queries like those to come: captions ask for images, images for captions.
              Recall is tuned and hubness measured on them; None: on the collection's own other side, where it has one.
              To measure a search afterwards, give other queries than those it is measured by
    """
    if uri is not None and backend != "milvus":
        raise InputError(f"a uri is for the backend milvus, not for {backend}")
    in_utf8(Path(out))
    found = embeddings if isinstance(embeddings, Embeddings) else Embeddings.open(embeddings)
    _check_ids(found)
    others = None if queries is None else _of_one_model(queries, found)
    banks = {side: _bank(side, found, others, needed=hubness is not None) for side in found.sides}
    with contextlib.ExitStack() as made, _replacing(Path(out)) as (folder, said):
        said |= {key: found.about[key] for key in ("run", "fingerprint", "recipe", "similarity", "backbone", "source")}
        said |= {"embeddings": str(found.folder.resolve()), "roots": [str(root) for root in found.roots], "sides": {}}
        for done, (side, embedded) in enumerate(found.sides.items()):
            progress("indexing", done, len(found.sides))
            embedded.check()
            fresh = None if uri is None else made.enter_context(_new_milvus(uri, recall, folder.parent, said["data"]))
            chosen: str | Backend = fresh or backend
            bank = None if (asking := banks[side]) is None else _some(asking)
            compare, gaussians = SIMILARITIES[found.similarity], embedded.gaussians()
            index = Index(embedded.ids, gaussians, compare, chosen, hubness=hubness, queries=bank, recall=recall)
            index.meta |= {"side": side, "run": said["run"], "fingerprint": said["fingerprint"]}
            index.save(folder / side)
            said["sides"][side] = {"items": len(index), "backend": index.backend.name, **index.meta["tuning"]}
            said["sides"][side] |= {"hubness": hubness, "queries": 0 if bank is None else len(bank)}
            index.close()
        write_items(folder / ITEMS, [(side, _known(embedded)) for side, embedded in found.sides.items()])
        said["items"] = sha256_of(folder / ITEMS)
        progress("indexing", len(found.sides), len(found.sides))
    return Path(out)


@contextmanager
def _new_milvus(uri: str, recall: float, target: Path, data: str) -> Iterator[Milvus]:
    """A new collection, dropped if what follows fails; not if it is in use by then, and only tidying up failed."""
    backend = Milvus(uri, recall=recall)
    try:
        yield backend
    except BaseException:
        with contextlib.suppress(HalationError):
            if _data_of(target) != data:
                backend.drop()
        backend.close()
        raise


def _check_ids(found: Embeddings) -> None:
    """An InputError where an image and a caption have one id: only one of them could be shown."""
    sides = [set(embedded.ids) for embedded in found.sides.values()]
    if len(sides) > 1 and (twice := sides[0] & sides[1]):
        raise InputError(
            f"{found.folder}: {min(twice)!r} is an image and a caption; give each an id of its own and embed again"
        )


def _of_one_model(queries: Embeddings | str | os.PathLike[str], found: Embeddings) -> Embeddings:
    """The queries' embeddings; an InputError where another model made them."""
    others = queries if isinstance(queries, Embeddings) else Embeddings.open(queries)
    if others.fingerprint != found.fingerprint:
        raise InputError(f"{others.folder} was made by another model than {found.folder}; embed the queries with that")
    return others


def _bank(side: Side, found: Embeddings, others: Embeddings | None, *, needed: bool) -> Embedded | None:
    """What asks for this side: of the queries given, else of the collection itself."""
    asks: Side = "captions" if side == "images" else "images"
    for source in (others, found):
        if source is not None and asks in source.sides:
            source.sides[asks].check()
            return source.sides[asks]
    if needed:
        raise InputError(
            f"hubness is measured on {asks}, and {found.folder} holds {side} alone; embed {asks} like those that will "
            "ask (halation embed RUN CAPTIONS -o QUERIES) and give them with --queries"
        )
    return None


def _some(embedded: Embedded) -> Gaussian:
    """Some of a side, spread over it."""
    step = max(1, len(embedded) // _QUERIES)
    return Gaussian.cat([gaussians[::step] for _, gaussians in embedded.blocks()])


def _known(embedded: Embedded) -> Iterator[Known]:
    for records, gaussians in embedded.blocks():
        sigma = [None] * len(records) if gaussians.is_point else gaussians.uncertainty().tolist()
        for record, one in zip(records, sigma, strict=True):
            yield Known(record.id, record.captions, record.place, one)


@contextmanager
def _replacing(target: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A new folder and what search.json will say of it; both count when the block ends well."""
    if target.exists() and not (target / ABOUT).is_file() and (target.is_file() or _strangers(target)):
        raise InputError(f"{target} is there and is no index of halation; name a new or empty folder")
    fresh = not target.exists()
    target.mkdir(parents=True, exist_ok=True)
    partial = target / f"{_PARTIAL}{os.getpid()}-{uuid.uuid4().hex[:8]}"
    data = target / f"{_DATA}{partial.name[-8:]}"
    said = {"format": FORMAT, "data": data.name, "versions": {"halation": halation.__version__}}
    try:
        partial.mkdir()
        yield partial, said
        _sync_below(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        if fresh:
            with contextlib.suppress(OSError):
                target.rmdir()  # unless another process has put an index there meanwhile
        raise
    with alone_in(target) as alone:
        before = _data_of(target)
        _publish(partial, data, said)
        for path in target.iterdir():
            old = path.name == before or (alone and path.name.startswith(_DATA) and path.name != data.name)
            if old:
                with contextlib.suppress(HalationError, OSError, KeyError, TypeError):  # the new one is in use already
                    drop_saved(path)
            if old or (path.name.startswith(_PARTIAL) and not _alive(path.name.split("-")[1])):
                shutil.rmtree(path, ignore_errors=True)


def _publish(partial: Path, data: Path, said: dict[str, Any]) -> None:
    """Let search.json speak of the new data, all of which is on the disk by then."""
    target = data.parent
    try:
        partial.rename(data)
        sync(target)
        with atomic_path(target / ABOUT) as temporary:
            temporary.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
            sync(temporary)
        sync(target)
    except BaseException:
        if _data_of(target) != data.name:
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(data, ignore_errors=True)
        raise


def _sync_below(folder: Path) -> None:
    """Have a folder and all that is in it on the disk: what takes the place of an index must survive a power cut."""
    for here, _, files in os.walk(folder):
        for path in (*(Path(here, name) for name in files), Path(here)):
            sync(path)


def _data_of(root: Path) -> str | None:
    """The folder of data that search.json names; None where there is none."""
    try:
        return str(read_json(root / ABOUT)["data"])
    except (InputError, OSError, KeyError, TypeError):
        return None


def _strangers(folder: Path) -> bool:
    return any(not path.name.startswith((_DATA, _PARTIAL)) for path in folder.iterdir())


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True  # somebody else's
    except (OSError, ValueError):
        return False
    return True
