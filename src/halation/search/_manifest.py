"""The manifest of an embeddings folder: written when work begins, completed when every item has its row."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import halation
from halation._errors import InputError
from halation._files import write_text
from halation._storage import exclusive, publish_file, sha256_of, sweep
from halation.encoders import Model
from halation.search._embeddings import FORMAT, MANIFEST, Embeddings, read_manifest, read_parts
from halation.search._source import Source, SourceItem, check_utf8, one_line

__all__ = ["begin_folder", "complete_folder"]


def begin_folder(folder: Path, source: Source, model: Model) -> dict[str, Any]:
    """Make the folder, or resume the one in which the same work was begun. Returns its manifest."""
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "run": str(model.folder.resolve()),
        "fingerprint": model.fingerprint,
        "recipe": model.config.name,
        "similarity": model.indexed_similarity.name,
        "backbone": model.images.backbone,
        "source": str(Path(source.name).resolve()),
        "split": source.split,
        "roots": [str(root) for root in source.roots] if "images" in source.sides else [],
        "versions": {"halation": halation.__version__, "torch": torch.__version__},
        "sides": {},
    }
    if (folder / MANIFEST).is_file():
        return _resumed(folder, read_manifest(folder), manifest)
    if folder.is_file():
        raise InputError("is a file", path=folder, remedy="name a new or empty folder")
    check_utf8(folder)
    folder.mkdir(parents=True, exist_ok=True)
    others = [path.name for path in folder.iterdir() if path.name not in ("images", "captions") and path.name[0] != "."]
    if others:
        raise InputError(f"holds other files ({others[0]})", path=folder, remedy="name a new or empty folder")
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return manifest


def _resumed(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The manifest to go on with; an InputError if the folder was begun with another model or collection."""

    def refuse(problem: str) -> InputError:
        return InputError(problem, path=folder, remedy="name another folder, or delete this one")

    if before.get("fingerprint") != now["fingerprint"]:
        raise refuse(
            f"holds embeddings by another model ({before.get('run')}, as it was then); {now['run']} has other weights"
        )
    moved = not Path(str(before.get("source"))).exists()  # then ids and stamps tell which items are the same
    if before.get("source") != now["source"] and not moved:
        raise refuse(f"holds embeddings of {before.get('source')}, not {now['source']}")
    if before.get("backbone") != now["backbone"]:
        raise refuse(f"holds embeddings with the backbone {before.get('backbone')}, not {now['backbone']}")
    if before.get("split", now["split"]) != now["split"]:
        old, new = (f"the split {split}" if split else "all splits" for split in (before["split"], now["split"]))
        raise refuse(f"holds embeddings of {old} of {now['source']}, not of {new}")
    if before.get("roots") and now["roots"] and before["roots"][0] != now["roots"][0] and not moved:
        raise refuse(f"holds embeddings of pictures below {before['roots'][0]}, not {now['roots'][0]}")
    roots = now["roots"] or before.get("roots", [])  # captions have no locations: the pictures' roots stay as they are
    return {**now, "roots": roots, "sides": before.get("sides", {})}


def complete_folder(folder: Path, source: Source, manifest: dict[str, Any]) -> Embeddings:
    """Write the listings and the manifest, unless other shards are still at work.

    One process at a time: shards that end together could see different rows, and each would remove the other's listing.
    """
    with exclusive(folder):
        return _complete(folder, source, manifest)


def _complete(folder: Path, source: Source, manifest: dict[str, Any]) -> Embeddings:
    sides = {side: _write_listing(folder / side, items) for side, items in source.sides.items()}
    if any(facts is None for facts in sides.values()):
        roots = tuple(map(Path, manifest["roots"]))
        return Embeddings(
            folder, Path(manifest["run"]), manifest["fingerprint"], manifest["similarity"], roots, {}, False
        )
    for facts in sides.values():
        assert facts is not None
        if not facts["items"]:
            why = facts["corrupt"][0][1] if facts["corrupt"] else "none is left"
            raise InputError(f": no item could be read ({why})", path=source.name)
        facts["corrupt"] = [*facts["corrupt"], *(source.problems if facts is next(iter(sides.values())) else ())]
    manifest = {**manifest, "sides": {**manifest["sides"], **sides}}
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")  # ASCII: names of folders need not be UTF-8
    failures = [(name, why) for facts in manifest["sides"].values() for name, why in facts["corrupt"]]
    write_text(folder / "corrupt.tsv", "".join(f"{one_line(name)}\t{one_line(why)}\n" for name, why in failures))
    sweep(folder)
    for side, facts in manifest["sides"].items():
        sweep(folder / side)
        for old in (folder / side).glob("items-*.jsonl"):
            if old.name != facts["listing"]:
                with contextlib.suppress(OSError):  # where there is no lock, another shard was faster
                    old.unlink()
    return Embeddings.open(folder)


def _write_listing(folder: Path, items: Sequence[SourceItem]) -> dict[str, Any] | None:
    """Write the part and row of each item, in the order of the source. Returns None if some have no row yet."""
    journals = read_parts(folder)
    filled = [journal for journal in journals if journal.rows]  # a shard with nothing left to do has no vectors
    row_of = {key: (part, row) for part, journal in enumerate(filled) for row, key in enumerate(journal.rows)}
    failures: dict[tuple[str, str], str] = {}
    for failed in [*(journal.missed for journal in journals), *(journal.corrupt for journal in journals)]:
        failures.update({(name, stamp): why for name, (stamp, why) in failed.items()})
    lines, corrupt = [], []
    for item in items:
        row = row_of.get((item.id, item.stamp))
        if row is not None:
            line = {"id": item.id, "captions": item.captions, "place": item.location, "at": row}
            lines.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        elif (why := failures.get((item.id, item.stamp))) is not None:
            corrupt.append([item.id, why])
        else:
            return None
    sha256 = hashlib.sha256(b"".join(lines)).hexdigest()
    listing = f"items-{sha256[:12]}.jsonl"
    if not (folder / listing).is_file() or sha256_of(folder / listing) != sha256:
        with publish_file(folder / listing) as temporary, temporary.open("wb") as file:
            file.writelines(lines)
    parts = [journal.folder.name for journal in filled]
    return {"items": len(lines), "listing": listing, "sha256": sha256, "parts": parts, "corrupt": corrupt}
