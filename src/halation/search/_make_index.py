"""`make_index`: from embeddings to an index's folder.

The folder of an index holds search.json and the data folder it names: an index per side, and items.sqlite.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import halation
from halation import similarity
from halation._errors import HalationError, InputError
from halation._progress import Progress, silent
from halation._storage import DATA, current_version, replace_version, sha256_of
from halation.index import Backend, HubnessKind, Index, Milvus
from halation.search._answers import Side
from halation.search._embeddings import Embedded, Embeddings
from halation.search._entries import in_utf8
from halation.search._items import Known, write_items
from halation.similarity import Gaussian

__all__ = ["ABOUT", "FORMAT", "ITEMS", "make_index"]

FORMAT, ABOUT, ITEMS = "halation search 1", "search.json", "items.sqlite"
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
    _check_target(Path(out))
    with contextlib.ExitStack() as made, replace_version(out, ABOUT, retire=_drop_collections) as version:
        folder, said = version.folder, version.head
        said |= {"format": FORMAT, "versions": {"halation": halation.__version__}}
        said |= {key: found.about[key] for key in ("run", "fingerprint", "recipe", "similarity", "backbone", "source")}
        said |= {"embeddings": str(found.folder.resolve()), "roots": [str(root) for root in found.roots], "sides": {}}
        for done, (side, embedded) in enumerate(found.sides.items()):
            progress("indexing", done, len(found.sides))
            embedded.check()
            fresh = None if uri is None else made.enter_context(_new_milvus(uri, recall, Path(out), version.name))
            chosen: str | Backend = fresh or backend
            bank = None if (asking := banks[side]) is None else _some(asking)
            compare, gaussians = getattr(similarity, found.similarity), embedded.gaussians()
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
            if current_version(target, ABOUT) != data:
                backend.drop()
        backend.close()
        raise


def _check_ids(found: Embeddings) -> None:
    """An InputError where an image and a caption have one id: only one of them could be shown."""
    sides = [set(embedded.ids) for embedded in found.sides.values()]
    if len(sides) > 1 and (twice := sides[0] & sides[1]):
        raise InputError(
            f": {min(twice)!r} is an image and a caption; give each an id of its own and embed again", path=found.folder
        )


def _of_one_model(queries: Embeddings | str | os.PathLike[str], found: Embeddings) -> Embeddings:
    """The queries' embeddings; an InputError where another model made them."""
    others = queries if isinstance(queries, Embeddings) else Embeddings.open(queries)
    if others.fingerprint != found.fingerprint:
        raise InputError(
            f"was made by another model than {found.folder}; embed the queries with that", path=others.folder
        )
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
            f"holds {side} alone, and hubness is measured on {asks}",
            path=found.folder,
            remedy=f"embed {asks} like those that will ask, and give their folder",
            argument="queries",
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


def _check_target(target: Path) -> None:
    """An InputError where a folder holds something else than an index."""
    if target.is_file() or (target.is_dir() and not (target / ABOUT).is_file() and _strangers(target)):
        raise InputError("exists and is not an index of halation; name a new or empty folder", path=target)


def _strangers(folder: Path) -> bool:
    return any(not path.name.startswith((DATA, ".")) for path in folder.iterdir())


def _drop_collections(data: Path) -> None:
    with contextlib.suppress(HalationError, OSError, KeyError, TypeError):  # the new index is in use already
        Milvus.drop_saved(data)
