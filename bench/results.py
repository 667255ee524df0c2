"""A row of the benchmark tables, and the tables as Markdown."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from bench.measuring import machine


@dataclass(frozen=True)
class Row:
    """One measurement; `ratio` is theirs / ours (bigger is better), `bar` the smallest that we accept."""

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


HEAD = """# Benchmarks

Written by `make bench`, or part by part (`python -m bench index serve`): a part replaces its own table, which says when
and where it was measured. Both sides of a ratio are measured in one run. Times are the best of some repeats on a
machine that may be shared, so compare ratios, not seconds.
"""


def merged(text: str, rows: Sequence[Row]) -> str:
    """RESULTS.md with new tables for the groups of these rows; other tables stay.

    >>> print(merged(merged("", [Row("a", "x", "1 s")]), [Row("b", "y", "2 s")]).count("## "))
    2
    """
    _, *parts = ("\n" + text).split("\n## ")
    tables = {part.splitlines()[0]: part.strip() for part in parts}
    for group, members in groupby(rows, key=lambda row: row.group):
        lines = [group, "", measured_on(), "", "| what | halation | against | ratio | bar |", "|---|---|---|---:|---|"]
        tables[group] = "\n".join([*lines, *(f"| {' | '.join(row.cells())} |" for row in members)])
    return "\n".join([HEAD, *(f"## {table}\n" for table in tables.values())])


def measured_on() -> str:
    """The date, the machine and the versions of the libraries."""
    import numba
    import torch

    versions = [f"Python {platform.python_version()}"]
    versions += [f"{module.__name__} {module.__version__}" for module in (np, numba, torch)]
    return f"*{datetime.date.today():%Y-%m-%d}, {machine()}, {', '.join(versions)}*"
