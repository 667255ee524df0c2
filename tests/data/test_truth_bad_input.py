"""What Truth refuses, and how it says so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from halation import InputError
from halation.data import Truth

TWO = ["a dog", "a cat"]
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "an image without captions": (
        lambda: Truth.from_captions([*TWO, "a bus"], [0, 2, 2]),
        r"image 1 has no caption .*at least one",
    ),
    "more images than captions": (
        lambda: Truth.from_captions(TWO, [0, 2]),
        r"image_of\[1\] is 2 but there are 2 captions: .*indices 0 … n_images − 1, and every image has a caption",
    ),
    "ids in place of indices": (
        lambda: Truth.from_captions(TWO, [10**12, 7]),
        r"image_of\[0\] is 1000000000000 .*numpy\.unique\(ids, return_inverse=True\)\[1\]",
    ),
    "ids in place of indices of named images": (
        lambda: Truth.from_captions(TWO, [0, 10**12], image_ids=["d.jpg", "c.jpg"]),
        r"image_of\[1\] is 1000000000000; there are 2, counted from 0",
    ),
    "indices beyond 64 bits": (
        lambda: Truth.from_captions(TWO, np.array([0, 2**64 - 1], dtype=np.uint64)),
        r"image_of\[1\] is 18446744073709551615; it must be 0 or more and below 2⁶³",
    ),
    "an unknown kind": (
        lambda: Truth.from_captions(TWO, [0, 1]).replace(kind="caption"),
        "unknown kind of truth 'caption'; did you mean 'captions'",
    ),
    "a named image without captions": (
        lambda: Truth.from_captions(TWO, [0, 0], image_ids=["d.jpg", "c.jpg"]),
        r"image 1 \('c\.jpg'\) has no caption",
    ),
    "an image index out of range": (
        lambda: Truth.from_captions(TWO, [0, 5], image_ids=["d.jpg"]),
        r"image_of\[1\] is 5; there are 1, counted from 0",
    ),
    "a negative image index": (lambda: Truth.from_captions(TWO, [0, -1]), r"image_of\[1\] is -1; it must be 0 or more"),
    "too few image indices": (lambda: Truth.from_captions(TWO, [0]), "1 entries for 2 captions"),
    "fractional image indices": (lambda: Truth.from_captions(TWO, [0.0, 1.0]), "whole numbers, not float64"),
    "a table of image indices": (lambda: Truth.from_captions(TWO, [[0, 1]]), r"list of indices, not .*\(1, 2\)"),
    "no captions at all": (lambda: Truth.from_captions([], []), "needs images and captions; there are 0 and 0"),
    "one text instead of a list": (lambda: Truth.from_captions("ab", [0, 1]), "list of texts"),
    "a caption that is not a text": (lambda: Truth.from_captions(["a", None], [0, 1]), "list of texts"),
    "an image id twice": (
        lambda: Truth.from_captions(TWO, [0, 1], image_ids=["d", "d"]),
        "image id 'd' occurs twice, at 0 and at 1",
    ),
    "ids equal as text": (
        lambda: Truth.from_captions(TWO, [0, 1], caption_ids=[1, "1"]),
        "caption id '1' occurs twice",
    ),
    "too few ids": (lambda: Truth.from_captions(TWO, [0, 1], caption_ids=[1]), "1 caption ids for 2 captions"),
    "a fractional id": (lambda: Truth.from_captions(TWO, [0, 1], image_ids=[1.5, 2]), "1.5 is a float"),
    "an empty id": (
        lambda: Truth.from_captions(TWO, [0, 1], image_ids=["", "b"]),
        "empty text is not a valid image id",
    ),
    "a pair of an unknown id": (
        lambda: Truth.from_pairs([("a", 1), ("b", 1)], image_ids=["a"], caption_ids=[1]),
        r"pairs\[1\] names the image 'b', which is not among the 1 image ids",
    ),
    "a pair beyond the gallery": (lambda: Truth.from_pairs([(0, 9)], n_captions=3), r"captions of the pairs\[0\] is 9"),
    "a pair of three": (lambda: Truth.from_pairs([(0, 1, 2)]), r"pairs\[0\] is \(0, 1, 2\); a pair is"),
    "no pairs and no gallery": (lambda: Truth.from_pairs([]), "needs images and captions"),
    "a NaN gain": (lambda: Truth.from_graded([[1.0, np.nan]]), r"\[0, 1\] is nan; gains are finite"),
    "a negative gain": (lambda: Truth.from_graded([[1.0, 0], [0, -1]]), r"\[1, 1\] is -1.0"),
    "a list of gains": (lambda: Truth.from_graded([1.0, 0.5]), r"a matrix of numbers"),
    "a threshold of zero": (lambda: Truth.from_graded([[1.0]], threshold=0), "threshold is 0; it must be above 0"),
    "classes for other images": (
        lambda: Truth.from_captions(TWO, [0, 1], classes=[["dog"]]),
        "classes has 1 rows for 2 images",
    ),
    "class counts": (lambda: Truth.from_captions(TWO, [0, 1], classes=[[2], [0]]), "0/1 matrix"),
    "ragged codes": (lambda: Truth.from_captions(TWO, [0, 1], classes=[[1], [0, 1]]), "0/1 matrix"),
    "an unknown class name": (
        lambda: Truth.from_captions(TWO, [0, 1], classes=[["dog"], ["cat"]], class_names=["dog"]),
        r"classes\[1\] holds 'cat', which is not among the 1 class names",
    ),
    "class names that do not fit": (
        lambda: Truth.from_captions(TWO, [0, 1], classes=np.eye(2), class_names=["dog"]),
        "1 class names for 2 classes",
    ),
    "labels without captions": (lambda: Truth.from_classes(["a", "b"]), "image_of to inherit"),
    "distance between labels": (lambda: Truth.from_classes(["a", "b"], ["a"], zeta=1), "zeta is 1; labels are equal"),
    "labels against codes": (lambda: Truth.from_classes(np.eye(2), ["a"]), "image classes have shape"),
    "fractional labels": (lambda: Truth.from_classes([0.5, 1.5], image_of=[0, 1]), "a label for each item"),
    "an unknown direction": (
        lambda: Truth.from_captions(TWO, [0, 1]).positives("t2t"),  # type: ignore[arg-type]
        "unknown direction 't2t'; did you mean",
    ),
    "a row that is not there": (lambda: Truth.from_captions(TWO, [0, 1]).gains("i2t", [2]), r"rows\[0\] is 2"),
    "an unknown field": (lambda: Truth.from_captions(TWO, [0, 1]).replace(caption="x"), "did you mean 'captions'"),
    "a query listed twice": (
        lambda: Truth.from_captions(TWO, [0, 1]).replace(image_queries=[0, 0]),
        "image_queries names a query twice",
    ),
    "a mask of the wrong length": (
        lambda: Truth.from_captions(TWO, [0, 1]).subset(np.array([True])),
        "mask of length 1 for 2 items",
    ),
    "captions nobody owns": (
        lambda: Truth.from_pairs([(0, 0)]).subset([0]),
        "which image a caption belongs to; give captions as well",
    ),
    "text to image of the wrong shape": (
        lambda: Truth.from_captions(["a", "b", "c"], [0, 1, 1]).replace(t2i=np.ones((2, 3))),
        r"t2i has shape \(2, 3\); it must be \(3, 2\)",
    ),
    "lost counts that do not fit": (
        lambda: Truth.from_captions(TWO, [0, 1]).replace(lost_t2i=[1]),
        "lost_t2i has 1 entries for 2 queries",
    ),
    "annotated that does not fit": (
        lambda: Truth.from_captions(TWO, [0, 1], classes=np.eye(2)).replace(annotated=np.array([True])),
        "annotated must be true or false for each of the 2 images",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_what_and_where(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(InputError, match=message):
        make()
