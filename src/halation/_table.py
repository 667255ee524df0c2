"""Rows of strings as plain text, Markdown or LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["cell", "latex", "markdown", "text"]


def cell(value: float, low: float = math.nan, high: float = math.nan, digits: int = 2) -> str:
    """A value with its interval, if it has one.

    >>> cell(77.2, 76.01, 78.33)
    '77.20 [76.01, 78.33]'
    """
    if math.isnan(value):
        return "–"
    interval = "" if math.isnan(low) or math.isnan(high) else f" [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{value:.{digits}f}{interval}"


def text(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", notes: Sequence[str] = ()) -> str:
    """A table for a terminal: the first column is aligned to the left, the others to the right."""
    header, rows = _one_line(header), [_one_line(row) for row in rows]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [
        "  ".join(
            value.ljust(width) if not column else value.rjust(width)
            for column, (value, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]
    rule = "─" * max(map(len, lines))
    return "\n".join(
        [*([title, rule] if title else []), lines[0], rule, *lines[1:], *([rule, *notes] if notes else [])]
    )


def markdown(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", notes: Sequence[str] = ()
) -> str:
    """A table in GitHub's Markdown."""
    cells = [[value.replace("|", r"\|") for value in _one_line(row)] for row in (header, *rows)]
    lines = [" | ".join(row) for row in (cells[0], ["---", *["---:"] * (len(header) - 1)], *cells[1:])]
    table = "\n".join(f"| {line} |" for line in lines)
    return "\n\n".join([*([title] if title else []), table, *(["<br>\n".join(notes)] if notes else [])]) + "\n"


_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "→": r"$\to$",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "ζ": r"$\zeta$",
    "≤": r"$\le$",
    "τ": r"$\tau$",
    "…": r"\dots{}",
    "{": r"\{",
    "}": r"\}",
}


def latex(header: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[str] = ()) -> str:
    """A booktabs tabular; notes become comments above it."""
    body = [" & ".join(_escape(value.strip()) for value in _one_line(row)) + r" \\" for row in [header, *rows]]
    return "\n".join(
        [
            *(f"% {note}" for note in _one_line(notes)),
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _one_line(values: Sequence[str]) -> list[str]:
    """The values without line breaks, which would end a row of a table or a LaTeX comment."""
    return [" ".join(value.splitlines()) for value in values]


def _escape(value: str) -> str:
    return "".join(_LATEX.get(character, character) for character in value.replace("\\", "/"))
