"""The inverted index: the captions that hold each n-gram, and the n-grams of each image's references.

One idea serves every n-gram metric: walk the n-grams of an image's references, walk the captions that hold each, and
add up in one row. N-grams that are not shared cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel
from halation.semantics._grams import Grams
from halation.semantics._texts import Indices, Texts
from halation.semantics._tokens import positions_of

__all__ = ["InvertedIndex", "Postings", "References", "count_in", "merge", "scratch"]


class References(NamedTuple):
    """Reference sets as a kernel walks them: sets of sentences, sentences of n-grams (rising)."""

    set_start: npt.NDArray[np.int64]  # (sets + 1,)
    set_item: npt.NDArray[np.int64]  # (references,) sentences
    start: npt.NDArray[np.int64]  # (sentences + 1,)
    gram: npt.NDArray[np.int32]  # (entries,)
    slot: npt.NDArray[np.int32]  # (entries,) where the postings have the n-gram's captions
    times: npt.NDArray[np.uint16]  # (entries,) how often the sentence has it


class Postings(NamedTuple):
    """Captions by n-gram: those of slot p are `column[start[p] : start[p + 1]]`."""

    start: npt.NDArray[np.int64]  # (slots + 1,)
    column: npt.NDArray[np.uint32]  # (entries,)
    times: npt.NDArray[np.uint16]  # (entries,) how often the caption has it


@dataclass(frozen=True)
class InvertedIndex:
    """Captions (columns) ready to be scored against reference sets (rows)."""

    captions: Indices  # (columns,) the caption of each column
    sentence: Indices  # the sentence in the corpus of each sentence of `references`
    references: References
    postings: Postings
    gram: npt.NDArray[np.int32]  # (slots,) the n-gram of each slot

    @classmethod
    def whole(cls, texts: Texts, grams: Grams) -> InvertedIndex:
        """All captions against all images: set i is image i, and slots are the n-grams themselves."""
        columns, entries, size = texts.n_captions, grams.start[texts.n_captions], int(grams.base[-1])
        postings = _post(grams.start[: columns + 1], grams.gram[:entries], grams.count[:entries], size)
        references = References(texts.set_start, texts.set_item, grams.start, grams.gram, grams.gram, grams.count)
        sentence = np.arange(len(grams.length))
        return cls(np.arange(columns), sentence, references, Postings(*postings), np.arange(size, dtype=np.int32))

    @classmethod
    def local(cls, texts: Texts, grams: Grams, images: Indices, captions: Indices) -> InvertedIndex:
        """Some captions against some images: set r is images[r]; the cost depends on them and not on the corpus."""
        start, positions = positions_of(grams.start, captions)
        slot, table, gram = _number(grams.gram[positions])
        postings = _post(start, slot, grams.count[positions], len(gram))

        set_start, positions = positions_of(texts.set_start, images)
        sentence = texts.set_item[positions]
        shared = _shared(sentence, grams.counts, table, gram)
        references = References(set_start, np.arange(len(sentence)), *shared)
        return cls(captions, sentence, references, Postings(*postings), gram)


@kernel
def _post(start: Any, slot: Any, count: Any, slots: int) -> Any:
    """Entries by column → entries by slot (a counting sort; columns rise within a slot)."""
    first = np.zeros(slots + 1, dtype=np.int64)
    for p in slot:
        first[p + 1] += 1
    for p in range(slots):
        first[p + 1] += first[p]
    free = first[:-1].copy()
    by_column = np.empty(len(slot), dtype=np.uint32)  # unsigned: no check for negative positions
    by_count = np.empty(len(slot), dtype=np.uint16)
    for column in range(len(start) - 1):
        for e in range(start[column], start[column + 1]):
            at = free[slot[e]]
            free[slot[e]] += 1
            by_column[at] = column
            by_count[at] = count[e]
    return first, by_column, by_count


@kernel
def _home(gram: int, size: int) -> int:
    """The cell where a hash table of `size` cells, a power of two, looks for an n-gram first (Fibonacci hashing)."""
    return ((gram * 2654435769) >> 8) & (size - 1)


@kernel
def _number(grams: Any) -> Any:
    """(slot of each entry, hash table of slots, n-gram of each slot), slots in order of first appearance."""
    size = 16
    while size < 2 * len(grams):
        size *= 2
    table = np.full(size, -1, dtype=np.int32)
    slot = np.empty(len(grams), dtype=np.int32)
    known = np.empty(len(grams), dtype=np.int32)
    used = 0
    for e in range(len(grams)):
        at = _home(grams[e], size)
        while table[at] >= 0 and known[table[at]] != grams[e]:
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at] = used
            known[used] = grams[e]
            used += 1
        slot[e] = table[at]
    return slot, table, known[:used].copy()


@kernel
def _shared(sentences: Any, counts: Any, table: Any, known: Any) -> Any:
    """(start, gram, slot, count) of the sentences' n-grams, only those that have a slot."""
    entries = 0
    for sentence in sentences:
        entries += counts.start[sentence + 1] - counts.start[sentence]
    begin = np.zeros(len(sentences) + 1, dtype=np.int64)
    kept, slot = np.empty(entries, dtype=np.int32), np.empty(entries, dtype=np.int32)
    times = np.empty(entries, dtype=np.uint16)
    used = 0
    for s in range(len(sentences)):
        for e in range(counts.start[sentences[s]], counts.start[sentences[s] + 1]):
            at = _home(counts.gram[e], len(table))
            while table[at] >= 0 and known[table[at]] != counts.gram[e]:
                at = (at + 1) & (len(table) - 1)
            if table[at] >= 0:
                kept[used], slot[used], times[used] = counts.gram[e], table[at], counts.times[e]
                used += 1
        begin[s + 1] = used
    return begin, kept, slot, times


@kernel
def merge(references: Any, row: int, at: Any, slot: Any, gram: Any, count: Any) -> int:
    """Walk the sentences of a set side by side; returns how many different n-grams (u) they hold.

    Writes slot[u], gram[u] and count[u, r], how often reference r of the set has the n-gram; `at` is scratch.
    """
    first, stop = references.set_start[row], references.set_start[row + 1]
    size = stop - first
    for r in range(size):
        at[r] = references.start[references.set_item[first + r]]
    u = 0
    while True:
        least = np.int64(1) << 40
        for r in range(size):
            if at[r] < references.start[references.set_item[first + r] + 1]:
                least = min(least, np.int64(references.gram[at[r]]))
        if least == np.int64(1) << 40:
            return u
        for r in range(size):
            count[u, r] = 0
            if at[r] < references.start[references.set_item[first + r] + 1] and references.gram[at[r]] == least:
                count[u, r] = references.times[at[r]]
                slot[u] = references.slot[at[r]]
                at[r] += 1
        gram[u] = least
        u += 1


@kernel
def count_in(counts: Any, sentence: int, wanted: int) -> int:
    """How often the sentence has the n-gram (binary search)."""
    low, high = counts.start[sentence], counts.start[sentence + 1]
    while low < high:
        middle = (low + high) // 2
        if counts.gram[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < counts.start[sentence + 1] and counts.gram[low] == wanted:
        return int(counts.times[low])
    return 0


@kernel
def scratch(references: Any, rows: Any) -> Any:
    """Room for `merge`: (at, slot, gram, count), enough for each of the rows."""
    most, widest = 1, 1
    for row in rows:
        entries = 0
        for sentence in references.set_item[references.set_start[row] : references.set_start[row + 1]]:
            entries += references.start[sentence + 1] - references.start[sentence]
        most = max(most, entries)
        widest = max(widest, references.set_start[row + 1] - references.set_start[row])
    at = np.empty(widest, dtype=np.int64)
    return at, np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty((most, widest), dtype=np.int64)
