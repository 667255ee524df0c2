"""`open_search`: from an index's folder to answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from halation._errors import InputError
from halation._files import read_json
from halation._storage import sha256_of
from halation.encoders import Model, load
from halation.index import Index
from halation.search._answers import Side
from halation.search._calibrators import read_calibrators
from halation.search._items import Items
from halation.search._make_index import ABOUT, FORMAT, ITEMS
from halation.search._search import Search

__all__ = ["open_search"]


def open_search(
    folder: str | os.PathLike[str],
    run: str | os.PathLike[str] | Model | None = None,
    *,
    backbone: str | None = None,
) -> Search:
    """An index, ready for questions. `run` where the run's folder is no longer where it was when the index was made."""
    root = Path(folder)
    said = _about(root)
    model = _model(root, said, run, backbone).without_gist()  # a gist orders what does not match
    mark = model.fingerprint
    if mark != said["fingerprint"]:
        raise InputError(
            f"was made by another model than the run {model.folder.name} is now (was it trained further?); their "
            "numbers cannot be compared",
            path=root,
            remedy="embed and index again with this run, or name the run the index was made by",
            argument="run",
        )
    _ = model.indexed_similarity  # an InputError where this model cannot be searched
    model.encode_texts("a photograph")  # the first query should not wait for what loads on first use
    calibrators, notes = read_calibrators(model.folder, mark)
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
    about |= {"run": str(model.folder), "calibrated": calibrators is not None, "data": said["data"]}
    about["notes"] = notes
    about |= {side: len(indexes[side]) if side in indexes else 0 for side in ("images", "captions")}
    return Search(model, indexes, items, tuple(map(Path, said["roots"])), calibrators, about)


def _loaded(data: Path, said: dict[str, Any]) -> tuple[dict[Side, Index], Items]:
    if not (data / ITEMS).is_file() or sha256_of(data / ITEMS) != said["items"]:
        raise InputError("is missing or damaged (its sha256 differs); make it again: halation index", path=data / ITEMS)
    return {side: Index.load(data / side) for side in said["sides"]}, Items(data / ITEMS)


def _about(root: Path) -> dict[str, Any]:
    if not root.is_dir():
        raise InputError("does not exist", path=root, remedy="make it with `halation index`")
    if not (root / ABOUT).is_file():
        raise InputError(f"holds no {ABOUT}; it is no folder that halation index made", path=root)
    said = read_json(root / ABOUT)
    version = said.get("format") if isinstance(said, dict) else None
    if version != FORMAT:
        raise InputError(f'says "format": {version!r}, this halation reads {FORMAT!r}; index again', path=root / ABOUT)
    keys = {"run", "fingerprint", "recipe", "similarity", "backbone", "source", "roots", "sides", "data", "items"}
    if missing := keys - said.keys():
        raise InputError(f"is damaged (no {', '.join(sorted(missing))}); index again", path=root / ABOUT)
    return dict(said)


def _model(root: Path, said: dict[str, Any], run: str | os.PathLike[str] | Model | None, backbone: str | None) -> Model:
    if isinstance(run, Model):
        return run
    folder = Path(run or said["run"])
    if not folder.is_dir() and run is None:
        raise InputError(
            f"is not there; the index {root.name} was made by this run",
            path=folder,
            remedy="say where it is now",
            argument="run",
        )
    return load(folder, backbone=backbone or said["backbone"])
