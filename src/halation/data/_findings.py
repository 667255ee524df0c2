"""What `check` found, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

__all__ = ["FeatureFindings", "Findings", "SplitFindings"]


@dataclass(frozen=True)
class SplitFindings:
    """One split."""

    name: str
    images: int = 0
    captions: int = 0
    fewest: int = 0  # captions an image
    most: int = 0
    pictures: int = 0  # files that are there
    missing: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()  # what is wrong with which file
    empty: tuple[str, ...] = ()  # ids of captions without a word
    has_features: bool = False  # the layout is made of them
    error: str | None = None  # the annotations cannot be read

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.name:8} cannot be read: {self.error}"
        each = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest}–{self.most}"
        seen = "features" if self.has_features else f"{self.pictures:,} pictures"
        return f"{self.name:8} {self.images:>8,} images  {self.captions:>8,} captions ({each} each)  {seen}"


@dataclass(frozen=True)
class FeatureFindings:
    """One folder or file of features."""

    path: str
    rows: int = 0
    what: str = ""
    corrupt: int = 0  # pictures that could not be read when they were computed
    lacking: dict[str, int] = field(default_factory=dict)  # split → images that have a row, where not all have
    error: str | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.path}: {self.error}"
        match = "rows match every split" if not self.lacking else f"rows lack images of {', '.join(self.lacking)}"
        return f"{self.path}: {self.rows:,} rows, {self.what}; {match}"


@dataclass(frozen=True)
class Findings:
    """A dataset's folder. `str(findings)` is the page a person reads; `ok` says whether there is nothing to mend."""

    folder: str
    layout: str | None
    splits: tuple[SplitFindings, ...] = ()
    features: tuple[FeatureFindings, ...] = ()
    repeats: tuple[tuple[str, ...], ...] = ()  # pictures of one split with the same bytes
    leaks: tuple[tuple[tuple[str, str], ...], ...] = ()  # (split, image) of one image or picture in several splits
    problems: tuple[str, ...] = ()  # each with its remedy

    @property
    def ok(self) -> bool:
        return not self.problems

    def with_problems(self, pictures: str | None) -> Findings:
        """The same with every complaint spelt out; `pictures` is the folder where pictures belong."""
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
                f"{len(self.leaks):,} pictures are in more than one split ({where}); what is tested must not "
                "be trained on: take them out of one"
            )
        for found in self.features:
            if found.error is not None:
                yield f"features {found.path}: {found.error}"
            elif found.lacking and not found.corrupt:
                lacks = ", ".join(found.lacking)
                yield f"features {found.path} have no row for some images of {lacks}; compute them for this folder"

    def __str__(self) -> str:
        lines = [f"{self.folder}: {self.layout or 'not recognised'}", *(f"  {split}" for split in self.splits)]
        lines += [f"  features {found}" for found in self.features]
        if not self.features and self.layout is not None and not any(split.has_features for split in self.splits):
            lines.append("  no features yet")
        return "\n".join([*lines, *([f"  ! {problem}" for problem in self.problems] or ["  nothing to mend"])])


def _of_split(split: SplitFindings, pictures: str | None) -> Iterator[str]:
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
