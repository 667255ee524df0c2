"""A query as people type it: cleaned, cut to a limit, with notes about unknown words."""

from __future__ import annotations

from typing import NamedTuple

from halation._errors import InputError
from halation.encoders import Model
from halation.search._source import to_utf8

__all__ = ["MAX_CHARACTERS", "MAX_WORDS", "Query", "read_query"]

MAX_WORDS, MAX_CHARACTERS = 256, 10_000
"""A longer query is cut: no encoder here reads further, and the time to encode must have a bound."""


class Query(NamedTuple):
    """The text to encode, notes for the user, and whether the model knows any of the words."""

    text: str
    notes: list[str]
    understood: bool = True


def read_query(query: str, model: Model) -> Query:
    """Clean a query and note what the model cannot read of it; an InputError if it is empty."""
    notes: list[str] = []
    text = to_utf8(query).replace("\0", " ")
    words = text.split()
    if not words:
        raise InputError("the query is empty", remedy="write what to look for")
    if len(words) > MAX_WORDS:
        notes.append(f"the query has {len(words):,} words; only the first {MAX_WORDS} were read")
    text = " ".join(words[:MAX_WORDS])
    if len(text) > MAX_CHARACTERS:
        notes.append(f"the query has {len(text):,} characters; only the first {MAX_CHARACTERS:,} were read")
        text = text[:MAX_CHARACTERS]
    if not model.texts.knows_any_word(text):
        return Query(text, [*notes, "the model knows none of these words; the hits are no better than chance"], False)
    if unknown := model.texts.unknown_words(text):
        shown = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
        notes.append(f"words the model does not know: {shown}")
    return Query(text, notes)
