"""Queries as they are typed, and how much they cover."""

from __future__ import annotations

import numpy as np

from halation.search._typed import typed_queries
from halation.semantics import words
from worlds import sample_truth

TRUTH = sample_truth(images=60)
CAPTIONS, OWNERS = list(TRUTH.captions or ()), np.repeat(np.arange(60), 5)


def test_queries_are_parts_of_captions_and_whole_ones() -> None:
    texts, covers = typed_queries(CAPTIONS, OWNERS, most=100)
    assert len(texts) == len(covers) and covers.min() >= 1
    short = [text for text in texts if text not in CAPTIONS]
    assert len(short) > 50 and sum(text in CAPTIONS for text in texts) > 50
    assert all(any(text in caption for caption in CAPTIONS) and len(text.split()) <= 6 for text in short)
    assert len({len(text.split()) for text in short}) > 3  # of every length


def test_a_query_covers_the_images_whose_captions_have_its_telling_words() -> None:
    texts, covers = typed_queries(CAPTIONS, OWNERS, most=100)
    words_of = [{word for caption in CAPTIONS[5 * i : 5 * i + 5] for word in words(caption)} for i in range(60)]
    common = {word for image_words in words_of for word in image_words if sum(word in other for other in words_of) > 20}
    assert common  # "there", "is", …
    for text, count in zip(texts, covers, strict=True):
        telling = set(words(text)) - common
        assert telling and count == sum(telling <= image_words for image_words in words_of), text


def test_short_queries_cover_more() -> None:
    texts, covers = typed_queries(CAPTIONS, OWNERS)
    lengths = np.array([len(text.split()) for text in texts])
    assert covers[lengths <= 2].mean() > 2 * covers[lengths >= 6].mean()


def test_the_same_seed_draws_the_same() -> None:
    once, again, other = (typed_queries(CAPTIONS, OWNERS, most=50, seed=seed)[0] for seed in (1, 1, 2))
    assert once == again != other


def test_captions_without_a_telling_word_are_left_out() -> None:
    texts, covers = typed_queries(["a a a", "...", ""], np.arange(3))
    assert texts == [] and covers.shape == (0,)
