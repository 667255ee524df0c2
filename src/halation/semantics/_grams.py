"""Sentences as counted n-grams, numbered exactly by integers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel
from halation.semantics._tokens import Tokens

__all__ = ["Counts", "Grams"]


class Counts(NamedTuple):
    """Counted n-grams as a kernel walks them: those of sentence s are `gram[start[s] : start[s + 1]]`, rising."""

    start: npt.NDArray[np.int64]  # (sentences + 1,)
    gram: npt.NDArray[np.int32]  # (entries,)
    times: npt.NDArray[np.uint16]  # (entries,) how often the sentence has the n-gram


@dataclass(frozen=True)
class Grams:
    """The n-grams of sentence s are `gram[start[s] : start[s + 1]]`, rising, each once, `count` times in the sentence.

    An n-gram is numbered by the pair (number of its first n − 1 words, its last word): `keys[n − 1]` holds the pairs as
    sorted integers, and the position of a pair is its number within the order. Orders follow each other, so that
    `base[n − 1] <= gram < base[n]` for an n-gram.
    """

    vocabulary: dict[str, int]
    keys: list[npt.NDArray[np.int64]]
    base: npt.NDArray[np.int64]  # (orders + 1,)
    start: npt.NDArray[np.int64]  # (sentences + 1,)
    gram: npt.NDArray[np.int32]  # (entries,)
    count: npt.NDArray[np.uint16]  # (entries,)
    length: npt.NDArray[np.int64]  # (sentences,) in tokens

    @classmethod
    def of(cls, tokens: Tokens, orders: int) -> Grams:
        """Count all n-grams with n = 1 … orders."""
        word, radix = tokens.word, max(1, len(tokens.vocabulary))
        to_end = np.repeat(tokens.start[1:], tokens.length) - np.arange(len(word))  # tokens left in the sentence
        number = word.astype(np.int64)  # of the n-gram that begins at each token
        keys, base = [np.arange(len(tokens.vocabulary))], [0, len(tokens.vocabulary)]
        at = np.full((orders, len(word)), -1, dtype=np.int32)  # n-gram by order and first position
        at[0] = word
        for n in range(2, orders + 1):
            begins = np.flatnonzero(to_end >= n)  # where an n-gram of this order begins
            pairs, numbers = np.unique(number[begins] * radix + word[begins + n - 1], return_inverse=True)
            number[begins] = numbers
            at[n - 1, begins] = numbers + base[-1]
            keys.append(pairs)
            base.append(base[-1] + len(pairs))
        start = np.zeros(len(tokens.start), dtype=np.int64)
        gram, count = np.empty(at.size, dtype=np.int32), np.empty(at.size, dtype=np.uint16)
        used = _count(at, tokens.start, start, gram, count)
        return cls(
            tokens.vocabulary, keys, np.array(base), start, gram[:used].copy(), count[:used].copy(), tokens.length
        )

    @property
    def orders(self) -> int:
        """The longest n."""
        return len(self.keys)

    @cached_property
    def order(self) -> npt.NDArray[np.uint8]:
        """n − 1 of each n-gram."""
        return np.repeat(np.arange(self.orders, dtype=np.uint8), np.diff(self.base))

    @property
    def counts(self) -> Counts:
        """The arrays that a kernel walks."""
        return Counts(self.start, self.gram, self.count)

    def numbers_in(self, other: Grams) -> npt.NDArray[np.int64]:
        """The number in `other` of each of these n-grams (the same words in the same order), or −1."""
        mine, theirs = len(self.vocabulary), max(1, len(other.vocabulary))
        lookup = other.vocabulary.get
        words = np.fromiter((lookup(word, -1) for word in self.vocabulary), dtype=np.int64, count=mine)
        parts, first = [words], words
        for n in range(1, self.orders):
            head, last = np.divmod(self.keys[n], max(1, mine))
            first, last = first[head], words[last]
            pairs = np.where((first >= 0) & (last >= 0), first * theirs + last, -1)
            first = np.searchsorted(other.keys[n], pairs)
            known = np.zeros(len(pairs), dtype=np.bool_)
            inside = first < len(other.keys[n])
            known[inside] = other.keys[n][first[inside]] == pairs[inside]
            first = np.where(known, first, -1)
            parts.append(np.where(known, first + other.base[n], -1))
        return np.concatenate(parts)


@kernel
def _count(at: Any, begin: Any, start: Any, gram: Any, count: Any) -> int:
    """Sort and count the n-grams of each sentence; returns how many entries were written."""
    used = 0
    for s in range(len(begin) - 1):
        grams = at[:, begin[s] : begin[s + 1]].copy().reshape(-1)
        grams.sort()
        last = -1
        for g in grams:
            if g < 0:  # no room for that order before the sentence ends
                continue
            if g == last:
                count[used - 1] += 1
            else:
                gram[used], count[used] = g, 1
                used += 1
                last = g
        start[s + 1] = used
    return used
