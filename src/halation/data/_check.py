"""`check`: what a dataset's folder holds, and what is missing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from halation._errors import HalationError, InputError
from halation._progress import Progress, silent
from halation.data._feature_files import META, NAMES, PARTIAL, open_features
from halation.data._feature_journal import ABOUT
from halation.data._findings import FeatureFindings, Findings, SplitFindings
from halation.data._layouts import Annotations, Layout, recognise
from halation.data._open import find_photos, rows_of
from halation.data._pictures import open_photo

__all__ = ["check"]

_OVERLAPPING = {"all", "seen", "unseen", "testall"}  # names for parts that other splits hold too


def check(folder: str | os.PathLike[str], *, decode: bool = True, progress: Progress = silent) -> Findings:
    """Look through a dataset: its splits, pictures (each is opened unless decode=False), repeats and features.

    Nothing here raises for what is wrong with the data: `Findings.problems` has every complaint with its remedy.
    """
    root = Path(folder)
    try:
        layout = recognise(root)
    except InputError as error:
        return Findings(str(root), None, problems=(str(error),))
    splits: list[SplitFindings] = []
    annotated: dict[str, Annotations] = {}
    pictures: dict[str, dict[str, Path]] = {}
    for name in _to_check(layout):
        try:
            part = layout.read(name)
            found, pictures[name] = _split(name, part, layout, decode, progress)
        except HalationError as error:
            splits.append(SplitFindings(name, error=str(error)))
            continue
        annotated[name] = part
        splits.append(found)
    alike = _alike(pictures)
    leaks = (*_twice_by_name(annotated), *(group for group in alike if len({split for split, _ in group}) > 1))
    repeats = tuple(tuple(name for _, name in group) for group in alike if len({split for split, _ in group}) == 1)
    found_features = tuple(_features(layout.root, annotated))
    findings = Findings(str(root), layout.name, tuple(splits), found_features, repeats, leaks)
    return findings.with_problems(None if not layout.folders else str(layout.folders[0]))


def _to_check(layout: Layout) -> tuple[str, ...]:
    return tuple(name for name in layout.splits if name not in _OVERLAPPING) or layout.splits[:1]


def _split(
    name: str, annotations: Annotations, layout: Layout, decode: bool, progress: Progress
) -> tuple[SplitFindings, dict[str, Path]]:
    truth = annotations.truth
    assert truth.captions is not None and truth.image_of is not None
    each = np.bincount(truth.image_of)
    empty = tuple(
        str(caption) for caption, text in zip(truth.caption_ids, truth.captions, strict=True) if not text.strip()
    )
    there: dict[str, Path] = {}
    missing: list[str] = []
    for names, path in zip(annotations.files or (), find_photos(annotations.files or (), layout.folders), strict=True):
        if path is None:
            missing.append(names[0])
        else:
            there[names[0]] = path
    found = SplitFindings(
        name,
        images=truth.n_images,
        captions=truth.n_captions,
        fewest=int(each.min()),
        most=int(each.max()),
        pictures=len(there),
        missing=tuple(missing),
        unreadable=tuple(_unreadable(there, name, progress)) if decode else (),
        empty=empty,
        has_features=annotations.features is not None,
    )
    return found, there


def _unreadable(pictures: dict[str, Path], split: str, progress: Progress) -> Iterable[str]:
    def complaint(path: Path) -> str | None:
        try:
            open_photo(path)
        except InputError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, why in enumerate(pool.map(complaint, pictures.values()), start=1):
            progress(f"pictures of {split}", done, len(pictures))
            if why is not None:
                yield why


def _twice_by_name(annotated: dict[str, Annotations]) -> list[tuple[tuple[str, str], ...]]:
    """Images that two splits list."""
    where: dict[str, list[tuple[str, str]]] = {}
    for split, part in annotated.items():
        if part.features is None:  # rows of features are numbered anew in each split
            for image in part.truth.image_ids:
                where.setdefault(str(image), []).append((split, str(image)))
    return [tuple(places) for places in where.values() if len(places) > 1]


def _alike(pictures: dict[str, dict[str, Path]]) -> list[tuple[tuple[str, str], ...]]:
    """Groups of different files with the same bytes, as (split, name); only files of equal size are read."""
    sizes: dict[int, dict[Path, tuple[str, str]]] = {}
    for split, paths in pictures.items():
        for name, path in paths.items():
            sizes.setdefault(path.stat().st_size, {}).setdefault(path, (split, name))
    groups: dict[bytes, list[tuple[str, str]]] = {}
    for same in sizes.values():
        for path, place in same.items() if len(same) > 1 else ():
            groups.setdefault(hashlib.sha256(path.read_bytes()).digest(), []).append(place)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _features(root: Path, annotated: dict[str, Annotations]) -> Iterable[FeatureFindings]:
    for path in _feature_paths(root):
        shown = path.relative_to(root).as_posix()
        try:
            store = open_features(path)
        except HalationError as error:
            yield FeatureFindings(shown, error=str(error))
            continue
        rows = {name: _rows_found(annotations, store.names, len(store)) for name, annotations in annotated.items()}
        lacking = {name: count for name, count in rows.items() if count < annotated[name].truth.n_images}
        what = f"pooled {store.pooled_dim}" + (f", {store.cells} cells of {store.local_dim}" if store.cells else "")
        yield FeatureFindings(shown, len(store), what, corrupt=len(store.corrupt), lacking=lacking)


def _rows_found(annotations: Annotations, names: Sequence[str] | None, rows: int) -> int:
    if names is None:
        return annotations.truth.n_images if rows == annotations.truth.n_images else 0
    return sum(row is not None for row in rows_of(annotations, names))


def _feature_paths(root: Path) -> list[Path]:
    folders = [path for path in sorted(root.iterdir()) if path.is_dir()]
    deeper = [path for folder in folders for path in sorted(folder.iterdir()) if path.is_dir() and _is_cache(path)]
    arrays = [path for path in folders if (path / NAMES).is_file() and any(path.glob("*.npy"))]
    made = sorted({*arrays, *(path for path in folders if _is_cache(path))})
    return [*made, *deeper, *sorted(path for path in root.iterdir() if path.suffix in (".h5", ".hdf5"))]


def _is_cache(folder: Path) -> bool:
    return (folder / META).is_file() or (folder / PARTIAL / ABOUT).is_file()
