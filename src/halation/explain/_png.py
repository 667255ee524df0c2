"""An explanation as a picture."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from halation._files import atomic_path
from halation.explain._explanation import Explanation
from halation.explain._heat import AGAINST, FOR
from halation.explain._shown import Panel, Shades, panels, percent, shades, signed, summands

__all__ = ["write_png"]

_INK, _SOFT, _PAPER, _LINE = "#1d1916", "#6b625a", "#faf7f2", "#e2dad0"
_LOOK = (176, 122, 20)  # attention over words: ochre, neither of the two signs
_WIDTH, _ROW = 11.0, 4  # inches, pictures in a row
_WORD, _SMALL = 12.5, 9.5  # points


def write_png(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Pictures above, words in the middle, the parts of the score below."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+")  # signs the font lacks are drawn as boxes
        figure = _figure(explanation)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="png", facecolor=_PAPER)


def _figure(explanation: Explanation) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown, rows = panels(explanation), shades(explanation)
    columns = min(_ROW, max(3, len(shown)))
    bands = -(-len(shown) // columns)
    lines = [_lines(explanation.words)] * len(rows)
    heights = [0.8, *[(_WIDTH - 0.8) / columns * 0.98 + 0.3] * bands, *(0.12 + 0.36 * n for n in lines)]
    heights.append(0.75 + 0.3 * max(len(explanation.parts) + 1, len(_facts(explanation))))
    total = sum(heights)
    figure = Figure(figsize=(_WIDTH, total), dpi=120, facecolor=_PAPER)
    FigureCanvasAgg(figure)
    tops = [1 - sum(heights[:n]) / total for n in range(len(heights) + 1)]
    _title(figure, explanation, tops[0], total)
    for band in range(bands):
        part = shown[band * columns : (band + 1) * columns]
        _pictures(figure, part, columns, tops[1 + band], tops[2 + band], total)
    for place, row in enumerate(rows):
        where = 1 + bands + place
        _flow(figure, explanation, row, tops[where], tops[where + 1], total)
    _bars(figure, explanation, tops[-2], total)
    return figure


def _title(figure: Any, e: Explanation, top: float, total: float) -> None:
    said = e.text if len(e.text) <= 88 else f"{e.text[:87]}…"
    chance = "" if e.probability is None else f"  ·  {percent(e.probability)} likely to match"
    line = f"{e.name}  ·  score {signed(e.score)} ({e.similarity}){chance}"
    _say(figure, 0.035, top - 0.16 / total, f"“{said}”", size=16, weight="bold")
    _say(figure, 0.035, top - 0.5 / total, line, size=10.5, color=_SOFT)


def _pictures(figure: Any, shown: list[Panel], columns: int, top: float, bottom: float, total: float) -> None:
    gap, left = 0.018, 0.035
    width = (1 - 2 * left - (columns - 1) * gap) / columns
    for place, panel in enumerate(shown):
        x = left + place * (width + gap)
        axes = figure.add_axes((x, bottom + 0.05 / total, width, top - bottom - 0.37 / total))
        axes.imshow(np.asarray(panel.image), interpolation="bilinear")
        axes.set_anchor("NW")
        axes.set_axis_off()
        _say(figure, x, top - 0.05 / total, panel.title, size=_SMALL, color=_SOFT)


def _flow(figure: Any, e: Explanation, row: Shades, top: float, bottom: float, total: float) -> None:
    """One word after the other, each on its shade, broken into lines."""
    renderer, pixels = figure.canvas.get_renderer(), figure.get_figwidth() * figure.dpi
    _say(figure, 0.035, top - 0.14 / total, row.title, size=_SMALL, color=_SOFT)
    highest = max(float(np.abs(row.values).max(initial=0)), 1e-12)
    left = x = 0.225
    y = top - 0.1 / total
    for word, known, value in zip(e.words, e.known, row.values, strict=True):
        share = float(value) / highest
        colour = (FOR if share > 0 else AGAINST) if row.both_signs else _LOOK
        face = (*(c / 255 for c in colour), 0.72 * abs(share))
        said = _say(figure, x, y, word, size=_WORD, style="normal" if known else "italic")
        wide = said.get_window_extent(renderer).width / pixels
        if x > left and x + wide > 0.965:
            x, y = left, y - 0.36 / total
            said.set_position((x, y))
        said.set_bbox({"facecolor": face, "edgecolor": "none", "boxstyle": "round,pad=0.22", "linewidth": 0})
        x += wide + 0.0135


def _lines(words: tuple[str, ...]) -> int:
    """How many lines the words take, on the safe side."""
    lines, used = 1, 0.0
    for word in words:
        wide = 0.0115 * len(word) + 0.0135
        if used and used + wide > 0.74:
            lines, used = lines + 1, 0.0
        used += wide
    return lines


def _bars(figure: Any, e: Explanation, top: float, total: float) -> None:
    """What the score is the sum of; beside it what else is known."""
    named = summands(e)
    heights = [top - (0.62 + 0.3 * n) / total for n in range(max(len(named), len(_facts(e))))]
    if len(named) > 1:
        _bar_chart(figure, [value for _, value, _ in named], heights[len(named) - 1], total)
    else:
        _say(figure, 0.225, heights[0], named[0][2], size=_SMALL + 0.5, color=_SOFT, va="center")
    for x, title in ((0.035, "parts of the score"), (0.6, "beside it")):
        _say(figure, x, heights[0] + 0.42 / total, title, size=_SMALL, color=_SOFT)
    for (name, value, _), y in zip(named, heights, strict=False):
        bold = "bold" if name == "score" else "normal"
        _say(figure, 0.035, y, name, size=_SMALL + 0.5, weight=bold, va="center")
        _say(figure, 0.505, y, signed(value), size=_SMALL + 0.5, weight=bold, va="center")
    for (name, said), y in zip(_facts(e), heights, strict=False):
        _say(figure, 0.6, y, name, size=_SMALL + 0.5, va="center")
        _say(figure, 0.965, y, said, size=_SMALL + 0.5, va="center", ha="right")


def _bar_chart(figure: Any, values: list[float], lowest: float, total: float) -> None:
    """Bars below one another, the last of them the sum."""
    axes = figure.add_axes((0.225, lowest - 0.15 / total, 0.27, 0.3 * len(values) / total))
    colours = [tuple(c / 255 for c in (FOR if value > 0 else AGAINST)) for value in values[:-1]]
    axes.barh([-place for place in range(len(values))], values, height=0.6, color=[*colours, _INK])
    axes.set(xlim=(min(0.0, *values) - 1e-9, max(0.0, *values) + 1e-9), ylim=(-len(values) + 0.5, 0.5))
    axes.set(xticks=[], yticks=[])
    axes.axvline(0, color=_SOFT, linewidth=0.8)
    axes.set_frame_on(False)


def _facts(e: Explanation) -> list[tuple[str, str]]:
    chance = ("probability of a match", "not known" if e.probability is None else percent(e.probability))
    joined = [] if e.joined is None else [("joined with the gist", signed(e.joined.score))]
    rest = [(name.partition(",")[0], f"{value:.3g}") for name, value in e.facts.items() if not name.startswith("Σ")]
    return [chance, *joined, *rest]


def _say(figure: Any, x: float, y: float, said: str, *, size: float, color: str = _INK, **how: Any) -> Any:
    # captions hold dollar signs, which matplotlib would take for mathematics
    return figure.text(x, y, said, fontsize=size, color=color, parse_math=False, **{"va": "top", **how})
