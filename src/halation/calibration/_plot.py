"""The reliability plot: what was said against what was so."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from halation._arrays import BoolArray, FloatArray
from halation._storage import publish_file
from halation.calibration._quality import ece, reliability

__all__ = ["Panel", "reliability_plot"]

Panel = tuple[str, Sequence[tuple[str, FloatArray, BoolArray]]]
"""A title, and (name, probabilities, matches) of each line."""

_COLOURS = ("#b04a4a", "#2f6f9f", "#5a8f4e", "#8a6bb0")


def reliability_plot(panels: Sequence[Panel], path: str | os.PathLike[str], bins: int = 15) -> None:
    """Write a PNG: a panel for each, bins of equal mass; on the diagonal is calibrated. Below: where probabilities lie.

    Axes end where the probabilities of the panel end, since over candidates most are small.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(panels), 5.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, len(panels), squeeze=False, height_ratios=[4, 1])
    for column, (title, lines) in enumerate(panels):
        axes, below = grid[0, column], grid[1, column]
        seen = [(name, reliability(p, y, bins), ece(p, y, bins), p) for name, p, y in lines]
        end = min(1.0, 1.08 * max(float(max(bin_.said.max(), bin_.was.max())) for _, bin_, _, _ in seen))
        axes.plot([0, end], [0, end], color="0.6", linewidth=1, linestyle="--")
        edges = np.linspace(0, end, 31)
        for colour, (name, bin_, error, p) in zip(_COLOURS, seen, strict=False):
            axes.plot(bin_.said, bin_.was, "o-", color=colour, markersize=4, label=f"{name}, ECE {error:.3f}")
            share, _ = np.histogram(np.minimum(p, end), edges)
            below.stairs(share / len(p), edges, color=colour, linewidth=1.4)
        axes.set(title=title, xlim=(0, end), ylim=(0, end), ylabel="share that matched" if not column else None)
        axes.legend(frameon=False, loc="upper left", fontsize=9)
        below.set(xlim=(0, end), xlabel="probability said", yscale="log")
        below.set_ylabel("candidates" if not column else "")
        for part in (axes, below):
            part.grid(alpha=0.25)
    with publish_file(path) as temporary:
        figure.savefig(temporary, format="png")
