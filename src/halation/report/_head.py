"""The head of the page: what was measured on what, the verdict, and the table of all measures."""

from __future__ import annotations

import math

from halation._table import cell
from halation._web import Markup, plain, signed, tag
from halation.data import Direction
from halation.evaluation import DIRECTIONS, Difference, Report, is_rank
from halation.report._facts import Facts
from halation.report._svg import whisker
from halation.report._verdict import judge, lead, verdict

__all__ = ["WAYS", "headline", "measures"]

WAYS: dict[Direction, str] = {"i2t": "image → text", "t2i": "text → image"}
_TILES: tuple[tuple[Direction, str], ...] = (
    ("i2t", "R@1"),
    ("t2i", "R@1"),
    ("i2t", "ASP(tfidf)"),
    ("t2i", "ASP(tfidf)"),
)
_SIGNS = {"better": "▲", "worse": "▼", "same": "≈"}


def headline(facts: Facts) -> Markup:
    """The title, what it says in words, and the four numbers a reader asks for first."""
    run, report = facts.runs[0], facts.report
    size = (
        f"{report.about['images']:,} images × {report.about['captions']:,} captions of {facts.data}, "
        f"{len(report.queries['i2t']):,} image and {len(report.queries['t2i']):,} caption queries"
    )
    parts = [
        tag("p", "Report", class_="eyebrow"),
        tag("h1", run.name, *([tag("small", f" against {facts.runs[1].name}")] if facts.comparison else [])),
        tag("p", size, ".", class_="size"),
        tag("p", lead(facts), class_="lead"),
    ]
    if facts.comparison is not None:
        sentences = [tag("li", sentence) for sentence in verdict(facts.comparison)]
        parts.append(tag("ul", sentences, class_="verdict", aria_label=f"Against {facts.runs[1].name}"))
    models = [
        tag("li", tag("span", "", class_=f"swatch s{k}"), tag("strong", one.name), ": ", one.model, _took(one.seconds))
        for k, one in enumerate(facts.runs)
    ]
    parts += [
        tag("div", [_tile(facts, way, name) for way, name in _TILES], class_="tiles"),
        tag("ul", models, class_="models"),
    ]
    return tag("section", parts, id="top", class_="head")


def _took(seconds: float | None) -> str:
    return "" if seconds is None else f"; trained for {seconds / 60:.1f} minutes"


def _tile(facts: Facts, direction: Direction, metric: str) -> Markup | None:
    results = facts.report.results(direction)
    if metric not in results:
        return None
    low, high = results.interval(metric)
    row = _difference(facts, direction, metric)
    change = None
    if row is not None:
        said = judge(row)
        change = tag("span", f"{_SIGNS[said]} {signed(row.difference)}", class_=f"change {said}")
    return tag(
        "div",
        tag("p", metric.replace("(tfidf)", ""), tag("span", WAYS[direction]), class_="what"),
        tag("p", f"{results[metric]:.1f}", change, class_="number"),
        tag("p", f"95 %: {low:.1f} to {high:.1f}", class_="range") if not math.isnan(low) else None,
        class_="tile",
    )


def measures(facts: Facts) -> Markup:
    """Every measure in both directions; sorted and filtered by the page's script."""
    compared = facts.comparison is not None
    header = ["Measure", "Direction", facts.runs[0].name]
    header += [facts.runs[1].name, "Difference", "", "p"] if compared else []
    reach = _reach(facts)
    rows = [
        _row(facts, direction, metric, reach)
        for direction in DIRECTIONS
        for metric in facts.report.results(direction).metrics
    ]
    heads = [
        tag(
            "th",
            tag("button", text, type="button") if text else tag("span", "Interval", class_="unseen"),
            scope="col",
            aria_sort="none" if text else None,
        )
        for text in header
    ]
    sort = tag(
        "table",
        tag("thead", tag("tr", heads)),
        tag("tbody", rows),
        id="measures-table",
        class_="compared" if compared else "",
    )
    return tag(
        "section",
        tag("h2", "Measures"),
        tag("p", _explained(facts), class_="why"),
        tag(
            "div",
            tag(
                "label",
                "Filter ",
                tag("input", type="search", id="measures-filter", placeholder="R@, ASP, image …", autocomplete="off"),
            ),
            tag("p", "", id="measures-count", role="status", class_="count"),
            class_="tools",
        ),
        tag("div", sort, class_="scroll", tabindex="0", role="region", aria_label="Table of measures"),
        id="measures",
    )


def _explained(facts: Facts) -> str:
    text = (
        "Percentages (MedR is a rank); in brackets the 95 % interval over draws of images. Below an ASP: how far it is "
        "from chance to its ceiling, which is what the relevance's own order scores. "
    )
    if facts.comparison is None:
        return text + "Give a second run to compare this one with."
    return text + (
        f"Difference = {facts.runs[0].name} − {facts.runs[1].name}, paired by image; ▲ better and ▼ worse where the "
        f"interval leaves 0 out and p < 0.05 ({facts.comparison.resamples:,} draws, not corrected for the number of "
        "measures), ≈ where this split cannot tell."
    )


def _row(facts: Facts, direction: Direction, metric: str, reach: float) -> Markup:
    cells = [
        tag("th", metric, scope="row", data_value=metric),
        tag("td", WAYS[direction], data_value=WAYS[direction]),
        _value(facts.report, direction, metric),
    ]
    difference = _difference(facts, direction, metric)
    if facts.other is not None and difference is not None:
        said = judge(difference, smaller_is_better=is_rank(metric))
        change = f"{signed(difference.difference, 2)} [{signed(difference.low, 2)}, {signed(difference.high, 2)}]"
        picture = None if is_rank(metric) else whisker(difference.difference, difference.low, difference.high, reach)
        cells += [
            _value(facts.other, direction, metric),
            tag(
                "td",
                tag("span", _SIGNS[said], class_="sign", title=said),
                change,
                class_=f"number {said}",
                data_value=difference.difference,
            ),
            tag("td", picture, class_=f"drawn {said}"),
            tag("td", f"{difference.p:.4f}", class_="number", data_value=difference.p),
        ]
    return tag("tr", cells)


def _value(report: Report, direction: Direction, metric: str) -> Markup:
    results = report.results(direction)
    value, (low, high) = results[metric], results.interval(metric)
    interval = cell(value, low, high).partition(" ")[2]
    beside = None
    share, ceiling = results.adjusted(metric), results.ceiling(metric)
    if share is not None and ceiling is not None:
        beside = tag("small", f"{plain(share)} % from chance to {plain(ceiling)}")
    return tag(
        "td", f"{value:.2f} ", tag("span", interval, class_="interval"), beside, class_="number", data_value=value
    )


def _difference(facts: Facts, direction: str, metric: str) -> Difference | None:
    if facts.comparison is None:
        return None
    return (facts.comparison.i2t if direction == "i2t" else facts.comparison.t2i).get(metric)


def _reach(facts: Facts) -> float:
    """The furthest end of any interval: the scale of the small drawings."""
    if facts.comparison is None:
        return 1.0
    rows = [
        row for rows in (facts.comparison.i2t, facts.comparison.t2i) for name, row in rows.items() if not is_rank(name)
    ]
    return max([abs(end) for row in rows for end in (row.low, row.high)] + [0.1])
