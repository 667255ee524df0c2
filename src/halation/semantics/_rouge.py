"""ROUGE-L: the share of a caption that is also in a reference, in the same order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel, over_rows
from halation.semantics._lcs import Positions, Tile, add_positions, clear_positions, lcs, lcs_of_tile
from halation.semantics._scorer import Float32
from halation.semantics._texts import Indices, Texts
from halation.semantics._tokens import Tokens, positions_of, starts

__all__ = ["Rouge"]

_BETA2 = 1.2**2
_WIDTHS = (16, 32, 64)  # bits of a lane; captions of more words go one by one
_LANES = 4096  # captions side by side: their masks stay in the second-level cache


class _Sentences(NamedTuple):
    """The sentences of a corpus as word numbers, and the reference sets they form, as a kernel walks them."""

    set_start: Indices  # (sets + 1,)
    set_item: Indices  # (references,) sentences
    start: Indices  # (sentences + 1,)
    word: npt.NDArray[np.int32]  # (all tokens,)


class Rouge:
    """ROUGE-L as pycocoevalcap computes it (Lin, ACL workshop 2004): the LCS gives precision P and recall R.

        (1 + β²) P R / (R + β² P), β = 1.2, P and R maximised over the references independently; 0 if either is 0

    An empty sentence counts as one empty word, as it does there.
    """

    def __init__(self, texts: Texts, tokens: Tokens) -> None:
        self.texts = texts
        self.vocabulary = len(tokens.vocabulary) + 1
        self.sentences = _Sentences(texts.set_start, texts.set_item, *_with_empty_words(tokens))
        self._whole: _Columns | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_whole": None}  # rebuilt on first use

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        columns = self._of_all_captions() if captions is None else _Columns(self, captions)
        over_rows(len(images), lambda begin, end: columns.score(images[begin:end], out[begin:end]))

    def to_own_image(self, captions: Indices) -> Float32:
        out = np.empty(len(captions), dtype=np.float32)
        _pairs(self.texts.reduced_sets(captions), self.sentences, self.vocabulary, out)
        return out

    def _of_all_captions(self) -> _Columns:
        if self._whole is None:
            self._whole = _Columns(self, np.arange(self.texts.n_captions))
        return self._whole


class _Columns:
    """Captions sorted into tiles by their length, and the few that are too long for a lane."""

    def __init__(self, rouge: Rouge, captions: Indices) -> None:
        self.captions = captions
        self.sentences, self.vocabulary = rouge.sentences, rouge.vocabulary
        start, word = rouge.sentences.start, rouge.sentences.word
        length = start[captions + 1] - start[captions]  # (columns,)
        self.tiles: list[tuple[Indices, npt.NDArray[np.float64], Tile]] = []
        shortest = 0
        for bits in _WIDTHS:
            fitting = np.flatnonzero((length > shortest) & (length <= bits))
            for columns in np.split(fitting, range(_LANES, len(fitting), _LANES)):
                if len(columns):
                    begin, positions = positions_of(start, captions[columns])
                    tile = Tile.of(begin, word[positions], rouge.vocabulary, bits)
                    self.tiles.append((columns, length[columns].astype(np.float64), tile))
            shortest = bits
        self.long = np.flatnonzero(length > shortest)

    def score(self, images: Indices, out: Float32) -> None:
        for columns, length, tile in self.tiles:
            _rows(images, self.sentences, columns, length, tile, out)
        if len(self.long):
            _long(images, self.sentences, self.long, self.captions, self.vocabulary, out)


def _with_empty_words(tokens: Tokens) -> tuple[Indices, npt.NDArray[np.int32]]:
    """(start, word), in which a sentence without words has one: the empty word, numbered after all others."""
    start = starts(np.maximum(tokens.length, 1))
    word = np.full(start[-1], len(tokens.vocabulary), dtype=np.int32)
    word[np.arange(len(tokens.word)) + np.repeat((start - tokens.start)[:-1], tokens.length)] = tokens.word
    return start, word


@kernel
def _f(precision: float, recall: float) -> float:
    if precision == 0.0 or recall == 0.0:
        return 0.0
    return (1 + _BETA2) * precision * recall / (recall + _BETA2 * precision)


@kernel
def _rows(sets: Any, sentences: Any, columns: Any, length: Any, tile: Any, out: Any) -> None:
    set_start, set_item, start, word = sentences
    lanes = len(columns)
    v, common = np.empty(lanes, dtype=tile.mask.dtype), np.empty(lanes, dtype=tile.mask.dtype)
    most, recall = np.empty(lanes, dtype=tile.mask.dtype), np.empty(lanes)
    for i in range(len(sets)):
        most[:] = 0
        recall[:] = 0.0
        for s in set_item[set_start[sets[i]] : set_start[sets[i] + 1]]:
            lcs_of_tile(word[start[s] : start[s + 1]], tile, v, common)
            words = float(start[s + 1] - start[s])
            for k in range(lanes):
                most[k] = max(most[k], common[k])
            for k in range(lanes):
                recall[k] = max(recall[k], float(common[k]) / words)
        for k in range(lanes):
            out[i, columns[k]] = _f(most[k] / length[k], recall[k])


@kernel
def _against(words: int, positions: Any, parts: int, items: Any, sentences: Any) -> float:
    """ROUGE-L of the sentence in `positions`, which has `words` words in `parts`, against a set of sentences."""
    precision, recall = 0.0, 0.0
    for s in items:
        reference = sentences.word[sentences.start[s] : sentences.start[s + 1]]
        common = lcs(reference, positions, parts)
        precision = max(precision, common / float(words))
        recall = max(recall, common / float(len(reference)))
    return _f(precision, recall)


@kernel
def _room(captions: Any, sentences: Any, vocabulary: int) -> Any:
    """Positions with room for any of the captions: a row for each different word, a bit for each position."""
    seen_by = np.full(vocabulary, -1, dtype=np.int32)
    longest, most = 1, 1
    for k in range(len(captions)):
        words = sentences.word[sentences.start[captions[k]] : sentences.start[captions[k] + 1]]
        different = 0
        for w in words:
            different += seen_by[w] != k
            seen_by[w] = k
        longest, most = max(longest, len(words)), max(most, different)
    parts = (longest + 63) >> 6
    masks = np.zeros((most + 1, parts), dtype=np.uint64)
    return Positions(np.zeros(vocabulary, dtype=np.int32), masks, np.empty(parts, dtype=np.uint64))


@kernel
def _long(sets: Any, sentences: Any, columns: Any, captions: Any, vocabulary: int, out: Any) -> None:
    set_start, set_item, start, word = sentences
    positions = _room(captions[columns], sentences, vocabulary)
    for column in columns:
        words = word[start[captions[column]] : start[captions[column] + 1]]
        parts = add_positions(words, positions)
        for i in range(len(sets)):
            items = set_item[set_start[sets[i]] : set_start[sets[i] + 1]]
            out[i, column] = _against(len(words), positions, parts, items, sentences)
        clear_positions(words, positions)


@kernel
def _pairs(sets: Any, sentences: Any, vocabulary: int, out: Any) -> None:
    positions = _room(sets.caption, sentences, vocabulary)
    for k in range(len(sets.caption)):
        words = sentences.word[sentences.start[sets.caption[k]] : sentences.start[sets.caption[k] + 1]]
        parts = add_positions(words, positions)
        items = sets.item[sets.start[k] : sets.start[k + 1]]
        out[k] = _against(len(words), positions, parts, items, sentences)
        clear_positions(words, positions)
