"""`Report`: every metric of one evaluation with its intervals; prints as a table and exports."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from halation import _table
from halation._arrays import FloatArray
from halation._errors import InputError, one_of
from halation._files import write_text
from halation.data import Direction
from halation.evaluation._resample import Queries, bootstrap, bootstrap_median, statistic
from halation.metrics import adjusted_asp

__all__ = ["DIRECTIONS", "Report", "Results", "is_derived", "is_rank"]

DIRECTIONS: tuple[Direction, Direction] = ("i2t", "t2i")
RECALLS = ("R@1", "R@5", "R@10")
CEILING, ADJUSTED = " ceiling", " adjusted"


def is_rank(metric: str) -> bool:
    """Whether a metric is a rank (MedR) and not a percentage; of ranks, smaller is better."""
    return metric == "MedR"


def is_derived(metric: str) -> bool:
    """Whether a row belongs to an ASP: its ceiling, or its value on the scale where chance is 0 and the ceiling 100."""
    return metric.endswith((CEILING, ADJUSTED))


class Results(Mapping[str, float]):
    """The values of one direction by metric, in percent (MedR: a rank). `ASP` is short for `ASP(tfidf)`."""

    def __init__(self, values: Mapping[str, float], intervals: Mapping[str, tuple[float, float]]) -> None:
        self._values, self._intervals = dict(values), dict(intervals)

    def __getitem__(self, name: str) -> float:
        return self._values[self._known(name)]

    def __contains__(self, name: object) -> bool:
        return ("ASP(tfidf)" if name == "ASP" else name) in self._values

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, without the rows that accompany each ASP (its ceiling and its adjusted value)."""
        return tuple(name for name in self._values if not is_derived(name))

    def ceiling(self, name: str) -> float | None:
        """The ASP of the relevance's own order, in percent; None for other metrics."""
        return self._values.get(self._known(name) + CEILING)

    def adjusted(self, name: str) -> float | None:
        """An ASP on the scale where chance is 0 and its ceiling 100; None for other metrics."""
        return self._values.get(self._known(name) + ADJUSTED)

    def interval(self, name: str) -> tuple[float, float]:
        """The 95 % bootstrap interval, or (nan, nan) if none was computed."""
        return self._intervals.get(self._known(name), (math.nan, math.nan))

    def _known(self, name: str) -> str:
        name = "ASP(tfidf)" if name == "ASP" else name
        if name not in self._values:
            try:
                one_of(name, self._values, "metric of this report")
            except InputError as error:
                raise KeyError(str(error)) from None
        return name

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {value:.2f}" for name, value in self._values.items()) + "}"


@dataclass(frozen=True, eq=False)
class Report:
    """Every metric in both directions; `evaluate` makes it, `Report.from_json` reads it back.

    about      protocol, truth, sizes, tokenizers, notes (queries left out, …)
    queries    the queries of each direction, with the image and fold of each
    per_query  one fraction per query (MedR: a rank) by direction and metric; NaN if the query was left out
    """

    about: Mapping[str, Any]
    queries: Mapping[str, Queries]
    per_query: Mapping[str, Mapping[str, FloatArray]]
    resamples: int = 1000
    seed: int = 0
    _results: dict[str, Results] = field(default_factory=dict, repr=False)

    @property
    def i2t(self) -> Results:
        """The results of image queries: captions are ranked."""
        return self.results("i2t")

    @property
    def t2i(self) -> Results:
        """The results of caption queries: images are ranked."""
        return self.results("t2i")

    def results(self, direction: str) -> Results:
        """The results of one direction ("i2t" or "t2i"), computed from the per-query values on first use."""
        one_of(direction, DIRECTIONS, "direction")
        if direction not in self._results:
            self._results[direction] = self._summarise(direction)
        return self._results[direction]

    @cached_property
    def rsum(self) -> float:
        """Sum of R@1, R@5 and R@10 in both directions, at most 600; NaN if one was not measured."""
        try:
            return sum(self.results(direction)[name] for direction in DIRECTIONS for name in RECALLS)
        except KeyError:
            return math.nan

    @cached_property
    def rsum_interval(self) -> tuple[float, float]:
        """The 95 % interval of `rsum`. If both directions have the same images, they are drawn together."""
        if math.isnan(self.rsum) or not self.resamples:
            return math.nan, math.nan
        draws = [
            bootstrap(_stack(self.per_query[direction], RECALLS), self.queries[direction], self.resamples, self.seed)
            for direction in DIRECTIONS
        ]
        return _percentiles(100 * np.hstack(draws).sum(axis=1))

    def _summarise(self, direction: str) -> Results:
        queries, columns = self.queries[direction], self.per_query[direction]
        values: dict[str, float] = {}
        for name, column in columns.items():
            scale = 1.0 if is_rank(name) else 100.0
            values[name] = scale * statistic(column, queries, median=is_rank(name))
            if name + CEILING in columns:
                values[name + ADJUSTED] = self._adjusted(direction, name)
        return Results(values, self._intervals(direction))

    def _intervals(self, direction: str) -> dict[str, tuple[float, float]]:
        queries, columns = self.queries[direction], self.per_query[direction]
        if not self.resamples:
            return {}
        means = [name for name in columns if not is_derived(name) and not is_rank(name)]
        draws = bootstrap(_stack(columns, means), queries, self.resamples, self.seed) if means else np.empty((1, 0))
        intervals = {name: _percentiles(100 * draw) for name, draw in zip(means, draws.T, strict=True)}
        for name in filter(is_rank, columns):
            intervals[name] = _percentiles(bootstrap_median(columns[name], queries, self.resamples, self.seed))
        return intervals

    def _adjusted(self, direction: str, name: str) -> float:
        """An ASP on the scale where chance is 0 and its ceiling 100: the mean over folds."""
        queries, columns = self.queries[direction], self.per_query[direction]
        per_fold = []
        for fold, gallery in enumerate(self.about["gallery"][direction]):
            in_fold = queries.folds == fold
            if in_fold.any():
                value, ceiling = (float(np.nanmean(columns[key][in_fold])) for key in (name, name + CEILING))
                per_fold.append(100 * float(adjusted_asp(value, gallery, ceiling)))
        return float(np.mean(per_fold)) if per_fold else math.nan

    def __str__(self) -> str:
        return _table.text(*self._rows(), title=self.title(), notes=self.notes())

    def to_markdown(self) -> str:
        """The table in GitHub's Markdown."""
        return _table.markdown(*self._rows(), title=self.title(), notes=self.notes())

    def to_latex(self) -> str:
        """The table as a booktabs `tabular`."""
        return _table.latex(*self._rows(), notes=[self.title(), *self.notes()])

    def title(self) -> str:
        """One line: the protocol, the data and their sizes."""
        about = self.about
        queries = ", ".join(
            f"{len(self.queries[direction]):,} {kind} queries"
            for direction, kind in (("i2t", "image"), ("t2i", "caption"))
            if direction in self.queries
        )
        protocol = f"{about['protocol']} on " if about.get("protocol") else ""
        folds = f", {about['folds']} folds averaged" if about.get("folds", 1) > 1 else ""
        return (
            f"{protocol}{about['truth']}: {about['images']:,} images × {about['captions']:,} captions, {queries}{folds}"
        )

    def notes(self) -> list[str]:
        """Notes that a reader needs to compare the numbers."""
        lines = [str(note) for note in self.about.get("notes", ())]
        if self.resamples:
            unit = self.about.get("resampled", "images")
            lines.append(f"percentages (MedR: a rank); […] 95 % interval, {self.resamples:,} bootstrap draws of {unit}")
        return lines

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        directions = [direction for direction in DIRECTIONS if direction in self.queries]
        names = list(dict.fromkeys(name for direction in directions for name in self.results(direction)))
        header = ["", *({"i2t": "image → text", "t2i": "text → image"}[direction] for direction in directions)]
        rows = []
        for name in names:
            if name.endswith(CEILING):
                continue
            shown = "  chance 0, ceiling 100" if name.endswith(ADJUSTED) else name
            rows.append([shown, *(self._cell(direction, name) for direction in directions)])
        if not math.isnan(self.rsum):
            low, high = self.rsum_interval
            rows.append(["rsum", _table.cell(self.rsum, low, high), *[""] * (len(directions) - 1)])
        return header, rows

    def _cell(self, direction: str, name: str) -> str:
        results = self.results(direction)
        if name not in results:
            return "–"
        if name.endswith(ADJUSTED):
            return f"{results[name]:.2f}  (ceiling {results.ceiling(name.removesuffix(ADJUSTED)):.2f})"
        return _table.cell(results[name], *results.interval(name))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The whole report as JSON text, per-query values included; with `path` also written there."""
        from halation.evaluation._report_json import document

        text = json.dumps(document(self), ensure_ascii=False, allow_nan=False)
        if path is not None:
            write_text(path, text + "\n")
        return text

    @staticmethod
    def from_json(source: str | os.PathLike[str]) -> Report:
        """The report that `to_json` wrote: give its file, or the JSON text itself."""
        from halation.evaluation._report_json import read_report

        return read_report(source)


def _stack(columns: Mapping[str, FloatArray], names: Sequence[str]) -> FloatArray:
    """The named columns side by side, (q, m)."""
    return np.stack([columns[name] for name in names], axis=1)


def _percentiles(draws: FloatArray) -> tuple[float, float]:
    low, high = np.nanpercentile(draws, (2.5, 97.5))
    return float(low), float(high)
