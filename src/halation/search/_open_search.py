"""`open_search`: a `Search` from the folder that `make_index` wrote."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from halation._errors import InputError
from halation._files import read_json
from halation._storage import read_version, sha256_of
from halation.encoders import Model, load
from halation.index import Index
from halation.search._answers import Side
from halation.search._items import ItemTable
from halation.search._make_index import FORMAT, HEAD, ITEMS
from halation.search._search import Search
from halation.search._verdict import read_calibrators

__all__ = ["open_search"]


def open_search(
    folder: str | os.PathLike[str],
    run: str | os.PathLike[str] | Model | None = None,
    *,
    backbone: str | None = None,
) -> Search:
    """Open the index in a folder, to search it.

    run        the run's folder, if it was moved since the index was made; or its loaded `Model`
    backbone   the network that computed the features, for a run trained on features that does not name it
    """
    root = Path(folder)
    model = _model(root, _read_head(root), run, backbone)
    head, indexes, items = read_version(lambda: _read_head(root), lambda head: _load(root, head, model))
    model.encode_texts("a photograph")  # the first query should not wait for what loads on first use
    calibrators, notes = read_calibrators(model.folder, model.fingerprint)
    about = {key: head[key] for key in ("fingerprint", "recipe", "similarity", "source", "sides", "data")}
    about |= {"run": str(model.folder), "calibrated": calibrators is not None, "notes": notes}
    about["judge"] = None if calibrators is None else calibrators.judge
    about |= {side: len(indexes[side]) if side in indexes else 0 for side in ("images", "captions")}
    return Search(model, indexes, items, tuple(map(Path, head["roots"])), calibrators, about)


def _load(root: Path, head: dict[str, Any], model: Model) -> tuple[dict[str, Any], dict[Side, Index], ItemTable]:
    """The head, and the indexes and items that it names; an InputError where another model made them."""
    if model.fingerprint != head["fingerprint"]:
        raise InputError(
            f"was made by another model than the run {model.folder.name} is now (was it trained further?); their "
            "numbers cannot be compared",
            path=root,
            remedy="embed and index again with this run, or name the run the index was made by",
            argument="run",
        )
    data = root / head["data"]
    if not (data / ITEMS).is_file() or sha256_of(data / ITEMS) != head["items"]:
        raise InputError(
            "is missing or damaged (its sha256 differs)",
            path=data / ITEMS,
            remedy="make it again with `halation index`",
        )
    return head, {side: Index.load(data / side) for side in head["sides"]}, ItemTable(data / ITEMS)


def _read_head(root: Path) -> dict[str, Any]:
    if not root.is_dir():
        raise InputError("does not exist", path=root, remedy="make it with `halation index`")
    if not (root / HEAD).is_file():
        raise InputError(f"holds no {HEAD}: it is not a folder that `halation index` made", path=root)
    head = read_json(root / HEAD)
    version = head.get("format") if isinstance(head, dict) else None
    if version != FORMAT:
        raise InputError(
            f'says "format": {version!r}, this halation reads {FORMAT!r}',
            path=root / HEAD,
            remedy="index the embeddings again: halation index EMBEDDINGS -o INDEX",
        )
    keys = {"run", "fingerprint", "recipe", "similarity", "backbone", "source", "roots", "sides", "data", "items"}
    if missing := keys - head.keys():
        raise InputError(f"is damaged (it lacks {', '.join(sorted(missing))})", path=root / HEAD, remedy="index again")
    return dict(head)


def _model(root: Path, head: dict[str, Any], run: str | os.PathLike[str] | Model | None, backbone: str | None) -> Model:
    if isinstance(run, Model):
        return run
    folder = Path(run or head["run"])
    if not folder.is_dir() and run is None:
        raise InputError(
            f"is not there; the index {root.name} was made by this run",
            path=folder,
            remedy="say where it is now",
            argument="run",
        )
    return load(folder, backbone=backbone or head["backbone"])
