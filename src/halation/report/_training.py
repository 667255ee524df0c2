"""What a run wrote while it learnt, as lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from halation.report._facts import Absent, Line, Training
from halation.training import Run

__all__ = ["training_of"]

_POINTS = 240
_NO_LOSS = {"step", "epoch", "gradient"}


def training_of(run: Run, number: int = 0) -> Training | Absent:
    """Losses by step and validation by epoch, each a line; `number` is the run's place in the report."""
    history = run.history()
    if not history:
        return Absent("the run's folder has no metrics.jsonl: nothing was written while it learnt")
    losses = _lines(((row["step"], row) for row in history if "step" in row), _NO_LOSS, number)
    epochs = [row for row in history if "dev" in row]
    validation = _lines(((row["epoch"] + 1, row["dev"]) for row in epochs), set(), number)
    kept = [int(row["epoch"]) + 1 for row in epochs if row.get("selected")]
    return Training(losses, validation, kept[-1] if kept else None)


def _lines(rows: Iterable[tuple[int, Mapping[str, Any]]], without: set[str], run: int) -> tuple[Line, ...]:
    """One line for every name; values that are no numbers (a loss that went to infinity) leave a gap."""
    points: dict[str, list[tuple[float, float]]] = {}
    for x, values in rows:
        for name, value in values.items():
            if name not in without and isinstance(value, (int, float)) and math.isfinite(value):
                points.setdefault(name, []).append((float(x), float(value)))
    thin = {name: _thinned(own) for name, own in points.items()}
    return tuple(Line(name, tuple(x for x, _ in own), tuple(y for _, y in own), run) for name, own in thin.items())


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Every so-manyth point and the last: more is finer than any screen."""
    step = max(1, len(points) // _POINTS)
    return points[:-1:step] + points[-1:]
