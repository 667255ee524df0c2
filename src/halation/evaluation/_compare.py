"""`compare`: the differences of two systems on the same queries, with intervals and p-values."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from halation import _table
from halation._arrays import FloatArray
from halation._errors import InputError
from halation._files import write_text
from halation._progress import Progress, silent
from halation.evaluation._evaluate import check_draws
from halation.evaluation._report import Report, is_derived, is_rank
from halation.evaluation._resample import (
    Queries,
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
        """The numbers by name; None for NaN."""
        return {name: None if math.isnan(value) else value for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Differences by direction and metric; prints as a table."""

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
    """Differences (b − a) of every metric that both reports have, with 95 % intervals and paired randomisation tests.

    Both reports must come from the same truth, protocol and queries. The unit is the image: the captions of an image
    swap systems together, because they are not independent.
    """
    for what in ("fingerprint", "protocol", "folds"):
        if report_a.about.get(what) != report_b.about.get(what):
            raise InputError(
                f"the reports differ in {what} ({_brief(report_a.about.get(what))} and "
                f"{_brief(report_b.about.get(what))}): they do not measure the same queries against the same truth",
                remedy="evaluate both on the same data with the same protocol",
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
        raise InputError(f"the reports have different {direction} queries", remedy="evaluate both on the same truth")
    _check_same_relevance(a, b)
    columns_a, columns_b = a.per_query[direction], b.per_query[direction]
    shared = [metric for metric in columns_a if metric in columns_b and not is_derived(metric)]
    means = [metric for metric in shared if not is_rank(metric)]
    low, high, p = np.empty((3, len(means)))
    if means:
        values_a, values_b = (np.stack([columns[name] for name in means], axis=1) for columns in (columns_a, columns_b))
        draws = bootstrap(values_b - values_a, queries, resamples, seed)
        low, high = 100 * np.nanpercentile(draws, (2.5, 97.5), axis=0)
        p = randomisation_test(values_a, values_b, queries, resamples, seed + 1)
    figures = {metric: (float(low[k]), float(high[k]), float(p[k])) for k, metric in enumerate(means)}
    for metric in filter(is_rank, shared):
        figures[metric] = _compare_medians(
            columns_a[metric], columns_b[metric], queries, resamples, seed, partial(progress, f"{direction} {metric}")
        )
    pairs = {metric: (a.results(direction)[metric], b.results(direction)[metric]) for metric in shared}
    return {
        metric: Difference(value_a, value_b, value_b - value_a, *figures[metric])
        for metric, (value_a, value_b) in pairs.items()
    }


def _compare_medians(
    a: FloatArray, b: FloatArray, queries: Queries, resamples: int, seed: int, step: Callable[[int, int], None]
) -> tuple[float, float, float]:
    """The ends of the interval of b − a, and the p-value, of the medians of ranks (q,)."""
    draws_a, draws_b = (bootstrap_median(ranks, queries, resamples, seed) for ranks in (a, b))
    low, high = np.nanpercentile(draws_b - draws_a, (2.5, 97.5))
    return float(low), float(high), randomisation_test_median(a, b, queries, resamples, seed + 1, step)


def _check_same_relevance(a: Report, b: Report) -> None:
    """An InputError if an ASP was measured by two relevances of one name, for example with two tokenizers."""
    of_a, of_b = a.about.get("relevance", {}), b.about.get("relevance", {})
    for name in of_a.keys() & of_b.keys():
        if of_a[name] != of_b[name]:
            raise InputError(f"ASP({name}) was measured against different relevances ({of_a[name]} and {of_b[name]})")


def _brief(value: object) -> str:
    return repr(value if len(str(value)) <= 16 else f"{str(value)[:12]}…")
