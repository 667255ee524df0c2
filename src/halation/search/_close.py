"""The first and the last step of embedding: a folder that says what it is of, and the list that makes it complete."""

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
from halation._storage import exclusive, publish_file, sha256_of
from halation.encoders import Model
from halation.search._embeddings import FORMAT, MANIFEST, Embeddings, parts_of, read_manifest
from halation.search._entries import Entry, Source, in_utf8, one_line

__all__ = ["begin", "close"]


def begin(folder: Path, source: Source, model: Model) -> dict[str, Any]:
    """Make the folder, or take up the one in which the same was begun; its manifest."""
    run = model.folder
    said: dict[str, Any] = {
        "format": FORMAT,
        "run": str(run.resolve()),
        "fingerprint": model.fingerprint,
        "recipe": model.config.name,
        "similarity": model.indexed_similarity.name,
        "backbone": model.images.backbone,
        "source": str(Path(source.name).resolve()),
        "split": source.split,
        "roots": [str(root) for root in source.roots] if "images" in source.entries else [],
        "versions": {"halation": halation.__version__, "torch": torch.__version__},
        "sides": {},
    }
    if (folder / MANIFEST).is_file():
        return _same(folder, read_manifest(folder), said)
    if folder.is_file():
        raise InputError("is a file; name a new or empty folder", path=folder)
    in_utf8(folder)
    folder.mkdir(parents=True, exist_ok=True)
    strange = [
        path.name for path in folder.iterdir() if path.name not in ("images", "captions") and path.name[0] != "."
    ]
    if strange:
        raise InputError(f"holds other files ({strange[0]}); name a new or empty folder", path=folder)
    write_text(folder / MANIFEST, json.dumps(said, indent=2) + "\n")
    return said


def _same(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    if before.get("fingerprint") != now["fingerprint"]:
        raise InputError(
            f"holds embeddings by another model ({before.get('run')}, as it was then); "
            f"{now['run']} has other weights: name another folder, or delete this one",
            path=folder,
        )
    moved = not Path(str(before.get("source"))).exists()  # then ids and stamps say what is the same
    for key, what in (("source", "of"), ("backbone", "with the backbone")):
        if before.get(key) != now[key] and not (key == "source" and moved):
            raise InputError(
                f"holds embeddings {what} {before.get(key)}, not {now[key]}; name another folder", path=folder
            )
    if before.get("split", now["split"]) != now["split"]:
        had, wanted = (f"the split {one}" if one else "all splits" for one in (before["split"], now["split"]))
        raise InputError(
            f"holds embeddings of {had} of {now['source']}, not of {wanted}; name another folder", path=folder
        )
    if before.get("roots") and now["roots"] and before["roots"][0] != now["roots"][0] and not moved:
        raise InputError(
            f"is of pictures below {before['roots'][0]}, not {now['roots'][0]}; name another folder", path=folder
        )
    roots = now["roots"] or before.get("roots", [])  # captions have no places: they leave the pictures' as they are
    return {**now, "roots": roots, "sides": before.get("sides", {})}


def close(folder: Path, source: Source, said: dict[str, Any]) -> Embeddings:
    """Write the lists and the manifest, if all that the source has is there; otherwise other shards are at work.

    One process at a time: shards that end together could see different rows, and each would remove the other's list.
    """
    with exclusive(folder):
        return _close(folder, source, said)


def _close(folder: Path, source: Source, said: dict[str, Any]) -> Embeddings:
    sides = {side: _listed(folder / side, entries) for side, entries in source.entries.items()}
    if any(facts is None for facts in sides.values()):
        roots = tuple(map(Path, said["roots"]))
        return Embeddings(folder, Path(said["run"]), said["fingerprint"], said["similarity"], roots, {}, False)
    for facts in sides.values():
        assert facts is not None
        if not facts["items"]:
            why = facts["corrupt"][0][1] if facts["corrupt"] else "none is left"
            raise InputError(f"{source.name}: not one item could be read ({why})")
        facts["corrupt"] = [*facts["corrupt"], *(source.problems if facts is next(iter(sides.values())) else ())]
    said = {**said, "sides": {**said["sides"], **sides}}
    write_text(folder / MANIFEST, json.dumps(said, indent=2) + "\n")  # ASCII: names of folders need not be UTF-8
    lost = [(name, why) for facts in said["sides"].values() for name, why in facts["corrupt"]]
    write_text(folder / "corrupt.tsv", "".join(f"{one_line(name)}\t{one_line(why)}\n" for name, why in lost))
    for side, facts in said["sides"].items():
        for old in (folder / side).glob("items-*.jsonl"):
            if old.name != facts["listing"]:
                with contextlib.suppress(OSError):  # where there is no lock, another shard was faster
                    old.unlink()
    return Embeddings.open(folder)


def _listed(folder: Path, entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Write where each entry's row lies, in the order of the source; None where some have none yet."""
    journals = parts_of(folder)
    filled = [journal for journal in journals if journal.rows]  # a shard with nothing left to do has no vectors
    at = {key: (part, row) for part, journal in enumerate(filled) for row, key in enumerate(journal.rows)}
    lost: dict[tuple[str, str], str] = {}
    for fates in [*(journal.missed for journal in journals), *(journal.corrupt for journal in journals)]:
        lost.update({(name, stamp): why for name, (stamp, why) in fates.items()})
    lines, corrupt = [], []
    for entry in entries:
        place = at.get((entry.id, entry.stamp))
        if place is not None:
            line = {"id": entry.id, "captions": entry.captions, "place": entry.place, "at": place}
            lines.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        elif (why := lost.get((entry.id, entry.stamp))) is not None:
            corrupt.append([entry.id, why])
        else:
            return None
    sha256 = hashlib.sha256(b"".join(lines)).hexdigest()
    listing = f"items-{sha256[:12]}.jsonl"
    if not (folder / listing).is_file() or sha256_of(folder / listing) != sha256:
        with publish_file(folder / listing) as temporary, temporary.open("wb") as file:
            file.writelines(lines)
    parts = [journal.folder.name for journal in filled]
    return {"items": len(lines), "listing": listing, "sha256": sha256, "parts": parts, "corrupt": corrupt}
