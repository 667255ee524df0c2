"""Short queries as people type them, and how many images each covers, to compare σ with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from halation._arrays import IntArray
from halation.semantics import words

__all__ = ["typed_queries"]

_LONGEST = 6  # words of a short query
_COMMON = 1 / 3  # of the images: words that more of them have ("the", "with") do not tell images apart


def typed_queries(
    captions: Sequence[str], image_of: IntArray, most: int = 1000, seed: int = 0
) -> tuple[list[str], IntArray]:
    """Up to `most` parts of captions (one to six words), as many whole captions, and how many images each covers.

    Annotated captions are about equally long, so they cover about equally many images. The queries that people type
    differ more. A query covers an image if the image's captions together have all of its words. Words that are common
    everywhere do not count; a query that has no other words is left out.
    """
    draw = np.random.default_rng(seed)
    holders: dict[str, set[int]] = defaultdict(set)
    for caption, image in zip(captions, np.asarray(image_of).tolist(), strict=True):
        for word in words(caption):
            holders[word].add(image)
    common = _COMMON * len(np.unique(image_of))
    telling = {word: images for word, images in holders.items() if len(images) <= common}
    chosen = draw.permutation(len(captions))
    parts = [_part(captions[number], draw) for number in chosen[:most]]
    whole = [captions[number] for number in chosen[::-1][:most]]
    counted = [(text, _covered(text, telling)) for text in (*parts, *whole)]
    kept = [(text, covers) for text, covers in counted if covers]
    return [text for text, _ in kept], np.array([covers for _, covers in kept], np.int64)


def _part(caption: str, draw: np.random.Generator) -> str:
    caption_words = caption.split()
    length = int(draw.integers(1, min(len(caption_words), _LONGEST) + 1)) if caption_words else 0
    start = int(draw.integers(len(caption_words) - length + 1))
    return " ".join(caption_words[start : start + length]).strip(" .,;:!?\"'")


def _covered(text: str, telling: dict[str, set[int]]) -> int:
    images_with = [telling[word] for word in words(text) if word in telling]
    return len(set.intersection(*images_with)) if images_with else 0
