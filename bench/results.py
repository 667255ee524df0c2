"""A row of the benchmark table, and the table as Markdown."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from bench.measuring import machine


@dataclass(frozen=True)
class Row:
    """One measurement; `ratio` = theirs / ours (bigger is better), `bar` the least we want."""

    group: str
    what: str
    ours: str
    against: str = ""
    ratio: float | None = None
    bar: float | None = None

    def cells(self) -> list[str]:
        ratio = "" if self.ratio is None else f"{self.ratio:,.0f} ×" if self.ratio >= 100 else f"{self.ratio:.2f} ×"
        if self.ratio is None or self.bar is None:
            return [self.what, self.ours, self.against, ratio, ""]
        verdict = "met" if self.ratio >= self.bar else "**missed**"
        return [self.what, self.ours, self.against, ratio, f"≥ {self.bar:,g} × {verdict}"]


def markdown(rows: Iterable[Row]) -> str:
    import numba
    import torch

    versions = [f"Python {platform.python_version()}"]
    versions += [f"{module.__name__} {module.__version__}" for module in (np, numba, torch)]
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Ratios are taken side by side in one run; times are the best of some repeats on a",
        "machine that may be shared, so compare ratios, not seconds.",
        "",
        f"{datetime.date.today():%Y-%m-%d}, {machine()}, {', '.join(versions)}",
    ]
    for group, members in groupby(rows, key=lambda row: row.group):
        lines += ["", f"## {group}", "", "| what | halation | against | ratio | bar |", "|---|---|---|---:|---|"]
        lines += [f"| {' | '.join(row.cells())} |" for row in members]
    return "\n".join(lines) + "\n"
