"""The mean of several metrics, matrix by matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halation.semantics._scorer import Float32, Scorer
from halation.semantics._texts import Indices

__all__ = ["Mean"]


class Mean:
    """The mean of the parts' matrices, each on 0 … 1 (Li et al., NeurIPS 2022: `tfidf`, `bleu4`, `rouge-l`)."""

    def __init__(self, parts: Sequence[Scorer]) -> None:
        self.parts = parts

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        self.parts[0].block(images, captions, out)
        more = np.empty_like(out)
        for part in self.parts[1:]:
            part.block(images, captions, more)
            out += more
        out /= np.float32(len(self.parts))

    def own(self, captions: Indices) -> Float32:
        total = self.parts[0].own(captions)
        for part in self.parts[1:]:
            total += part.own(captions)
        total /= np.float32(len(self.parts))
        return total
