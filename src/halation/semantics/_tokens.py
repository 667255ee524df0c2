"""Sentences as word numbers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halation._errors import InputError
from halation.semantics._tokenizers import Tokenizer, callable_name

__all__ = ["LONGEST", "Tokens"]

LONGEST = 65_535  # counts and lengths fit 16 bits; no caption is longer by far


@dataclass(frozen=True)
class Tokens:
    """The words of sentence s are `word[start[s] : start[s + 1]]`, numbers into `vocabulary`."""

    vocabulary: dict[str, int]
    start: npt.NDArray[np.int64]  # (sentences + 1,)
    word: npt.NDArray[np.int32]  # (all tokens,)

    @classmethod
    def of(cls, sentences: Sequence[str], tokenizer: Tokenizer) -> Tokens:
        """Tokenise sentence by sentence: the tokens themselves are never held all at once."""
        vocabulary: dict[str, int] = {}
        word = array("i")
        start = np.zeros(len(sentences) + 1, dtype=np.int64)
        for place, sentence in enumerate(sentences):
            tokens = tokenizer(sentence)
            if len(tokens) > LONGEST:
                raise InputError(
                    f"sentence {place} has {len(tokens):,} tokens; more than {LONGEST:,} is no caption (is a whole "
                    f"document among them? it begins {sentence[:40]!r})"
                )
            try:
                word.extend([vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
            except TypeError:
                raise InputError(
                    f"the tokenizer {callable_name(tokenizer)} must return a list of strings, not {tokens!r:.80}"
                ) from None
            start[place + 1] = len(word)
        return cls(vocabulary, start, np.frombuffer(word, dtype=np.int32) if word else np.zeros(0, dtype=np.int32))

    @property
    def length(self) -> npt.NDArray[np.int64]:
        """Number of tokens of each sentence."""
        return np.diff(self.start)
