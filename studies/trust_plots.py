"""The plots of the trust study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from halation._storage import publish_file
from studies.trust_measure import Measured

__all__ = ["abstention_plot", "sets_plot"]

_COLOURS = ("#2f6f9f", "#b04a4a", "#5a8f4e", "#8a6bb0")


def abstention_plot(measured: Sequence[Measured], path: Path) -> None:
    """Plot the precision of "something matches" against the share of queries answered."""
    figure, row = _figure(len(measured), 3.9)
    for axes, one in zip(row, measured, strict=True):
        for colour, (name, evidence, has_match) in zip(_COLOURS, one.curves, strict=False):
            right = np.cumsum(has_match[np.argsort(-evidence, kind="stable")])
            count = np.arange(1, len(right) + 1)
            keep = np.unique(np.linspace(len(right) // 200, len(right) - 1, 400).astype(int))
            axes.plot(100 * (count / len(right))[keep], 100 * (right / count)[keep], color=colour, label=name)
        axes.axhline(90, color="0.5", linewidth=1, linestyle="--")
        axes.set(
            title=one.title, xlabel="queries answered, %", ylim=(48, 112), xlim=(0, 100), yticks=range(50, 101, 10)
        )
        axes.set_ylabel("of them with a match, %" if axes is row[0] else "")
        axes.legend(
            framealpha=0.95, edgecolor="1", fontsize=7.5, loc="upper right", title="taken out; match", title_fontsize=8
        )
    _save(figure, path)


def sets_plot(measured: Sequence[Measured], path: Path) -> None:
    """Plot coverage and size of the conformal sets by fifth of the query's uncertainty."""
    shown = [one for one in measured if any(row["fifths"] for row in one.sets)]
    figure, grid = _figure(len(shown), 5.4, rows=2)
    for column, one in enumerate(shown):
        for colour, row in zip(_COLOURS, one.sets, strict=False):
            fifths, level = np.array(row["fifths"]), 100 * row["level"]
            positions = np.arange(1, len(fifths) + 1)
            grid[0][column].plot(positions, fifths[:, 1], "o-", color=colour, label=f"{level:.0f} %")
            grid[1][column].plot(positions, 100 * fifths[:, 0], "o-", color=colour)
            grid[1][column].axhline(level, color=colour, linewidth=1, linestyle="--")
        grid[0][column].set(title=one.title, ylim=(0, None), ylabel="items in the set" if not column else None)
        grid[1][column].set(xlabel="fifth of uncertainty, 1 = most certain", ylim=(80, 100))
        grid[1][column].set_ylabel("coverage, %" if not column else "")
        grid[0][column].legend(frameon=False, fontsize=8, loc="best")
    _save(figure, path)


def _figure(columns: int, height: float, rows: int = 1):  # type: ignore[no-untyped-def]  # matplotlib's types load it
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.7 * columns, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.grid(alpha=0.25)
    return figure, grid[0] if rows == 1 else grid


def _save(figure, path: Path) -> None:  # type: ignore[no-untyped-def]
    with publish_file(path) as temporary:
        figure.savefig(temporary, format="png")
