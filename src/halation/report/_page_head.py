"""The head of the page: a summary in words, four headline numbers, and the table of all measures."""

from __future__ import annotations

import math

from halation._table import cell
from halation._web import Markup, plain, signed, tag
from halation.data import Direction
from halation.evaluation import DIRECTIONS, Comparison, Difference, Report, is_rank
from halation.metrics import chance_asp
from halation.report._facts import Facts, RunFacts
from halation.report._svg import whisker

__all__ = ["DIRECTION_NAMES", "headline", "judge", "measures", "verdict"]

DIRECTION_NAMES: dict[Direction, str] = {"i2t": "image → text", "t2i": "text → image"}
_TILES: tuple[tuple[Direction, str], ...] = (
    ("i2t", "R@1"),
    ("t2i", "R@1"),
    ("i2t", "ASP(tfidf)"),
    ("t2i", "ASP(tfidf)"),
)
_SIGNS = {"better": "▲", "worse": "▼", "same": "≈"}
_QUESTIONS = (  # the measure, the question, the answers
    ("ASP(tfidf)", "Its rankings follow relevance", {"better": "better", "worse": "worse", "same": "about as well"}),
    ("R@1", "A right answer comes first", {"better": "more often", "worse": "less often", "same": "about as often"}),
    ("R-P", "It finds all right answers", {"better": "better", "worse": "worse", "same": "about as well"}),
)


def headline(facts: Facts) -> Markup:
    """The title, the result in words, and the four numbers a reader looks for first."""
    run = facts.runs[0]
    parts = [
        tag("p", "Report", class_="eyebrow"),
        tag("h1", run.name, *([tag("small", f" compared with {facts.runs[1].name}")] if facts.comparison else [])),
        tag("p", _size(facts), class_="size"),
        tag("p", _lead(facts.report), class_="lead"),
    ]
    if facts.comparison is not None:
        sentences = [tag("li", sentence) for sentence in verdict(facts.comparison)]
        parts.append(tag("ul", sentences, class_="verdict", aria_label=f"Compared with {facts.runs[1].name}"))
    models = [
        tag("li", tag("span", "", class_=f"swatch s{k}"), tag("strong", run.name), ": ", run.model, _duration(run))
        for k, run in enumerate(facts.runs)
    ]
    parts += [
        tag("div", [_tile(facts, direction, name) for direction, name in _TILES], class_="tiles"),
        tag("ul", models, class_="models"),
    ]
    return tag("section", parts, id="top", class_="head")


def _size(facts: Facts) -> str:
    about, queries = facts.report.about, facts.report.queries
    size = f"{facts.data}: {about['images']:,} images and {about['captions']:,} captions"
    if (len(queries["i2t"]), len(queries["t2i"])) == (about["images"], about["captions"]):
        return f"{size}, all of them queries."
    return f"{size}; {len(queries['i2t']):,} images and {len(queries['t2i']):,} captions are queries."


def _duration(run: RunFacts) -> str:
    return "" if run.seconds is None else f"; trained for {run.seconds / 60:.1f} minutes"


def _lead(report: Report) -> str:
    return (
        f"For {report.i2t['R@1']:.1f} % of the images, the first caption is right. For {report.t2i['R@1']:.1f} % of "
        f"the captions, the first image is right. {_asp_sentence(report)}"
    )


def _asp_sentence(report: Report) -> str:
    parts = []
    for direction, answers in (("i2t", "captions"), ("t2i", "images")):
        results = report.results(direction)
        ceiling = results.ceiling("ASP(tfidf)") if "ASP(tfidf)" in results else None
        if ceiling is None:
            return ""
        galleries = report.about["gallery"][direction]
        chance = 100 * chance_asp(round(sum(galleries) / len(galleries)))
        parts.append(f"{results['ASP(tfidf)']:.1f} for {answers} (chance {chance:.0f}, ceiling {ceiling:.0f})")
    return f"With tf\u2011idf between captions as relevance, whole rankings have an ASP of {' and '.join(parts)}."


def judge(difference: Difference, *, smaller_is_better: bool = False) -> str:
    """better or worse if the interval excludes 0 and p < 0.05, otherwise same."""
    significant = difference.p < 0.05 and (difference.low > 0 or difference.high < 0)
    if not significant:
        return "same"
    return "better" if (difference.difference > 0) != smaller_is_better else "worse"


def verdict(comparison: Comparison) -> list[str]:
    """A sentence for each of three questions: run − other, image → text first."""
    sentences = []
    for metric, question, answers in _QUESTIONS:
        rows = [rows[metric] for rows in (comparison.i2t, comparison.t2i) if metric in rows]
        if rows:
            sentences.append(f"{question} {_answer(answers, rows)}: {_points(metric, rows)}.")
    return sentences


def _answer(answers: dict[str, str], rows: list[Difference]) -> str:
    each = [answers[judge(row)] for row in rows]
    if len(set(each)) == 1:
        return each[0]
    directions = ("from image to text", "from text to image")
    return " and ".join(f"{answer} {direction}" for answer, direction in zip(each, directions, strict=True))


def _points(metric: str, rows: list[Difference]) -> str:
    numbers = " and ".join(signed(row.difference) for row in rows)
    undecided = all(judge(row) == "same" for row in rows)
    name = metric.replace("(tfidf)", "").replace("-", "\u2011")  # a hyphen that does not break the line
    return f"{name} {numbers} points{', too little for this split to tell from 0' if undecided else ''}"


def _tile(facts: Facts, direction: Direction, metric: str) -> Markup | None:
    results = facts.report.results(direction)
    if metric not in results:
        return None
    low, high = results.interval(metric)
    row = _difference(facts, direction, metric)
    change = None
    if row is not None:
        judgement = judge(row)
        change = tag("span", f"{_SIGNS[judgement]} {signed(row.difference)}", class_=f"change {judgement}")
    return tag(
        "div",
        tag("p", metric.replace("(tfidf)", ""), tag("span", DIRECTION_NAMES[direction]), class_="what"),
        tag("p", f"{results[metric]:.1f}", change, class_="number"),
        tag("p", f"95 % interval {low:.1f} to {high:.1f}", class_="range") if not math.isnan(low) else None,
        class_="tile",
    )


def measures(facts: Facts) -> Markup:
    """The table of every measure in both directions; the page's script sorts and filters it."""
    field = tag("input", type="search", id="measures-filter", placeholder="R@, ASP, image …", autocomplete="off")
    tools = tag(
        "div",
        tag("label", "Filter ", field),
        tag("p", "", id="measures-count", role="status", class_="count"),
        class_="tools",
    )
    return tag(
        "section",
        tag("h2", "Measures"),
        tag("p", _explanation(facts), class_="why"),
        tools,
        tag("div", _table(facts), class_="scroll", tabindex="0", role="region", aria_label="Table of measures"),
        id="measures",
    )


def _table(facts: Facts) -> Markup:
    compared = facts.comparison is not None
    header = ["Measure", "Direction", facts.runs[0].name]
    header += [facts.runs[1].name, "Difference", "", "p"] if compared else []
    limit = _largest_interval_end(facts)
    rows = [
        _row(facts, direction, metric, limit)
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
    parts = tag("thead", tag("tr", heads)), tag("tbody", rows)
    return tag("table", *parts, id="measures-table", class_="compared" if compared else "")


def _explanation(facts: Facts) -> str:
    text = (
        "Values are percentages; MedR is a rank. Brackets hold the 95 % interval over resampled images. Under each ASP "
        "you see where it is between chance (0 %) and its ceiling (100 %), the ASP of ranking by relevance itself. "
    )
    if facts.comparison is None:
        return text + "Give a second run to compare this one with."
    return text + (
        f"Difference = {facts.runs[0].name} − {facts.runs[1].name}, paired by image. ▲ better, ▼ worse: the interval "
        f"excludes 0 and p < 0.05 ({facts.comparison.resamples:,} resamples, not corrected for the number of "
        "measures). ≈: this split cannot tell."
    )


def _row(facts: Facts, direction: Direction, metric: str, limit: float) -> Markup:
    cells = [
        tag("th", metric, scope="row", data_value=metric),
        tag("td", DIRECTION_NAMES[direction], data_value=DIRECTION_NAMES[direction]),
        _value(facts.report, direction, metric),
    ]
    difference = _difference(facts, direction, metric)
    if facts.other is not None and difference is not None:
        judgement = judge(difference, smaller_is_better=is_rank(metric))
        change = f"{signed(difference.difference, 2)} [{signed(difference.low, 2)}, {signed(difference.high, 2)}]"
        drawing = None if is_rank(metric) else whisker(difference.difference, difference.low, difference.high, limit)
        cells += [
            _value(facts.other, direction, metric),
            tag(
                "td",
                tag("span", _SIGNS[judgement], class_="sign", title=judgement),
                change,
                class_=f"number {judgement}",
                data_value=difference.difference,
            ),
            tag("td", drawing, class_=f"drawn {judgement}"),
            tag("td", f"{difference.p:.4f}", class_="number", data_value=difference.p),
        ]
    return tag("tr", cells)


def _value(report: Report, direction: Direction, metric: str) -> Markup:
    results = report.results(direction)
    value, (low, high) = results[metric], results.interval(metric)
    interval = cell(value, low, high).partition(" ")[2]
    position = None
    share, ceiling = results.adjusted(metric), results.ceiling(metric)
    if share is not None and ceiling is not None:
        position = tag("small", f"{plain(share)} % of the way from chance to {plain(ceiling)}")
    return tag(
        "td", f"{value:.2f} ", tag("span", interval, class_="interval"), position, class_="number", data_value=value
    )


def _difference(facts: Facts, direction: str, metric: str) -> Difference | None:
    if facts.comparison is None:
        return None
    return (facts.comparison.i2t if direction == "i2t" else facts.comparison.t2i).get(metric)


def _largest_interval_end(facts: Facts) -> float:
    """The largest absolute end of any interval: the scale of the small drawings."""
    if facts.comparison is None:
        return 1.0
    rows = [
        row for rows in (facts.comparison.i2t, facts.comparison.t2i) for name, row in rows.items() if not is_rank(name)
    ]
    return max([abs(end) for row in rows for end in (row.low, row.high)] + [0.1])
