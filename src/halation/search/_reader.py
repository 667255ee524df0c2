"""What reads words for a run: its tokenizer, shared by threads, and what it does not know."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from halation.data import Tokens
from halation.encoders import WordsAndSentence
from halation.search._eyes import device_here
from halation.semantics import TOKENIZERS
from halation.training import Trained
from halation.training._validate import to_device

__all__ = ["Reader"]


class Reader:
    """From captions to what a run's text encoder takes. Methods may be called by many threads."""

    def __init__(self, trained: Trained) -> None:
        self._text: Any = trained.model.text.backbone
        if isinstance(self._text, WordsAndSentence):
            self._text.read_only()
        self._lock = threading.Lock()  # tokenizers refuse two callers at a time

    def tokens(self, captions: Sequence[str]) -> Tokens:
        """B captions → numbers (B, L)."""
        with self._lock:
            tokens = self._text.tokenize(list(captions))
        moved: Tokens = to_device(tokens, device_here())
        return moved

    def words(self, text: str) -> list[str] | None:
        """The words of a text, one a token, as the run's vocabulary splits it; None where it reads word pieces."""
        vocabulary = getattr(self._text, "vocabulary", None)
        return None if vocabulary is None else TOKENIZERS[vocabulary.tokenizer](text)

    def unknown_words(self, text: str) -> list[str]:
        """The words of a text the model has no vector for, where words are all it reads."""
        vocabulary = getattr(self._text, "vocabulary", None)
        if vocabulary is None or isinstance(self._text, WordsAndSentence):
            return []  # word pieces, or a sentence encoder beside the words: nothing is unknown
        return [word for word in dict.fromkeys(TOKENIZERS[vocabulary.tokenizer](text)) if word not in vocabulary]

    def reads(self, text: str) -> bool:
        """Whether any word of a text is known to the model."""
        vocabulary = getattr(self._text, "vocabulary", None)
        if vocabulary is None or isinstance(self._text, WordsAndSentence):
            return True
        tokens = vocabulary.encode([text]).ids
        return bool((tokens > 1).any())  # 1 stands for every unknown word
