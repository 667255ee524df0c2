"""What a truth knows of a pair, in words: not every truth can say that a pair does not match."""

from __future__ import annotations

from halation.data import Dataset
from halation.report._facts import Knows, Mark

__all__ = ["first_answer", "knows", "marks"]

_REST: dict[Knows, tuple[str, str]] = {
    "written": ("not marked", "No annotator marked this pair; it may match all the same."),
    "judged": ("not marked", "This pair was not judged a match; not every pair was looked at, so it may be one."),
    "classes": (
        "another class",
        "Right is what is of the same class; this is of another, and may fit all the same.",
    ),
    "all": ("no match", "Every pair of this data is known: this caption is not true of this picture."),
}
_LOOK: dict[Knows, str] = {
    "written": "Look whether the first answer is really wrong: what nobody wrote for it may match all the same.",
    "judged": "Look whether the first answer is really wrong: not every pair was judged.",
    "classes": "Look whether the first answer is really wrong: right is only what is of the same class.",
    "all": "Here every pair is known: the first answer is wrong, whatever follows.",
}


def knows(dataset: Dataset) -> Knows:
    """Of the dataset's truth."""
    kind = dataset.truth.kind
    if kind == "pairs" and dataset.name.startswith("scenes-"):
        return "all"
    return "written" if kind == "captions" else "classes" if kind == "classes" else "judged"


def marks(truth: Knows) -> dict[Mark, tuple[str, str, str]]:
    """For every mark a sign, a few words, and a sentence for those who point at it."""
    also = "The truth calls this pair a match, though nobody wrote the caption for this picture."
    return {
        "own": ("✓", "written for it", "An annotator wrote this caption for this picture."),
        "right": ("✓", "also right", also),
        "": ("", *_REST[truth]),
    }


def first_answer(truth: Knows) -> str:
    """What a reader should make of a first answer that is not counted right."""
    return _LOOK[truth]
