"""An explanation as text for a terminal."""

from __future__ import annotations

import math

from halation import _table
from halation._web import figures, percent, plain
from halation.report._explain_shown import shades, strongest, summands
from halation.report._explanation import Explanation

__all__ = ["as_table"]

_BAR = 10


def as_table(explanation: Explanation) -> str:
    """The score and its parts, then a row for every word."""
    return "\n\n".join([_score(explanation), _words(explanation), *_notes(explanation)])


def _score(e: Explanation) -> str:
    chance = "not known" if e.probability is None else percent(e.probability)
    rows = [[name, plain(value, 4), formula] for name, value, formula in summands(e)]
    if e.joined is not None:
        rows += [
            ["  in detail, scaled", plain(e.joined.detail, 4), "0: the median pair, 1: decides alone"],
            ["  gist", plain(e.joined.gist, 4), "what the two are about"],
            [
                "  joined",
                plain(e.joined.score, 4),
                f"their soft maximum, {percent(e.joined.share)} of it the detail's",
            ],
        ]
    rows += [[name, figures(value), ""] for name, value in e.facts.items()]
    rows.append(["probability of a match", chance, e.about_probability])
    wide, across = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{name.ljust(wide)}  {value.rjust(across)}  {what}".rstrip() for name, value, what in rows]
    return "\n".join([f"{e.name}  and  “{e.text}”", "", *lines])


def _words(e: Explanation) -> str:
    columns = shades(e)
    highest = strongest(e.text_influence)
    rows = []
    for place, word in enumerate(e.words):
        influence = float(e.text_influence[place])
        shares = [percent(float(column.values[place])) for column in columns[1:]]
        name = word if e.known[place] else f"{word} (unknown)"
        said = ["–", ""] if math.isnan(influence) else [plain(influence, 4), _bar(influence / highest)]
        rows.append([name, *said, *shares])
    header = ["word", "influence", "against  for".center(2 * _BAR + 1), *(column.title for column in columns[1:])]
    return _table.text(header, rows)


def _bar(share: float) -> str:
    full = "█" * round(_BAR * abs(share))
    return f"{full:>{_BAR}}│{'':{_BAR}}" if share < 0 else f"{'':{_BAR}}│{full:<{_BAR}}"


def _notes(e: Explanation) -> list[str]:
    return ["\n".join(f"note: {note}" for note in e.remarks)] if e.remarks else []
