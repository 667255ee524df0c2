"""A sentence encoder that caches: a study encodes the same captions again and again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halation._progress import Progress
from halation.semantics import MiniLM

__all__ = ["RememberingEncoder"]


class RememberingEncoder:
    """MiniLM, loaded on first use. Each distinct sentence is encoded once."""

    name = MiniLM.name

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._encoder: MiniLM | None = None
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def __call__(self, sentences: list[str]) -> npt.NDArray[np.float32]:
        """(n, d) embeddings."""
        if self._encoder is None:
            self._encoder = MiniLM(self._progress)
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self._known]
        if new:
            self._known.update(zip(new, self._encoder(new), strict=True))
        return np.stack([self._known[sentence] for sentence in sentences])
