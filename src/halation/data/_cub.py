"""CUB Captions: ten captions for each photograph of 200 species of bird; the same species = relevant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from halation._errors import InputError, one_of
from halation._files import Location, read_lines
from halation.data._truth import Truth
from halation.data._truth_builder import TruthBuilder

__all__ = ["class_folders", "read_cub"]

# The 50 test classes of the zero-shot split (Akata et al., CVPR 2015; Reed et al., CVPR 2016), which PCME and those
# later papers call unseen. They are spread over all 200; metric learning's last fifty are other birds.
UNSEEN = (
    4, 12, 23, 26, 28, 31, 33, 43, 45, 49, 52, 55, 70, 72, 77, 84, 87, 91, 94, 97, 98, 103, 104, 111, 113,
    119, 123, 124, 127, 130, 132, 136, 138, 139, 143, 148, 156, 157, 161, 163, 164, 165, 168, 169, 173, 180, 188, 190,
    191, 200,
)  # fmt: skip
_SPLITS = {"unseen": set(UNSEEN), "seen": set(range(1, 201)) - set(UNSEEN)}
_FOLDER = re.compile(r"(\d{3})\..+")


def read_cub(
    folder: str | os.PathLike[str],
    split: str = "unseen",
    *,
    classes: str | os.PathLike[str] | Iterable[str | int] | None = None,
    images: str | os.PathLike[str] | Iterable[str] | None = None,
) -> Truth:
    """CUB Captions (Reed et al., CVPR 2016) from the folder text_c10/001.Black_footed_Albatross/….txt.

    split     "unseen" (50 classes), "seen" (the other 150) or "all"
    classes   instead of a split: names or numbers, or a file with one on each line ("004.Groove_billed_Ani")
    images    only these, or a file that lists them ("004.Groove_billed_Ani/Groove_Billed_Ani_0002_1670.jpg"):
              PCME keeps such a list of seen classes' test images

    Every image is relevant to every caption of its class, also to those of other images.
    """
    root = Path(folder)
    one_of(split, (*_SPLITS, "all"), "split of CUB")
    folders = class_folders(root)
    if not folders:
        problem = "holds no class folder such as 001.Black_footed_Albatross"
        raise InputError(problem, path=root, remedy="name the folder text_c10")
    named = _SPLITS.get(split, set(folders)) if classes is None else _class_numbers(classes)
    if absent := sorted(named - set(folders)):
        problem = f"lacks {len(absent)} of the {len(named)} classes ({absent[0]:03d} first)"
        raise InputError(problem, path=root, remedy="unpack it again")
    listed = None if images is None else set(_lines(images))
    gathered, labels, used = TruthBuilder(), [], set()
    for number in sorted(named):
        for file in sorted(folders[number].glob("*.txt")):
            image = f"{folders[number].name}/{file.stem}.jpg"
            if listed is None or image in listed:
                used.add(image)
                labels.append(number)
                gathered.add(Location(file), image, [line.strip() for _, line in read_lines(file)])
    if listed is not None and (missing := sorted(listed - used)):
        problem = f"has no {missing[0]} in these classes, but it is listed ({len(missing)} such)"
        raise InputError(problem, path=root, remedy="take it off the list, or name its class")
    truth = gathered.truth(root, f"cub-{split}" if classes is None else "cub")
    same = Truth.from_classes(labels, image_of=truth.image_of)
    return truth.replace(i2t=same.i2t, kind=same.kind)


def class_folders(root: Path) -> dict[int, Path]:
    """Class number → its folder, in `root` or in its text_c10; empty where this is not a CUB folder."""
    if (root / "text_c10").is_dir():
        root = root / "text_c10"
    if not root.is_dir():
        raise InputError("is not a folder", path=root, remedy="name the folder text_c10")
    folders = sorted(path for path in root.iterdir() if path.is_dir() and _FOLDER.fullmatch(path.name))
    return {int(path.name[:3]): path for path in folders}


def _lines(names: str | os.PathLike[str] | Iterable[str | int]) -> list[str]:
    if isinstance(names, str | os.PathLike):
        return [line.strip() for _, line in read_lines(names)]
    return [str(name) for name in names]


def _class_numbers(classes: str | os.PathLike[str] | Iterable[str | int]) -> set[int]:
    numbers = set()
    for name in _lines(classes):
        number = name.split(".")[0]
        if not re.fullmatch(r"\d{1,3}", number):
            raise InputError(f"{name!r} is not a class of CUB", remedy="write 4 or 004.Groove_billed_Ani")
        numbers.add(int(number))
    if not numbers:
        raise InputError("the list of classes is empty", remedy="name at least one class")
    return numbers
