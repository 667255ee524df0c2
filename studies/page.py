"""The parts of every study's page: tables with a title and a note, and paragraphs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from halation import _table

__all__ = ["Table", "grouped", "join", "paragraph", "without_repeats"]

_WIDTH = 118


class Table(NamedTuple):
    """A table under its title, with a note that says how to read it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""

    def text(self) -> str:
        """The table for a terminal."""
        notes = [self.note.replace("\\*", "*")] if self.note else []
        rows = [[value.strip("*") if value.startswith("**") else value for value in row] for row in self.rows]
        return _table.text(self.header, rows, title=self.title, notes=notes)

    def markdown(self, level: int = 2) -> str:
        """The table for a page; the note comes first."""
        body = _table.markdown(self.header, self.rows).rstrip("\n")
        return "\n\n".join(part for part in [f"{'#' * level} {self.title}", paragraph(self.note), body] if part)


def paragraph(text: str) -> str:
    """The text, wrapped to fit an editor."""
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def join(parts: Sequence[str]) -> str:
    """A page of these parts, without the empty ones."""
    return "\n\n".join(part for part in parts if part) + "\n"


def without_repeats(rows: Sequence[Sequence[str]], columns: int = 1) -> list[list[str]]:
    """The rows with their first columns left empty where they repeat the row above.

    >>> without_repeats([["a", "1"], ["a", "2"], ["b", "2"]])
    [['a', '1'], ['', '2'], ['b', '2']]
    """
    shown: list[list[str]] = []
    previous: Sequence[str] = ()
    for row in rows:
        same = next((k for k in range(columns) if list(row[: k + 1]) != list(previous[: k + 1])), columns)
        shown.append(["" if k < same else value for k, value in enumerate(row)])
        previous = row
    return shown


def grouped(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows without their first column, which becomes a row of its own above those that share it.

    >>> grouped([["a", "x", "1"], ["a", "y", "2"], ["b", "x", "3"]])
    [['**a**', ''], ['x', '1'], ['y', '2'], ['**b**', ''], ['x', '3']]
    """
    shown: list[list[str]] = []
    previous = ""
    for group, *row in rows:
        if group != previous:
            shown.append([f"**{group}**", *[""] * (len(row) - 1)])
        shown.append(row)
        previous = group
    return shown
