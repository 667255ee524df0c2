"""The vocabulary: which words a text encoder knows, and their numbers."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from halation._errors import InputError, one_of
from halation._files import read_json, write_text
from halation.data import Tokens
from halation.semantics import TOKENIZERS

__all__ = ["Vocabulary"]

_FORMAT = "halation vocabulary 1"


class Vocabulary:
    """The words a text encoder knows, numbered from 2; 0 is padding, 1 stands for every other word.

    `words` are the known words in the order of their numbers. `len` counts them and the two special numbers: it is the
    number of rows that a table of word vectors needs.

    >>> vocabulary = Vocabulary.build(["two dogs run", "two dogs and two cats"])
    >>> vocabulary.words, len(vocabulary)
    (('two', 'dogs', 'and', 'cats', 'run'), 7)
    >>> vocabulary.encode(["Dogs and a zebra", "cats"]).ids
    tensor([[3, 4, 1],
            [5, 0, 0]])
    """

    PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
    """The numbers of padding, of every unknown word, and of the first known word."""

    def __init__(self, words: Sequence[str], tokenizer: str = "words") -> None:
        self.tokenizer = one_of(tokenizer, TOKENIZERS, "tokenizer")
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(self.words, start=self.FIRST_WORD)}
        if len(self._numbers) < len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise InputError(f"the vocabulary has {twice!r} twice; list every word once")

    @classmethod
    def build(cls, captions: Iterable[str], *, min_count: int = 1, tokenizer: str = "words") -> Vocabulary:
        """The vocabulary of words that occur at least `min_count` times, the most frequent first, ties by alphabet."""
        split = TOKENIZERS[one_of(tokenizer, TOKENIZERS, "tokenizer")]
        counts = Counter(word for caption in captions for word in split(caption))
        kept = [word for word, count in counts.items() if count >= min_count]
        if not kept:
            raise InputError(
                f"no word occurs {min_count} times or more in the captions ({len(counts)} words in all); "
                "lower min_count, or check that the captions are text"
            )
        return cls(sorted(kept, key=lambda word: (-counts[word], word)), tokenizer)

    def split(self, text: str) -> list[str]:
        """The words of a text, known or not, in order."""
        return TOKENIZERS[self.tokenizer](text)

    def encode(self, captions: Sequence[str]) -> Tokens:
        """Captions → numbers (B, L), padded to the longest; a caption without words becomes one unknown word."""
        if isinstance(captions, str):
            raise InputError("captions must be a list of captions, not one string; write [caption]")
        if not captions:
            raise InputError("there are no captions to encode")
        number = self._numbers.get
        rows = [[number(word, self.UNKNOWN) for word in self.split(caption)] or [self.UNKNOWN] for caption in captions]
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(lengths.max()) < lengths[:, None]  # (B, L)
        ids = np.full(mask.shape, self.PADDING, dtype=np.int64)
        ids[mask] = [word for row in rows for word in row]
        return Tokens(torch.from_numpy(ids), torch.from_numpy(mask))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary to a JSON file; a file with half of it is never left behind."""
        content = {"format": _FORMAT, "tokenizer": self.tokenizer, "words": self.words}
        write_text(path, json.dumps(content, ensure_ascii=False, indent=0) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """The vocabulary in a file that `save` wrote."""
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InputError(f'is not a vocabulary of halation (no "format": "{_FORMAT}")', path=path)
        words = content.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise InputError(': "words" must be a list of words; was the file edited?', path=path)
        if set(content) != {"format", "tokenizer", "words"}:
            raise InputError(f'must have "format", "tokenizer" and "words", not {sorted(content)}', path=path)
        try:
            return cls(words, content["tokenizer"])
        except InputError as error:
            raise InputError(f": {error}", path=path) from None

    def __len__(self) -> int:
        return len(self.words) + self.FIRST_WORD

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.words, self.tokenizer) == (other.words, other.tokenizer)

    def __hash__(self) -> int:
        return hash((self.words, self.tokenizer))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.words)} words, tokenizer={self.tokenizer!r})"
