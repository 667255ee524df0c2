"""The words of a text as people see them, and the tokens a model makes of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from halation._arrays import FloatArray
from halation.encoders import Model

__all__ = ["Reading", "read_words"]


class Reading(NamedTuple):
    """A text taken apart.

    words     what stands between white space; its tokens where the model splits the text in another way
    tokens    of each word, the places of its tokens: none where the model skips it ("a"); None: it reads word pieces
    without   the text without each word
    """

    words: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...] | None
    without: tuple[str, ...]

    def gathered(self, weights: FloatArray) -> FloatArray:
        """(heads, tokens) → (heads, words): a word has what its tokens have together."""
        found = np.zeros((len(weights), len(self.words)))
        for place, own in enumerate(self.tokens or ()):
            found[:, place] = weights[:, list(own)].sum(1)
        return found


def read_words(text: str, model: Model) -> Reading:
    """The words of a text.

    A word may have several tokens ("t-shirts" → "shirts"; "dog's" → "dog"), or none.
    """
    words = text.split()
    whole, each = model.texts.words(text), [model.texts.words(word) for word in words]
    if whole is None:
        return Reading(tuple(words), None, _without(words))
    places, start = [], 0
    for own in each:
        places.append(tuple(range(start, start + len(own or ()))))
        start += len(own or ())
    if [token for own in each for token in own or ()] != whole:  # "can not" is one thing to some tokenizers
        words, places = whole, [(place,) for place in range(len(whole))]
    return Reading(tuple(words), tuple(places), _without(words))


def _without(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join([*words[:place], *words[place + 1 :]]) for place in range(len(words)))
