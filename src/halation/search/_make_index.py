"""`make_index` and `open_search`: from embeddings to an index's folder, and from there to answers.

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
from halation.build import Trained, open_run
from halation.gaussian import Gaussian
from halation.index import Backend, Index, Milvus
from halation.index._milvus import drop_saved
from halation.search._answers import Side
from halation.search._embeddings import Embedded, Embeddings
from halation.search._entries import in_utf8
from halation.search._fingerprint import fingerprint, sha256_of
from halation.search._items import Items, Known, write_items
from halation.search._search import Search
from halation.search._towers import SIMILARITIES, Towers
from halation.search._trusts import read_trusts

try:
    import fcntl
except ImportError:  # not on this system: two writers are then the user's own affair
    fcntl = None  # type: ignore[assignment]

__all__ = ["make_index", "open_search"]

FORMAT, ABOUT, ITEMS = "halation search 1", "search.json", "items.sqlite"
_DATA, _PARTIAL = "data-", ".partial-"
_QUERIES = 10_000  # of the other side, to tune recall on


def make_index(
    embeddings: Embeddings | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    backend: str = "auto",
    uri: str | None = None,
    recall: float = 0.99,
    progress: Progress = silent,
) -> Path:
    """Index embeddings into the folder `out`; what was there before stays in use until the new one is complete.

    backend   "auto", "exact", "faiss" or "milvus", as `halation.index.Index` takes them
    uri       of a Milvus server, or a path that ends in .db
    recall    share of the ten best that an approximate backend must find, tuned on the other side where there is one:
              captions ask for images, images for captions
    """
    if uri is not None and backend != "milvus":
        raise InputError(f"a uri is for the backend milvus, not for {backend}")
    in_utf8(Path(out))
    found = embeddings if isinstance(embeddings, Embeddings) else Embeddings.open(embeddings)
    _check_ids(found)
    with contextlib.ExitStack() as made, _replacing(Path(out)) as (folder, said):
        said |= {key: found.about[key] for key in ("run", "fingerprint", "recipe", "similarity", "backbone", "source")}
        said |= {"embeddings": str(found.folder.resolve()), "roots": [str(root) for root in found.roots], "sides": {}}
        for done, (side, embedded) in enumerate(found.sides.items()):
            progress("indexing", done, len(found.sides))
            embedded.check()
            chosen: str | Backend = backend if uri is None else made.enter_context(_kept_if_well(uri, recall))
            asking = [other for name, other in found.sides.items() if name != side]
            queries = _some(asking[0]) if asking else None
            compare, gaussians = SIMILARITIES[found.similarity], embedded.gaussians()
            index = Index(embedded.ids, gaussians, compare, chosen, queries=queries, recall=recall)
            index.meta |= {"side": side, "run": said["run"], "fingerprint": said["fingerprint"]}
            index.save(folder / side)
            said["sides"][side] = {"items": len(index), "backend": index.backend.name, **index.meta["tuning"]}
            index.close()
        write_items(folder / ITEMS, [(side, _known(embedded)) for side, embedded in found.sides.items()])
        said["items"] = sha256_of(folder / ITEMS)
        progress("indexing", len(found.sides), len(found.sides))
    return Path(out)


@contextmanager
def _kept_if_well(uri: str, recall: float) -> Iterator[Milvus]:
    """A new collection, dropped if what follows fails."""
    backend = Milvus(uri, recall=recall)
    try:
        yield backend
    except BaseException:
        with contextlib.suppress(HalationError):
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
    with _alone(target) as alone:
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


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """One process at a time replaces what a folder holds; False where the system has no such lock."""
    handle, locked = None, False
    if fcntl is not None:
        handle = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some file systems of networks
            fcntl.flock(handle, fcntl.LOCK_EX)
            locked = True
    try:
        yield locked
    finally:
        if handle is not None:
            os.close(handle)  # and with it the lock


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


def open_search(
    folder: str | os.PathLike[str],
    run: str | os.PathLike[str] | Trained | None = None,
    *,
    backbone: str | None = None,
) -> Search:
    """An index, ready for questions. `run` where the run's folder is no longer where it was when the index was made."""
    root = Path(folder)
    said = _about(root)
    trained = _run(root, said, run)
    mark = fingerprint(trained.folder)
    if mark != said["fingerprint"]:
        raise InputError(
            f"{root} was made by another model than {trained.folder} is now (was it trained further?); their numbers "
            "cannot be compared: embed and index again with this run, or name the run it was made by with --run"
        )
    towers = Towers(trained, backbone or said["backbone"])
    towers.captions(["a photograph"])  # the first query should not wait for what loads on first use
    trusts, notes = read_trusts(trained.folder, mark)
    while True:
        try:
            indexes, items = _loaded(root / said["data"], said)
        except (InputError, OSError):
            if (now := _about(root))["data"] == said["data"] or now["fingerprint"] != mark:
                raise
            said = now  # another process has put a new one here meanwhile
        else:
            break
    about = {key: said[key] for key in ("fingerprint", "recipe", "similarity", "source", "sides")}
    about |= {"run": str(trained.folder), "calibrated": trusts is not None, "data": said["data"]}
    about["notes"] = notes
    about |= {side: len(indexes[side]) if side in indexes else 0 for side in ("images", "captions")}
    return Search(towers, indexes, items, tuple(map(Path, said["roots"])), trusts, about)


def _loaded(data: Path, said: dict[str, Any]) -> tuple[dict[Side, Index], Items]:
    if not (data / ITEMS).is_file() or sha256_of(data / ITEMS) != said["items"]:
        raise InputError(f"{data / ITEMS} is missing or damaged (its sha256 differs); make it again: halation index")
    return {side: Index.load(data / side) for side in said["sides"]}, Items(data / ITEMS)


def _about(root: Path) -> dict[str, Any]:
    if not root.is_dir():
        raise InputError(f"{root} does not exist; make it with halation index EMBEDDINGS -o {root}")
    if not (root / ABOUT).is_file():
        raise InputError(f"{root} holds no {ABOUT}; it is no folder that halation index made")
    said = read_json(root / ABOUT)
    version = said.get("format") if isinstance(said, dict) else None
    if version != FORMAT:
        raise InputError(f'{root / ABOUT} says "format": {version!r}, this halation reads {FORMAT!r}; index again')
    keys = {"run", "fingerprint", "recipe", "similarity", "backbone", "source", "roots", "sides", "data", "items"}
    if missing := keys - said.keys():
        raise InputError(f"{root / ABOUT} is damaged (no {', '.join(sorted(missing))}); index again")
    return dict(said)


def _run(root: Path, said: dict[str, Any], run: str | os.PathLike[str] | Trained | None) -> Trained:
    if isinstance(run, Trained):
        return run
    folder = Path(run or said["run"])
    if not folder.is_dir() and run is None:
        raise InputError(f"{root} was made by the run {folder}, which is not there; say where it is with --run")
    return open_run(folder)
