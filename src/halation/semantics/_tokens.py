"""Sentences as word numbers, in ragged arrays: row r is `item[start[r] : start[r + 1]]`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._errors import InputError
from halation.semantics._tokenizers import Tokenizer, callable_name

__all__ = ["Tokens", "positions_of", "starts"]

_LONGEST = 65_535  # tokens: counts and lengths fit 16 bits; captions are far shorter


@dataclass(frozen=True)
class Tokens:
    """The words of sentence s are `word[start[s] : start[s + 1]]`, numbers into `vocabulary`."""

    vocabulary: dict[str, int]
    start: npt.NDArray[np.int64]  # (sentences + 1,)
    word: npt.NDArray[np.int32]  # (all tokens,)

    @classmethod
    def of(cls, sentences: Sequence[str], tokenizer: Tokenizer) -> Tokens:
        """Tokenise sentence by sentence, so that the tokens themselves are never in memory all at once."""
        vocabulary: dict[str, int] = {}
        word = array("i")
        start = np.zeros(len(sentences) + 1, dtype=np.int64)
        for number, sentence in enumerate(sentences):
            tokens = tokenizer(sentence)
            if len(tokens) > _LONGEST:
                raise InputError(
                    f"sentence {number} has {len(tokens):,} tokens; more than {_LONGEST:,} is not a caption (is a "
                    f"whole document among them? it begins {sentence[:40]!r})"
                )
            try:
                word.extend([vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
            except TypeError:
                raise InputError(
                    f"the tokenizer {callable_name(tokenizer)} must return a list of strings, not {tokens!r:.80}"
                ) from None
            start[number + 1] = len(word)
        return cls(vocabulary, start, np.frombuffer(word, dtype=np.int32) if word else np.zeros(0, dtype=np.int32))

    @property
    def length(self) -> npt.NDArray[np.int64]:
        """Number of tokens of each sentence."""
        return np.diff(self.start)


def starts(sizes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The position at which each row begins, and the end of the last.

    >>> starts(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    start = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=start[1:])
    return start


def positions_of(
    start: npt.NDArray[np.int64], rows: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(starts, positions) of the chosen rows, one after the other in the given order, repeats allowed.

    >>> positions_of(np.array([0, 2, 2, 5]), np.array([2, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    begin = start[rows]
    new = starts(start[rows + 1] - begin)
    return new, np.arange(new[-1]) + np.repeat(begin - new[:-1], np.diff(new))
