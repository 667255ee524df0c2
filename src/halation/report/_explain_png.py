"""An explanation as a picture."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any, NamedTuple

import numpy as np

from halation._files import atomic_path
from halation._web import figures, percent, plain
from halation.report._explain_heat import AGAINST, FOR
from halation.report._explain_shown import Panel, Shades, panels, shades, strongest, summands
from halation.report._explain_typeset import Ruler
from halation.report._explanation import Explanation

__all__ = ["write_png"]

_INK, _SOFT, _PAPER = "#1d1916", "#6b625a", "#faf7f2"
_LOOK = (176, 122, 20)  # attention over words: ochre, neither of the two signs
_WIDTH, _DPI, _ROW = 11.0, 120, 4  # inches, pixels an inch, pictures in a row
_TITLE, _WORD, _UNDER, _SMALL = 16, 12.5, 10.5, 9.5  # points
_LEFT, _RIGHT = 0.035, 0.965  # what is drawn stays between them: shares of the width
_FLOW, _VALUE, _BESIDE = 0.225, 0.505, 0.6  # where words, values and what is beside the score begin
_GAP = 0.0135  # between words


class Laid(NamedTuple):
    """Everything that is written, in lines that fit: what is how high is known before anything is drawn."""

    title: list[str]
    under: list[str]
    flows: list[list[list[int]]]  # of each row of words its lines, of each line its words' places
    facts: list[tuple[list[str], str]]
    notes: list[str]


def write_png(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Pictures above, words in the middle, the parts of the score below, and what one should know."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+")  # signs the font lacks are drawn as boxes
        figure = draw(explanation)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="png", facecolor=_PAPER)


def draw(explanation: Explanation) -> Any:
    """The figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ruler, shown, rows = Ruler(_WIDTH, _DPI), panels(explanation), shades(explanation)
    laid = _lay(explanation, rows, ruler)
    columns = min(_ROW, max(3, len(shown)))
    bands = -(-len(shown) // columns)
    heights = [0.24 + 0.33 * len(laid.title) + 0.21 * len(laid.under)]
    heights += [(_WIDTH - 0.8) / columns * 0.98 + 0.3] * bands
    heights += [0.12 + 0.36 * len(lines) for lines in laid.flows]
    heights.append(0.75 + max(0.3 * len(summands(explanation)), sum(_tall(name) for name, _ in laid.facts)))
    heights.append(0.1 + 0.19 * len(laid.notes) if laid.notes else 0.0)
    total = sum(heights)
    figure = Figure(figsize=(_WIDTH, total), dpi=_DPI, facecolor=_PAPER)
    FigureCanvasAgg(figure)
    tops = [1 - sum(heights[:n]) / total for n in range(len(heights) + 1)]
    _title(figure, laid, total)
    for band in range(bands):
        part = shown[band * columns : (band + 1) * columns]
        _pictures(figure, part, columns, tops[1 + band], tops[2 + band], total, ruler)
    for place, row in enumerate(rows):
        _flow(figure, explanation, row, laid.flows[place], tops[1 + bands + place], total, ruler)
    _numbers(figure, explanation, laid.facts, tops[-3], total, ruler)
    for place, line in enumerate(laid.notes):
        _say(figure, _LEFT, tops[-2] - 0.19 * place / total, line, size=_SMALL, color=_SOFT)
    return figure


def _lay(e: Explanation, rows: list[Shades], ruler: Ruler) -> Laid:
    chance = "" if e.probability is None else f"  ·  {percent(e.probability)} likely to match"
    under = f"{e.name}  ·  score {plain(e.score, 3)} ({e.similarity}){chance}"
    facts = []
    for name, said in _facts(e):
        room = _RIGHT - _BESIDE - ruler.width(said, _SMALL + 0.5) - 0.02
        facts.append((ruler.wrapped(name, room, _SMALL + 0.5, most=3), said))
    return Laid(
        ruler.wrapped(f"“{e.text}”", _RIGHT - _LEFT, _TITLE, most=3, weight="bold"),
        ruler.wrapped(under, _RIGHT - _LEFT, _UNDER, most=2),
        [_broken(e, ruler)] * len(rows),
        facts,
        [line for note in e.remarks for line in ruler.wrapped(note, _RIGHT - _LEFT, _SMALL)],
    )


def _broken(e: Explanation, ruler: Ruler) -> list[list[int]]:
    """The places of the words, in lines that fit."""
    lines, x = [list[int]()], _FLOW
    for place in range(len(e.words)):
        wide = ruler.width(*_word(e, place, ruler))
        if lines[-1] and x + wide > _RIGHT:
            lines.append([])
            x = _FLOW
        lines[-1].append(place)
        x += wide + _GAP
    return lines


def _word(e: Explanation, place: int, ruler: Ruler) -> tuple[str, float, str, str]:
    """A word, shortened if no line has room for it; its size, weight and style."""
    style = "normal" if e.known[place] else "italic"
    return ruler.shortened(e.words[place], _RIGHT - _FLOW, _WORD, style=style), _WORD, "normal", style


def _title(figure: Any, laid: Laid, total: float) -> None:
    for place, line in enumerate(laid.title):
        _say(figure, _LEFT, 1 - (0.16 + 0.33 * place) / total, line, size=_TITLE, weight="bold")
    for place, line in enumerate(laid.under):
        y = 1 - (0.17 + 0.33 * len(laid.title) + 0.21 * place) / total
        _say(figure, _LEFT, y, line, size=_UNDER, color=_SOFT)


def _pictures(
    figure: Any, shown: list[Panel], columns: int, top: float, bottom: float, total: float, ruler: Ruler
) -> None:
    gap = 0.018
    width = (_RIGHT - _LEFT - (columns - 1) * gap) / columns
    for place, panel in enumerate(shown):
        x = _LEFT + place * (width + gap)
        axes = figure.add_axes((x, bottom + 0.05 / total, width, top - bottom - 0.37 / total))
        axes.imshow(np.asarray(panel.image), interpolation="bilinear")
        axes.set_anchor("NW")
        axes.set_axis_off()
        said = ruler.shortened(panel.title, width, _SMALL)
        _say(figure, x, top - 0.05 / total, said, size=_SMALL, color=_SOFT)


def _flow(
    figure: Any, e: Explanation, row: Shades, lines: list[list[int]], top: float, total: float, ruler: Ruler
) -> None:
    """One word after the other, each on its shade."""
    for place, said in enumerate(ruler.wrapped(row.title, _FLOW - _LEFT - 0.01, _SMALL, most=2)):
        _say(figure, _LEFT, top - (0.14 + 0.17 * place) / total, said, size=_SMALL, color=_SOFT)
    highest = strongest(row.values)
    for number, line in enumerate(lines):
        x, y = _FLOW, top - (0.1 + 0.36 * number) / total
        for place in line:
            word, size, weight, style = _word(e, place, ruler)
            value = float(row.values[place])
            known = not math.isnan(value)
            colour = (FOR if value > 0 else AGAINST) if row.both_signs else _LOOK
            face = (*(c / 255 for c in colour), 0.72 * abs(value) / highest if known else 0.0)
            ink = _INK if known else _SOFT  # what was not looked at is paler than what does nothing
            said = _say(figure, x, y, word, size=size, style=style, color=ink)
            said.set_bbox({"facecolor": face, "edgecolor": "none", "boxstyle": "round,pad=0.22", "linewidth": 0})
            x += ruler.width(word, size, weight, style) + _GAP


def _numbers(
    figure: Any, e: Explanation, facts: list[tuple[list[str], str]], top: float, total: float, ruler: Ruler
) -> None:
    """What the score is the sum of; beside it what else is known."""
    named, size = summands(e), _SMALL + 0.5
    heights = [top - (0.62 + 0.3 * n) / total for n in range(len(named))]
    if len(named) > 1:
        _bar_chart(figure, [value for _, value, _ in named], heights[-1], total)
    else:
        formula = "\n".join(ruler.wrapped(named[0][2], _VALUE - _FLOW - 0.01, size, most=3))
        _say(figure, _FLOW, heights[0], formula, size=size, color=_SOFT, va="center")
    for x, title in ((_LEFT, "parts of the score"), (_BESIDE, "beside it")):
        _say(figure, x, top - 0.2 / total, title, size=_SMALL, color=_SOFT)
    for (name, value, _), y in zip(named, heights, strict=True):
        bold = "bold" if name == "score" else "normal"
        name = ruler.shortened(name, _FLOW - _LEFT - 0.01, size, weight=bold)
        _say(figure, _LEFT, y, name, size=size, weight=bold, va="center")
        _say(figure, _VALUE, y, plain(value, 3), size=size, weight=bold, va="center")
    below = 0.62
    for lines, said in facts:
        for place, line in enumerate(lines):
            _say(figure, _BESIDE, top - (below + 0.17 * place) / total, line, size=size, va="center")
        _say(figure, _RIGHT, top - below / total, said, size=size, va="center", ha="right")
        below += _tall(lines)


def _tall(lines: list[str]) -> float:
    """Inches of a fact."""
    return 0.13 + 0.17 * len(lines)


def _bar_chart(figure: Any, values: list[float], lowest: float, total: float) -> None:
    """Bars below one another, the last of them the sum."""
    axes = figure.add_axes((_FLOW, lowest - 0.15 / total, 0.27, 0.3 * len(values) / total))
    colours = [tuple(c / 255 for c in (FOR if value > 0 else AGAINST)) for value in values[:-1]]
    axes.barh([-place for place in range(len(values))], values, height=0.6, color=[*colours, _INK])
    axes.set(xlim=(min(0.0, *values) - 1e-9, max(0.0, *values) + 1e-9), ylim=(-len(values) + 0.5, 0.5))
    axes.set(xticks=[], yticks=[])
    axes.axvline(0, color=_SOFT, linewidth=0.8)
    axes.set_frame_on(False)


def _facts(e: Explanation) -> list[tuple[str, str]]:
    chance = ("probability of a match", "not known" if e.probability is None else percent(e.probability))
    joined = [] if e.joined is None else [("joined with the gist", plain(e.joined.score, 3))]
    rest = [(name, figures(value, 3)) for name, value in e.facts.items() if not name.startswith("Σ")]
    return [chance, *joined, *rest]


def _say(figure: Any, x: float, y: float, said: str, *, size: float, color: str = _INK, **how: Any) -> Any:
    # captions hold dollar signs, which matplotlib would take for mathematics
    return figure.text(x, y, said, fontsize=size, color=color, parse_math=False, **{"va": "top", **how})
