"""`make_index` and `open_search`: from embeddings to an index's folder, and from there to answers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import halation
from halation._errors import InputError
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation.build import Trained, open_run
from halation.calibration import Trusts
from halation.index import Index
from halation.search._answers import Side
from halation.search._embeddings import Embedded, Embeddings
from halation.search._fingerprint import fingerprint, sha256_of
from halation.search._items import Items, Known, write_items
from halation.search._search import Search, warm
from halation.search._towers import SIMILARITIES, Towers

__all__ = ["make_index", "open_search"]

FORMAT, ABOUT, ITEMS, CALIBRATION = "halation search 1", "search.json", "items.sqlite", "calibration.json"


def make_index(
    embeddings: Embeddings | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    backend: str = "auto",
    progress: Progress = silent,
    **options: Any,
) -> Path:
    """Index embeddings into the folder `out`; what was there before stays in use until the new one is complete.

    backend, options   as `halation.index.Index` takes them: "auto", "exact", "faiss", "milvus" (uri=…)
    """
    found = embeddings if isinstance(embeddings, Embeddings) else Embeddings.open(embeddings)
    target = Path(out)
    with _replacing(target) as folder:
        items: list[tuple[Side, Iterator[Known]]] = []
        about = {key: found.about[key] for key in ("run", "fingerprint", "recipe", "similarity", "backbone", "source")}
        for number, (side, embedded) in enumerate(found.sides.items()):
            embedded.check()
            index = Index(embedded.ids, embedded.gaussians(), SIMILARITIES[found.similarity], backend, **options)
            index.meta.update(about, side=side)
            index.save(folder / side)
            items.append((side, _known(embedded)))
            progress("index", number + 1, len(found.sides))
        write_items(folder / ITEMS, items)
        said = {
            "format": FORMAT, **about, "embeddings": str(found.folder.resolve()), "roots": list(map(str, found.roots)),
            "sides": {side: len(one) for side, one in found.sides.items()}, "backend": backend,
            "items": sha256_of(folder / ITEMS), "versions": {"halation": halation.__version__},
        }  # fmt: skip
        write_text(folder / ABOUT, json.dumps(said, indent=2) + "\n")
    return target


def _known(embedded: Embedded) -> Iterator[Known]:
    for records, gaussians in embedded.blocks():
        sigma = [None] * len(records) if gaussians.is_point else gaussians.uncertainty().tolist()
        for record, one in zip(records, sigma, strict=True):
            yield Known(record.id, record.captions, record.place, one)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A new folder beside `target` that takes its place when the block ends well."""
    if target.exists() and not (target / ABOUT).is_file() and (target.is_file() or any(target.iterdir())):
        raise InputError(f"{target} is there and is no index of halation; name a new or empty folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    begun = f".{target.name}.making-"
    for left in target.parent.glob(f"{begun}*"):
        if not _lives(left.name.removeprefix(begun)):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
    folder = target.parent / f"{begun}{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
        if target.exists():
            old = folder.with_name(f"{folder.name}-old")
            target.rename(old)
            folder.rename(target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lives(process: str) -> bool:
    with suppress(ValueError, ProcessLookupError):
        os.kill(int(process.partition("-")[0]), 0)
        return True
    return False


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
    if not (root / ITEMS).is_file() or sha256_of(root / ITEMS) != said["items"]:
        raise InputError(f"{root / ITEMS} is missing or damaged (its sha256 differs); make it again: halation index")
    indexes: dict[Side, Index] = {side: Index.load(root / side) for side in said["sides"]}
    towers = Towers(trained, backbone or said["backbone"])
    warm(towers)
    trusts = _trusts(trained.folder, mark)
    keys = ("run", "fingerprint", "recipe", "similarity", "source", "backend")
    about = {key: said[key] for key in keys} | {"run": str(trained.folder), "calibrated": trusts is not None}
    about |= {side: len(indexes[side]) if side in indexes else 0 for side in ("images", "captions")}
    return Search(towers, indexes, Items(root / ITEMS), tuple(map(Path, said["roots"])), trusts, about)


def _about(root: Path) -> dict[str, Any]:
    if not root.is_dir():
        raise InputError(f"{root} does not exist; make it with halation index EMBEDDINGS -o {root}")
    if not (root / ABOUT).is_file():
        raise InputError(f"{root} holds no {ABOUT}; it is no folder that halation index made")
    said = read_json(root / ABOUT)
    version = said.get("format") if isinstance(said, dict) else None
    if version != FORMAT:
        raise InputError(f'{root / ABOUT} says "format": {version!r}, this halation reads {FORMAT!r}; index again')
    keys = {"run", "fingerprint", "recipe", "similarity", "backbone", "source", "roots", "sides", "backend", "items"}
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


def _trusts(run: Path, mark: str) -> Trusts | None:
    path = run / CALIBRATION
    return Trusts.load(path, mark) if path.is_file() else None
