"""`check`: the contents of a dataset and its problems, for programs and for people."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from halation._errors import HalationError, InputError
from halation._progress import Progress, silent
from halation.data._feature_files import META, NAMES, PARTIAL, open_features
from halation.data._feature_journal import ABOUT
from halation.data._layouts import Annotations, Layout, recognise
from halation.data._open import find_photos, rows_of
from halation.data._pictures import open_photo

__all__ = ["DatasetCheck", "FeatureCheck", "SplitCheck", "check"]


@dataclass(frozen=True)
class SplitCheck:
    """One split."""

    name: str
    images: int = 0
    captions: int = 0
    fewest: int = 0  # captions per image
    most: int = 0
    pictures: int = 0  # files that are there
    missing: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()  # an error for each such file
    empty: tuple[str, ...] = ()  # ids of captions without a word
    has_features: bool = False  # the layout consists of features
    error: str | None = None  # the annotations cannot be read

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.name:8} cannot be read: {self.error}"
        each = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest}–{self.most}"
        seen = "features" if self.has_features else f"{self.pictures:,} pictures"
        return f"{self.name:8} {self.images:>8,} images  {self.captions:>8,} captions ({each} each)  {seen}"


@dataclass(frozen=True)
class FeatureCheck:
    """One folder or file of features."""

    path: str
    rows: int = 0
    what: str = ""
    corrupt: int = 0  # pictures that could not be read when they were computed
    lacking: dict[str, int] = field(default_factory=dict)  # split → images that have a row, if not all have one
    error: str | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.path}: {self.error}"
        match = "rows match every split" if not self.lacking else f"rows lack images of {', '.join(self.lacking)}"
        return f"{self.path}: {self.rows:,} rows, {self.what}; {match}"


@dataclass(frozen=True)
class DatasetCheck:
    """The contents of a dataset's folder. `str(check(folder))` is a page to read; `ok` means no problems."""

    folder: str
    layout: str | None
    splits: tuple[SplitCheck, ...] = ()
    features: tuple[FeatureCheck, ...] = ()
    repeats: tuple[tuple[str, ...], ...] = ()  # pictures of one split with the same bytes
    leaks: tuple[tuple[tuple[str, str], ...], ...] = ()  # (split, image) of one image or picture in several splits
    problems: tuple[str, ...] = ()  # each with its remedy

    @property
    def ok(self) -> bool:
        return not self.problems

    def with_problems(self, pictures: str | None) -> DatasetCheck:
        """The same with a sentence for every problem; `pictures` is the folder for pictures."""
        return replace(self, problems=tuple(self._complaints(pictures)))

    def _complaints(self, pictures: str | None) -> Iterator[str]:
        for split in self.splits:
            yield from _of_split(split, pictures)
        if self.repeats:
            yield (
                f"{len(self.repeats):,} times a split holds pictures of the same bytes under several names "
                f"({_some(self.repeats[0])}); keep one of each"
            )
        if self.leaks:
            where = " and ".join(f"{name} ({split})" for split, name in self.leaks[0][:2])
            yield (
                f"{len(self.leaks):,} pictures are in more than one split ({where}); a model must not train on "
                "pictures it is tested on: take them out of one"
            )
        for features in self.features:
            if features.error is not None:
                yield f"features {features.path}: {features.error}"
            elif features.lacking and not features.corrupt:
                lacks = ", ".join(features.lacking)
                yield f"features {features.path} have no row for some images of {lacks}; compute them for this folder"

    def __str__(self) -> str:
        lines = [f"{self.folder}: {self.layout or 'not recognised'}", *(f"  {split}" for split in self.splits)]
        lines += [f"  features {features}" for features in self.features]
        if not self.features and self.layout is not None and not any(split.has_features for split in self.splits):
            lines.append("  no features yet")
        return "\n".join([*lines, *([f"  ! {problem}" for problem in self.problems] or ["  nothing to mend"])])


def _of_split(split: SplitCheck, pictures: str | None) -> Iterator[str]:
    if split.error is not None:
        yield f"{split.name}: {split.error}"
        return
    if split.missing and not split.pictures:
        yield f"{split.name}: no pictures; put them into {pictures}, or train on features"
    elif split.missing:
        yield (
            f"{split.name}: {len(split.missing):,} of {split.images:,} pictures are missing ({_some(split.missing)}); "
            f"put them into {pictures}, or take their lines out of the annotations"
        )
    if split.unreadable:
        yield f"{split.name}: {len(split.unreadable):,} pictures cannot be read; the first: {split.unreadable[0]}"
    if split.empty:
        yield f"{split.name}: {len(split.empty):,} captions have no word ({_some(split.empty)}); take them out"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


_OVERLAPPING = {"all", "seen", "unseen", "testall"}  # names for parts that other splits hold too


def check(folder: str | os.PathLike[str], *, decode: bool = True, progress: Progress = silent) -> DatasetCheck:
    """Look through a dataset: its splits, pictures (each is opened unless decode=False), repeats and features.

    Wrong data does not raise an error: `DatasetCheck.problems` lists every problem with its remedy.
    """
    root = Path(folder)
    try:
        layout = recognise(root)
    except InputError as error:
        return DatasetCheck(str(root), None, problems=(str(error),))
    splits: list[SplitCheck] = []
    annotated: dict[str, Annotations] = {}
    pictures: dict[str, dict[str, Path]] = {}
    for name in _to_check(layout):
        try:
            part = layout.read(name)
            split_check, pictures[name] = _split(name, part, layout, decode, progress)
        except HalationError as error:
            splits.append(SplitCheck(name, error=str(error)))
            continue
        annotated[name] = part
        splits.append(split_check)
    alike = _alike(pictures)
    leaks = (*_twice_by_name(annotated), *(group for group in alike if len({split for split, _ in group}) > 1))
    repeats = tuple(tuple(name for _, name in group) for group in alike if len({split for split, _ in group}) == 1)
    feature_checks = tuple(_features(layout.root, annotated))
    result = DatasetCheck(str(root), layout.name, tuple(splits), feature_checks, repeats, leaks)
    return result.with_problems(None if not layout.folders else str(layout.folders[0]))


def _to_check(layout: Layout) -> tuple[str, ...]:
    return tuple(name for name in layout.splits if name not in _OVERLAPPING) or layout.splits[:1]


def _split(
    name: str, annotations: Annotations, layout: Layout, decode: bool, progress: Progress
) -> tuple[SplitCheck, dict[str, Path]]:
    truth = annotations.truth
    assert truth.captions is not None and truth.image_of is not None
    each = np.bincount(truth.image_of)
    empty = tuple(
        str(caption) for caption, text in zip(truth.caption_ids, truth.captions, strict=True) if not text.strip()
    )
    present: dict[str, Path] = {}
    missing: list[str] = []
    for names, path in zip(annotations.files or (), find_photos(annotations.files or (), layout.folders), strict=True):
        if path is None:
            missing.append(names[0])
        else:
            present[names[0]] = path
    split_check = SplitCheck(
        name,
        images=truth.n_images,
        captions=truth.n_captions,
        fewest=int(each.min()),
        most=int(each.max()),
        pictures=len(present),
        missing=tuple(missing),
        unreadable=tuple(_unreadable(present, name, progress)) if decode else (),
        empty=empty,
        has_features=annotations.features is not None,
    )
    return split_check, present


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
    return [tuple(splits) for splits in where.values() if len(splits) > 1]


def _alike(pictures: dict[str, dict[str, Path]]) -> list[tuple[tuple[str, str], ...]]:
    """Groups of different files with the same bytes, as (split, name); only files of equal size are read."""
    sizes: dict[int, dict[Path, tuple[str, str]]] = {}
    for split, paths in pictures.items():
        for name, path in paths.items():
            sizes.setdefault(path.stat().st_size, {}).setdefault(path, (split, name))
    groups: dict[bytes, list[tuple[str, str]]] = {}
    for same in sizes.values():
        for path, location in same.items() if len(same) > 1 else ():
            groups.setdefault(hashlib.sha256(path.read_bytes()).digest(), []).append(location)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _features(root: Path, annotated: dict[str, Annotations]) -> Iterable[FeatureCheck]:
    for path in _feature_paths(root):
        shown = path.relative_to(root).as_posix()
        try:
            store = open_features(path)
        except HalationError as error:
            yield FeatureCheck(shown, error=str(error))
            continue
        rows = {name: _rows_found(annotations, store.names, len(store)) for name, annotations in annotated.items()}
        lacking = {name: count for name, count in rows.items() if count < annotated[name].truth.n_images}
        what = f"pooled {store.pooled_dim}" + (f", {store.cells} cells of {store.local_dim}" if store.cells else "")
        yield FeatureCheck(shown, len(store), what, corrupt=len(store.corrupt), lacking=lacking)


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
