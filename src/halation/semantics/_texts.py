"""Captions, and for every image the set of reference sentences to score them against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from halation._arrays import Array, as_indices
from halation._errors import InputError
from halation.semantics._grams import Grams
from halation.semantics._tokenizers import Tokenizer
from halation.semantics._tokens import Tokens, positions_of, starts

__all__ = ["Indices", "ReducedSets", "Texts"]

Indices = npt.NDArray[np.int64]


class ReducedSets(NamedTuple):
    """Captions and a reference set for each: that of caption[k] is the sentences `item[start[k] : start[k + 1]]`."""

    caption: Indices  # (k,)
    start: Indices  # (k + 1,)
    item: Indices  # (references,)


class Texts:
    """Captions and reference sets as one list of sentences; tokens are computed once and kept.

    Sentence k < n_captions is caption k. The references of image i are the sentences
    `set_item[set_start[i] : set_start[i + 1]]`. `own_reference[k]` is the sentence that is caption k itself among the
    references of its image (−1: not among them); leave-one-out leaves it out.
    """

    def __init__(
        self, captions: Sequence[str], image_of: Array | None, references: Sequence[Sequence[str]] | None = None
    ) -> None:
        self.sentences: list[str] = _strings(captions, "captions")
        self.n_captions = len(self.sentences)
        self.image_of: Indices | None = None
        if image_of is not None:
            self.image_of = as_indices(image_of, None, "image_of")
            if len(self.image_of) != self.n_captions:
                raise InputError(f"image_of has {len(self.image_of)} entries but there are {self.n_captions} captions")
        if references is None:
            self._group_captions()
        else:
            self._add_references(references)
        self.n_images = len(self.set_start) - 1
        self._tokens: dict[Tokenizer, Tokens] = {}
        self._grams: dict[tuple[Tokenizer, int], Grams] = {}

    def tokens(self, tokenizer: Tokenizer) -> Tokens:
        """The sentences as word numbers, computed on the first call."""
        if tokenizer not in self._tokens:
            self._tokens[tokenizer] = Tokens.of(self.sentences, tokenizer)
        return self._tokens[tokenizer]

    def grams(self, tokenizer: Tokenizer, orders: int) -> Grams:
        """The sentences as counted n-grams, n = 1 … orders, computed on the first call."""
        if (tokenizer, orders) not in self._grams:
            self._grams[tokenizer, orders] = Grams.of(self.tokens(tokenizer), orders)
        return self._grams[tokenizer, orders]

    def reduced_sets(self, captions: Indices) -> ReducedSets:
        """For each of the captions, the references of its image without the caption itself."""
        if self.image_of is None:
            raise InputError("leave_one_out needs image_of: which image does each caption belong to?")
        images = self.image_of[captions]
        start, positions = positions_of(self.set_start, images)
        item = self.set_item[positions]
        kept = item != np.repeat(self.own_reference[captions], np.diff(start))
        before = np.concatenate([[0], np.cumsum(kept)])
        return ReducedSets(captions, before[start], item[kept])

    def _group_captions(self) -> None:
        if self.image_of is None:
            raise InputError("image_of is missing: which image does each caption belong to? (or pass references)")
        if self.image_of.max() >= self.n_captions:  # before anything as long as the largest is made
            caption = int(np.argmax(self.image_of))
            raise InputError(
                f"image_of[{caption}] is {self.image_of[caption]} but there are {self.n_captions} captions: image_of "
                "holds indices 0 … n_images − 1, and every image has a caption",
                remedy="number ids with numpy.unique(ids, return_inverse=True)[1], or pass references",
            )
        sizes = np.bincount(self.image_of)
        if (sizes == 0).any():
            raise InputError(
                f"image {int(np.argmin(sizes))} has no captions ({int((sizes == 0).sum())} such images below "
                f"{len(sizes)})",
                remedy="number the images that have captions 0, 1, 2, … or pass references",
            )
        self.set_start = starts(sizes)
        self.set_item = np.argsort(self.image_of, kind="stable").astype(np.int64)
        self.own_reference = np.arange(self.n_captions, dtype=np.int64)

    def _add_references(self, references: Sequence[Sequence[str]]) -> None:
        sets = [_strings(group, f"references[{image}]") for image, group in enumerate(references)]
        if self.image_of is not None and len(self.image_of) and self.image_of.max() >= len(sets):
            caption = int(np.argmax(self.image_of))
            raise InputError(
                f"image_of[{caption}] is {self.image_of[caption]} but there are references for {len(sets)} images",
                remedy="image_of holds indices into references",
            )
        self.set_start = starts(np.array([len(group) for group in sets], dtype=np.int64))
        self.set_item = self.n_captions + np.arange(self.set_start[-1], dtype=np.int64)
        self.own_reference = np.full(self.n_captions, -1, dtype=np.int64)
        for caption, image in enumerate([] if self.image_of is None else self.image_of.tolist()):
            if self.sentences[caption] in sets[image]:
                number = sets[image].index(self.sentences[caption])
                self.own_reference[caption] = self.n_captions + self.set_start[image] + number
        for group in sets:
            self.sentences += group


def _strings(texts: Sequence[str], name: str) -> list[str]:
    if isinstance(texts, str):
        raise InputError(f"{name} is a single string", remedy="give a list of strings")
    strings = list(texts)
    if not strings:
        raise InputError(f"{name} is empty; at least one caption is needed")
    for number, text in enumerate(strings):
        if not isinstance(text, str):
            raise InputError(f"{name}[{number}] is {type(text).__name__}, not a string")
    return strings
