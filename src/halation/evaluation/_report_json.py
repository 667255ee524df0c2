"""A report as a JSON document, and back. Every part is checked when it is read."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from halation._arrays import FloatArray
from halation._errors import InputError
from halation._files import parse_json, read_json
from halation.evaluation._report import DIRECTIONS, Report
from halation.evaluation._resample import Queries

__all__ = ["document", "read_report"]

FORMAT = "halation-report/1"
_MOST_DRAWS = 10_000_000


def document(report: Report) -> dict[str, Any]:
    """The JSON document of a report; its results and intervals are for people and other programs."""
    return {
        "format": FORMAT,
        "about": dict(report.about),
        "results": {
            direction: {
                name: {"value": _or_null(value), "low": _or_null(low), "high": _or_null(high)}
                for name, value in report.results(direction).items()
                for low, high in [report.results(direction).interval(name)]
            }
            for direction in report.queries
        },
        "rsum": dict(zip(("value", "low", "high"), map(_or_null, (report.rsum, *report.rsum_interval)), strict=True)),
        "resamples": report.resamples,
        "seed": report.seed,
        "queries": {
            direction: {"items": q.items.tolist(), "clusters": q.clusters.tolist(), "folds": q.folds.tolist()}
            for direction, q in report.queries.items()
        },
        "per_query": {
            direction: {name: [_short(value) for value in column.tolist()] for name, column in columns.items()}
            for direction, columns in report.per_query.items()
        },
    }


def read_report(source: str | os.PathLike[str]) -> Report:
    """A report from its file, or from its JSON text (a string that begins with a brace).

    An InputError names the source and the part that is damaged.
    """
    if isinstance(source, str) and source.lstrip().startswith("{"):
        subject, path = "the JSON text ", None
        parts = parse_json(source, "the JSON text")
    else:
        subject, path = "", source
        parts = read_json(source)
    if not isinstance(parts, dict) or parts.get("format") != FORMAT:
        raise InputError(f'{subject}is not a halation report (it lacks "format": "{FORMAT}")', path=path)
    try:
        return _report(parts)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        problem = f"{subject}is a damaged halation report ({error})"
        raise InputError(problem, path=path, remedy="run `halation evaluate` again") from None


def _report(parts: dict[str, Any]) -> Report:
    about = parts["about"]
    queries = {str(direction): _queries(parts["queries"][direction], direction) for direction in DIRECTIONS}
    folds = about["folds"]
    _check(isinstance(folds, int) and folds >= 1, "about.folds")
    for direction in DIRECTIONS:
        gallery = about["gallery"][direction]
        _check(
            len(gallery) == folds and all(isinstance(n, int) and n > 0 for n in gallery), f"about.gallery.{direction}"
        )
        _check(bool((queries[direction].folds < folds).all()), f"queries.{direction}.folds")
    for key in ("truth", "fingerprint"):
        _check(isinstance(about[key], str), f"about.{key}")
    for key in ("images", "captions"):
        _check(isinstance(about[key], int), f"about.{key}")
    _check(isinstance(about["relevance"], dict) and isinstance(about["notes"], list), "about.relevance or about.notes")
    per_query = {
        str(direction): {
            str(name): _column(column, len(queries[direction]), f"{direction} {name}")
            for name, column in columns.items()
        }
        for direction, columns in ((direction, parts["per_query"][direction]) for direction in DIRECTIONS)
    }
    resamples, seed = parts["resamples"], parts["seed"]
    _check(isinstance(resamples, int) and 0 <= resamples <= _MOST_DRAWS, "resamples")
    _check(isinstance(seed, int) and seed >= 0, "seed")
    return Report(about, queries, per_query, resamples, seed)


def _queries(columns: dict[str, Any], direction: str) -> Queries:
    arrays = [np.asarray(columns[key]) for key in ("items", "clusters", "folds")]
    for array in arrays:
        whole = array.ndim == 1 and array.dtype.kind == "i" and len(array) == len(arrays[0]) > 0
        _check(whole and bool((array >= 0).all()), f"queries.{direction}")
    return Queries(*arrays)


def _column(values: Any, count: int, name: str) -> FloatArray:
    column = np.array(values, dtype=np.float64)  # null becomes NaN: the query was left out
    _check(column.shape == (count,), f"per_query {name}: {column.size} values for {count} queries")
    return column


def _check(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(what)


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else value


def _short(value: float) -> float | int | None:
    """A number as JSON: hits and ranks as whole numbers, which shortens the file to a third; NaN as null."""
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else value
