"""`compare`: the difference of two systems on the same queries, with intervals and p-values."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from halation import _table
from halation._errors import InputError
from halation._files import write_text
from halation._progress import Progress, silent
from halation.evaluation._evaluate import check_draws
from halation.evaluation._report import Report, is_derived, is_rank
from halation.evaluation._resample import (
    bootstrap,
    bootstrap_median,
    randomisation_test,
    randomisation_test_median,
)

__all__ = ["Comparison", "Difference", "compare"]


@dataclass(frozen=True)
class Difference:
    """One metric of two systems; `difference` = b − a, in percentage points (MedR: ranks)."""

    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float

    def figures(self) -> dict[str, float | None]:
        """The numbers by name, None where there is none."""
        return {name: None if math.isnan(value) else value for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Differences per direction and metric; prints as a table."""

    i2t: Mapping[str, Difference]
    t2i: Mapping[str, Difference]
    resamples: int
    resampled: str = "images"

    def __str__(self) -> str:
        return _table.text(*self._rows(), notes=self.notes())

    def to_markdown(self) -> str:
        """The table in GitHub's Markdown."""
        return _table.markdown(*self._rows(), notes=self.notes())

    def to_latex(self) -> str:
        """The table as a booktabs `tabular`."""
        return _table.latex(*self._rows(), notes=self.notes())

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The comparison as JSON text; with `path` also written there."""
        document = {
            "format": "halation-comparison/1",
            "resamples": self.resamples,
            **{name: {metric: row.figures() for metric, row in rows.items()} for name, rows in self._directions()},
        }
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        if path is not None:
            write_text(path, text + "\n")
        return text

    def notes(self) -> list[str]:
        """How to read the table."""
        return [
            "percentages, MedR a rank; difference = B − A with its 95 % interval, a paired bootstrap over "
            f"{self.resampled}",
            f"p: paired randomisation test over {self.resampled}, two-sided, {self.resamples:,} draws; "
            "not corrected for the number of metrics",
        ]

    def _directions(self) -> list[tuple[str, Mapping[str, Difference]]]:
        return [(name, rows) for name, rows in (("i2t", self.i2t), ("t2i", self.t2i)) if rows]

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        header = ["", "A", "B", "difference", "p"]
        shown = {"i2t": "image → text", "t2i": "text → image"}
        rows = []
        for name, differences in self._directions():
            for metric, row in differences.items():
                change = f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]"
                rows.append([f"{shown[name]}  {metric}", f"{row.a:.2f}", f"{row.b:.2f}", change, f"{row.p:.4f}"])
        return header, rows


def compare(
    report_a: Report, report_b: Report, *, resamples: int = 5000, seed: int = 0, progress: Progress = silent
) -> Comparison:
    """Differences (b − a) of every metric both reports have, with 95 % intervals and paired randomisation tests.

    Both reports must come from the same truth, protocol and queries. Images are the unit: an image's captions swap
    systems together, because they are not independent.
    """
    for what in ("fingerprint", "protocol", "folds"):
        if report_a.about.get(what) != report_b.about.get(what):
            raise InputError(
                f"the reports differ in {what} ({_brief(report_a.about.get(what))} and "
                f"{_brief(report_b.about.get(what))}): they do not measure the same queries against the same truth; "
                "evaluate both on the same data with the same protocol"
            )
    check_draws(resamples, seed, least=1)
    rows = {
        direction: _compare_direction(report_a, report_b, direction, resamples, seed, progress)
        for direction in ("i2t", "t2i")
        if direction in report_a.queries and direction in report_b.queries
    }
    if not any(rows.values()):
        raise InputError("the reports have no metric in common")
    return Comparison(rows.get("i2t", {}), rows.get("t2i", {}), resamples, report_a.about.get("resampled", "images"))


def _compare_direction(
    a: Report, b: Report, direction: str, resamples: int, seed: int, progress: Progress
) -> dict[str, Difference]:
    queries = a.queries[direction]
    if not np.array_equal(queries.items, b.queries[direction].items):
        raise InputError(f"the reports have different {direction} queries; evaluate both on the same truth")
    _check_same_relevance(a, b)
    ours, theirs = a.per_query[direction], b.per_query[direction]
    shared = [metric for metric in ours if metric in theirs and not is_derived(metric)]
    means = [metric for metric in shared if not is_rank(metric)]
    low, high, p = np.empty((3, len(means)))
    if means:
        old, new = (np.stack([columns[metric] for metric in means], axis=1) for columns in (ours, theirs))
        low, high = 100 * np.nanpercentile(bootstrap(new - old, queries, resamples, seed), (2.5, 97.5), axis=0)
        p = randomisation_test(old, new, queries, resamples, seed + 1)
    figures = {metric: (float(low[k]), float(high[k]), float(p[k])) for k, metric in enumerate(means)}
    for metric in filter(is_rank, shared):
        draws = [bootstrap_median(columns[metric], queries, resamples, seed) for columns in (ours, theirs)]
        ends = np.nanpercentile(draws[1] - draws[0], (2.5, 97.5))
        swapped = randomisation_test_median(
            ours[metric], theirs[metric], queries, resamples, seed + 1, partial(progress, f"{direction} {metric}")
        )
        figures[metric] = float(ends[0]), float(ends[1]), swapped
    return {
        metric: _difference(a.results(direction)[metric], b.results(direction)[metric], figures[metric])
        for metric in shared
    }


def _difference(a: float, b: float, figures: tuple[float, float, float]) -> Difference:
    return Difference(a, b, b - a, *figures)


def _check_same_relevance(a: Report, b: Report) -> None:
    """ASP of the same name must mean the same relevance: tokenizer and leave-one-out included."""
    ours, theirs = a.about.get("relevance", {}), b.about.get("relevance", {})
    for name in ours.keys() & theirs.keys():
        if ours[name] != theirs[name]:
            raise InputError(f"ASP({name}) was measured against different relevances ({ours[name]} and {theirs[name]})")


def _brief(value: object) -> str:
    return repr(value if len(str(value)) <= 16 else f"{str(value)[:12]}…")
