"""A query as people type it: cleaned, bounded, and with words about what was not understood."""

from __future__ import annotations

from halation._errors import InputError
from halation.search._entries import plain
from halation.search._towers import Towers

__all__ = ["MAX_CHARACTERS", "MAX_WORDS", "read_query"]

MAX_WORDS, MAX_CHARACTERS = 256, 10_000
"""A longer query is cut: no encoder here reads further, and the time to encode must have a bound."""


def read_query(query: str, towers: Towers) -> tuple[str, list[str]]:
    """(what is encoded, notes for the person who asked)."""
    notes: list[str] = []
    text = plain(query).replace("\0", " ")
    words = text.split()
    if not words:
        raise InputError("the query is empty; write what to look for")
    if len(words) > MAX_WORDS:
        notes.append(f"the query has {len(words):,} words; only the first {MAX_WORDS} were read")
    text = " ".join(words[:MAX_WORDS])
    if len(text) > MAX_CHARACTERS:
        notes.append(f"the query has {len(text):,} characters; only the first {MAX_CHARACTERS:,} were read")
        text = text[:MAX_CHARACTERS]
    if not towers.reads(text):
        notes.append("the model knows none of these words, so what was found is no better than chance")
    elif unknown := towers.unknown_words(text):
        some = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
        notes.append(f"the model does not know and left out: {some}")
    return text, notes
