"""From texts to what a model's text encoder takes, and which of their words it knows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from halation.data import Tokens
from halation.encoders._network import current_device
from halation.encoders._text_sentence import WordsAndSentence
from halation.encoders._vocabulary import Vocabulary

__all__ = ["TextReader"]


class TextReader:
    """From texts to what a model's text encoder takes. Several threads may use one reader."""

    def __init__(self, text_backbone: Any) -> None:
        self._text: Any = text_backbone
        self._lock = threading.Lock()  # tokenizers refuse two callers at a time
        self._vocabulary: Any = getattr(text_backbone, "vocabulary", None)

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """B texts → `Tokens` (B, L)."""
        with self._lock:
            if isinstance(self._text, WordsAndSentence):
                self._text.read_only()
            tokens: Tokens = self._text.tokenize(list(texts))
        return tokens.to(current_device())

    def words(self, text: str) -> list[str] | None:
        """The words of a text, one per token, as the vocabulary splits it; None for a model that reads word pieces."""
        return None if self._vocabulary is None else self._vocabulary.split(text)

    def unknown_words(self, text: str) -> list[str]:
        """The words of a text the model has no vector for, where words are all it reads."""
        if self._reads_everything:
            return []
        return [word for word in dict.fromkeys(self._vocabulary.split(text)) if word not in self._vocabulary]

    def knows_any_word(self, text: str) -> bool:
        """Whether the model knows any word of a text."""
        return self._reads_everything or bool((self._vocabulary.encode([text]).ids > Vocabulary.UNKNOWN).any())

    @property
    def _reads_everything(self) -> bool:
        """Word pieces, or a sentence encoder beside the words: nothing is unknown."""
        return self._vocabulary is None or isinstance(self._text, WordsAndSentence)
