"""What cannot be scored is refused with a reason and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halation
from halation.semantics import Semantics, caption_relevance

CAPTIONS = ["a dog", "a bus", "a cat"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"image_of": [0, 2, 2]}, "image 1 has no captions"),
        ({"image_of": [0, 3, 1]}, r"image_of\[1\] is 3 but there are 3 captions.*numpy\.unique"),
        ({"image_of": [10**12, 7, 7]}, r"image_of\[0\] is 1000000000000 .*indices 0 … n_images − 1"),
        ({"image_of": np.array([2**64 - 1, 0, 1], dtype=np.uint64)}, r"image_of\[0\] is 18446744073709551615"),
        ({"image_of": [0, 1]}, "image_of has 2 entries but there are 3 captions"),
        ({"image_of": [0, -1, 1]}, r"image_of\[1\] is -1"),
        ({"image_of": [0.5, 1.0, 2.0]}, "whole numbers"),
        ({"image_of": [[0, 1, 2]]}, "list of indices"),
        ({"image_of": None}, "image_of is missing"),
        ({"metric": "cidre"}, "did you mean 'cider'"),
        ({"metric": "bleu"}, "did you mean 'bleu"),
        ({"tokenizer": "treebnak"}, "did you mean 'treebank'"),
        ({"tokenizer": 7}, "tokenizer must be a name"),
        ({"tokenizer": lambda text: [[text]]}, "must return a list of strings"),
        ({"captions": "a dog"}, "single string"),
        ({"captions": [], "image_of": []}, "captions is empty"),
        ({"captions": ["a dog", None, "x"]}, r"captions\[1\] is NoneType"),
        ({"references": [["a"], [], ["b"]]}, r"references\[1\] is empty"),
        ({"references": [["a"], "b", ["b"]]}, r"references\[1\] is a single string"),
        ({"references": [["a"], ["b"]]}, r"image_of\[2\] is 2 but there are references for 2 images"),
        ({"references": [["a"]], "image_of": None, "leave_one_out": True}, "leave_one_out needs image_of"),
        (
            {"references": [["a"], ["b"]], "image_of": [0, 10**12, 1]},
            r"image_of\[1\] is 1000000000000 but there are references for 2 images; image_of holds indices",
        ),
        ({"encoder": len}, "encoder is for the metric 'sentence'"),
    ],
)
def test_the_error_names_what_is_wrong(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(halation.InputError, match=message):
        caption_relevance(**{"captions": CAPTIONS, "image_of": [0, 1, 2], **arguments})


def test_a_block_outside_the_corpus_is_refused() -> None:
    corpus = Semantics.fit(CAPTIONS, [0, 1, 2]).corpus()
    with pytest.raises(halation.InputError, match=r"images\[1\] is 3; there are 3, counted from 0"):
        corpus.block([0, 3], [0])
    with pytest.raises(halation.InputError, match=r"captions\[0\] is -1"):
        corpus.block([0], [-1])
    with pytest.raises(halation.InputError, match="rows 1 to 4 are not within 0 to 3"):
        corpus.rows(1, 4)
    with pytest.raises(halation.InputError, match="columns 2 to 1"):
        corpus.columns(2, 1)


def test_a_corpus_needs_captions_unless_it_is_the_fitted_one() -> None:
    with pytest.raises(halation.InputError, match="captions are missing"):
        Semantics.fit(CAPTIONS, [0, 1, 2]).corpus(image_of=np.arange(3))


def test_ids_numbered_as_the_error_says_are_accepted() -> None:
    ids = np.array([10**12, 7, 7])
    with pytest.raises(halation.InputError, match=r"numpy\.unique\(ids, return_inverse=True\)\[1\]"):
        Semantics.fit(CAPTIONS, ids)
    assert Semantics.fit(CAPTIONS, np.unique(ids, return_inverse=True)[1]).corpus().image_of.tolist() == [1, 0, 0]
