"""ROUGE-L: how much of a caption is, in the same order, in a reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel, over_rows
from halation.semantics._lcs import Tile, add_positions, clear_positions, lcs, lcs_of_tile
from halation.semantics._scorer import Float32
from halation.semantics._texts import Indices, Texts
from halation.semantics._tokens import Tokens, positions_of, starts

__all__ = ["Rouge"]

_BETA2 = 1.2**2
_WIDTHS = (16, 32, 64)  # bits of a lane; captions of more words go one by one
_LANES = 4096  # captions side by side: their masks stay in the second-level cache


class Rouge:
    """ROUGE-L as pycocoevalcap computes it (Lin, ACL workshop 2004): the LCS gives precision P and recall R.

        (1 + β²) P R / (R + β² P), β = 1.2, P and R maximised over the references independently; 0 if either is 0

    An empty sentence is one empty word, as there.
    """

    def __init__(self, texts: Texts, tokens: Tokens) -> None:
        self.texts = texts
        self.vocabulary = len(tokens.vocabulary) + 1
        self.start, self.word = _with_empty_words(tokens)
        self._whole: _Columns | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_whole": None}  # rebuilt on first use

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        columns = self._of_all_captions() if captions is None else _Columns(self, captions)
        over_rows(len(images), lambda begin, end: columns.score(images[begin:end], out[begin:end]))

    def to_own_image(self, captions: Indices) -> Float32:
        begin, item = self.texts.reduced_sets(captions)
        out = np.empty(len(captions), dtype=np.float32)
        _pairs(captions, begin, item, self.start, self.word, self.vocabulary, out)
        return out

    def _of_all_captions(self) -> _Columns:
        if self._whole is None:
            self._whole = _Columns(self, np.arange(self.texts.n_captions))
        return self._whole


class _Columns:
    """Captions sorted into tiles by their length, and the few that are too long for a lane."""

    def __init__(self, rouge: Rouge, captions: Indices) -> None:
        self.rouge = rouge
        self.captions = captions
        length = rouge.start[captions + 1] - rouge.start[captions]  # (columns,)
        self.tiles: list[tuple[Indices, npt.NDArray[np.float64], Tile]] = []
        shortest = 0
        for bits in _WIDTHS:
            fitting = np.flatnonzero((length > shortest) & (length <= bits))
            for columns in np.split(fitting, range(_LANES, len(fitting), _LANES)):
                if len(columns):
                    begin, positions = positions_of(rouge.start, captions[columns])
                    tile = Tile.of(begin, rouge.word[positions], rouge.vocabulary, bits)
                    self.tiles.append((columns, length[columns].astype(np.float64), tile))
            shortest = bits
        self.long = np.flatnonzero(length > shortest)

    def score(self, images: Indices, out: Float32) -> None:
        rouge, texts = self.rouge, self.rouge.texts
        for columns, length, tile in self.tiles:
            _rows(images, texts.set_start, texts.set_item, rouge.start, rouge.word, columns, length, tile, out)
        if len(self.long):
            _long(
                images, texts.set_start, texts.set_item, rouge.start, rouge.word, self.long, self.captions,
                rouge.vocabulary, out,
            )  # fmt: skip


def _with_empty_words(tokens: Tokens) -> tuple[Indices, npt.NDArray[np.int32]]:
    """(start, word) where a sentence without words has one, the empty one, numbered after all others."""
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
def _rows(
    sets: Any, set_start: Any, set_item: Any, start: Any, word: Any, columns: Any, length: Any, tile: Any, out: Any
) -> None:
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
def _against(words: int, row: Any, masks: Any, parts: int, items: Any, start: Any, word: Any, v: Any) -> float:
    """ROUGE-L of the sentence in `masks`, which has `words` words, against a set of sentences."""
    precision, recall = 0.0, 0.0
    for s in items:
        common = lcs(word[start[s] : start[s + 1]], row, masks, parts, v)
        precision = max(precision, common / float(words))
        recall = max(recall, common / float(start[s + 1] - start[s]))
    return _f(precision, recall)


@kernel
def _scratch(captions: Any, start: Any, word: Any, vocabulary: int) -> Any:
    """(row, masks, scratch) for any of the captions: a row for each different word, a bit for each position."""
    seen_by = np.full(vocabulary, -1, dtype=np.int32)
    longest, most = 1, 1
    for k in range(len(captions)):
        begin, end = start[captions[k]], start[captions[k] + 1]
        different = 0
        for w in word[begin:end]:
            different += seen_by[w] != k
            seen_by[w] = k
        longest, most = max(longest, end - begin), max(most, different)
    parts = (longest + 63) >> 6
    masks = np.zeros((most + 1, parts), dtype=np.uint64)
    return np.zeros(vocabulary, dtype=np.int32), masks, np.empty(parts, dtype=np.uint64)


@kernel
def _long(
    sets: Any, set_start: Any, set_item: Any, start: Any, word: Any, columns: Any, captions: Any, vocabulary: int,
    out: Any,
) -> None:  # fmt: skip
    row, masks, v = _scratch(captions[columns], start, word, vocabulary)
    for column in columns:
        words = word[start[captions[column]] : start[captions[column] + 1]]
        parts = add_positions(words, row, masks)
        for i in range(len(sets)):
            items = set_item[set_start[sets[i]] : set_start[sets[i] + 1]]
            out[i, column] = _against(len(words), row, masks, parts, items, start, word, v)
        clear_positions(words, row, masks)


@kernel
def _pairs(captions: Any, begin: Any, item: Any, start: Any, word: Any, vocabulary: int, out: Any) -> None:
    row, masks, v = _scratch(captions, start, word, vocabulary)
    for k in range(len(captions)):
        words = word[start[captions[k]] : start[captions[k] + 1]]
        parts = add_positions(words, row, masks)
        out[k] = _against(len(words), row, masks, parts, item[begin[k] : begin[k + 1]], start, word, v)
        clear_positions(words, row, masks)
