"""`make_index`: from embeddings to the folder of an index.

The folder holds search.json and the data folder it names: items.sqlite, and an index per side whose ids are the rows
of items.sqlite.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import halation
from halation import similarity
from halation._errors import HalationError, InputError
from halation._progress import Progress, silent
from halation._storage import DATA, current_version, replace_version, sha256_of
from halation.index import Backend, HubnessKind, Index, Milvus
from halation.search._answers import Side
from halation.search._embeddings import EmbeddedSide, Embeddings
from halation.search._items import ItemRecord, write_items
from halation.search._source import check_utf8
from halation.similarity import Gaussian

__all__ = ["FORMAT", "HEAD", "ITEMS", "make_index"]

FORMAT, HEAD, ITEMS = "halation search 2", "search.json", "items.sqlite"
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
    """Index embeddings into the folder `out`, which is returned.

    An index that is there already stays in use until the new one is complete.

    backend   "auto", "exact", "faiss" or "milvus", as for `halation.index.Index`
    uri       of a Milvus server, or a path that ends in .db
    recall    share of the ten best that an approximate backend must find
    hubness   "csls" or "dual_softmax": rank items lower that are near to every query (see `halation.index.Hubness`)
    queries   embeddings, by the same model, of queries such as people will ask: captions for images, images for
              captions. Recall is tuned and hubness measured on them. None: the other side of the collection, if it has
              one. To evaluate a search afterwards, use other queries
    """
    if uri is not None and backend != "milvus":
        raise InputError(f"a uri is for the backend milvus, not for {backend}", argument="backend", value="milvus")
    target = _checked_target(Path(out))
    source = embeddings if isinstance(embeddings, Embeddings) else Embeddings.open(embeddings)
    _check_ids(source)
    others = None if queries is None else _same_model(queries, source)
    banks = {side: _query_bank(side, source, others, needed=hubness is not None) for side in source.sides}
    with contextlib.ExitStack() as new_collections, replace_version(target, HEAD, retire=_drop_collections) as version:
        version.head |= _head(source)
        for done, (side, embedded) in enumerate(source.sides.items()):
            progress("indexing", done, len(source.sides))
            chosen: str | Backend = backend
            if uri is not None:
                chosen = new_collections.enter_context(_new_milvus(uri, recall, target, version.name))
            version.head["sides"][side] = _index_side(
                embedded,
                version.folder / side,
                similarity=getattr(similarity, source.similarity),
                backend=chosen,
                hubness=hubness,
                queries=banks[side],
                recall=recall,
                meta={"side": side, "run": version.head["run"], "fingerprint": version.head["fingerprint"]},
            )
        write_items(version.folder / ITEMS, [(side, _records(embedded)) for side, embedded in source.sides.items()])
        version.head["items"] = sha256_of(version.folder / ITEMS)
        progress("indexing", len(source.sides), len(source.sides))
    return target


def _head(source: Embeddings) -> dict[str, Any]:
    """The head file's content, before its sides and items are known."""
    head = {"format": FORMAT, "versions": {"halation": halation.__version__}}
    head |= {key: source.about[key] for key in ("run", "fingerprint", "recipe", "similarity", "backbone", "source")}
    return head | {
        "embeddings": str(source.folder.resolve()),
        "roots": [str(root) for root in source.roots],
        "sides": {},
    }


def _index_side(embedded: EmbeddedSide, folder: Path, **options: Any) -> dict[str, Any]:
    """Index one side into a folder, its rows as ids, with these options of `Index`. Returns the backend chosen."""
    embedded.check()
    index = Index(range(len(embedded)), embedded.gaussians(), **options)
    index.save(folder)
    n_queries = 0 if options["queries"] is None else len(options["queries"])
    chosen = {"items": len(index), "backend": index.backend.name, **index.meta["tuning"]}
    index.close()
    return chosen | {"hubness": options["hubness"], "queries": n_queries}


@contextmanager
def _new_milvus(uri: str, recall: float, target: Path, data: str) -> Iterator[Milvus]:
    """A new Milvus collection; dropped if the block fails before its index is published."""
    backend = Milvus(uri, recall=recall)
    try:
        yield backend
    except BaseException:
        with contextlib.suppress(HalationError):
            if current_version(target, HEAD) != data:
                backend.drop()
        backend.close()
        raise


def _check_ids(embeddings: Embeddings) -> None:
    """An InputError if an image and a caption share an id."""
    sides = [set(embedded.ids) for embedded in embeddings.sides.values()]
    if len(sides) > 1 and (twice := sides[0] & sides[1]):
        raise InputError(
            f": {min(twice)!r} is the id of an image and of a caption",
            path=embeddings.folder,
            remedy="give each an id of its own and embed again",
        )


def _same_model(queries: Embeddings | str | os.PathLike[str], embeddings: Embeddings) -> Embeddings:
    """The queries' embeddings; an InputError where another model made them."""
    others = queries if isinstance(queries, Embeddings) else Embeddings.open(queries)
    if others.fingerprint != embeddings.fingerprint:
        raise InputError(
            f"was made by another model than {embeddings.folder}",
            path=others.folder,
            remedy="embed the queries with the model of the items",
        )
    return others


def _query_bank(side: Side, embeddings: Embeddings, others: Embeddings | None, *, needed: bool) -> Gaussian | None:
    """The queries to measure this side on: those given, or the other side of the collection; None: there are none."""
    other: Side = "captions" if side == "images" else "images"
    for source in (others, embeddings):
        if source is not None and other in source.sides:
            source.sides[other].check()
            return _sampled(source.sides[other])
    if needed:
        raise InputError(
            f"holds only {side}, and hubness is measured on {other}",
            path=embeddings.folder,
            remedy=f"embed {other} such as people will search with, and name their folder",
            argument="queries",
        )
    return None


def _sampled(embedded: EmbeddedSide) -> Gaussian:
    """The Gaussians of some items, spread over a side."""
    step = max(1, len(embedded) // _QUERIES)
    return Gaussian.cat([gaussians[::step] for _, gaussians in embedded.blocks()])


def _records(embedded: EmbeddedSide) -> Iterator[ItemRecord]:
    for items, gaussians in embedded.blocks():
        sigma = [None] * len(items) if gaussians.is_point else gaussians.uncertainty().tolist()
        for item, uncertainty in zip(items, sigma, strict=True):
            yield ItemRecord(item.id, item.captions, item.location, uncertainty)


def _checked_target(target: Path) -> Path:
    """The folder itself; an InputError if it holds anything but an index, or has a name that is not UTF-8."""
    check_utf8(target)
    if target.is_file() or (target.is_dir() and not (target / HEAD).is_file() and _holds_other_files(target)):
        raise InputError("exists and is not an index of halation", path=target, remedy="name a new or empty folder")
    return target


def _holds_other_files(folder: Path) -> bool:
    return any(not path.name.startswith((DATA, ".")) for path in folder.iterdir())


def _drop_collections(data: Path) -> None:
    with contextlib.suppress(HalationError, OSError, KeyError, TypeError):  # the new index is in use already
        Milvus.drop_saved(data)
