"""The figures of the page: curves, training, reliability, uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from halation._web import Child, Markup, tag
from halation.data import Direction
from halation.report._facts import Facts, Line, Missing, ReliabilityFacts, Training
from halation.report._page_head import DIRECTION_NAMES
from halation.report._reliability import AGAINST_ANNOTATIONS, CALIBRATED, UNCALIBRATED
from halation.report._svg import Axes, bars, histograms, lines

__all__ = ["asp_figures", "curves", "missing_note", "probabilities"]

_COLOURS = {CALIBRATED: 0, UNCALIBRATED: 1, AGAINST_ANNOTATIONS: 2}
_FIFTHS = ("lowest σ", "2", "3", "4", "highest σ")


def curves(facts: Facts) -> Markup:
    """The section of curves: recall over K, precision of the highest-scored pairs, training."""
    figures = [
        _figure(
            f"Recall over K, {DIRECTION_NAMES[direction]}",
            lines(
                series,
                Axes(f"R@K over K, {DIRECTION_NAMES[direction]}", "K", "R@K", log_x=True, low=0, high=100),
                points=True,
            ),
            _keys(series),
            "The percentage of queries with a right answer among the first K.",
        )
        for direction, series in facts.recall.items()
    ]
    axes = Axes("Precision of the highest-scored pairs", "right pairs found", "precision", log_x=True, low=0)
    precision = _figure(
        "Precision of the highest-scored pairs",
        lines(facts.precision, axes),
        _keys(facts.precision),
        "All pairs of image and caption, from the highest score down: the percentage of the pairs so far that are "
        f"right. {facts.precision_note}",
    )
    return tag(
        "section",
        tag("h2", "Curves"),
        tag("div", figures, precision, class_="figures"),
        tag("h3", "Training"),
        _training(facts),
        id="curves",
    )


def _training(facts: Facts) -> Markup:
    known = [run.training for run in facts.runs if isinstance(run.training, Training)]
    kept = [
        f"{run.name} kept the weights of epoch {run.training.kept_epoch}"
        for run in facts.runs
        if isinstance(run.training, Training) and run.training.kept_epoch
    ]
    parts: list[Markup | None] = [
        missing_note(f"{run.name}: ", run.training) for run in facts.runs if isinstance(run.training, Missing)
    ]
    for title, unit, notes, groups in (
        ("Loss", "step", ["“loss” is the weighted sum of the other terms"], _grouped(one.losses for one in known)),
        ("Validation", "epoch", kept, _grouped(one.validation for one in known)),
    ):
        small = [
            _figure(name, lines(group, Axes(f"{title}: {name}", unit, "", 300, 180, whole_x=True)), None, "")
            for name, group in groups.items()
        ]
        if small:
            parts += [tag("h4", title, tag("small", f" {'; '.join([f'by {unit}', *notes])}"))]
            parts += [_run_legend(facts), tag("div", small, class_="figures small")]
    return tag("div", parts)


def _grouped(training: Iterable[Sequence[Line]]) -> dict[str, list[Line]]:
    """The lines of both runs by name, in the order of the first run."""
    groups: dict[str, list[Line]] = {}
    for one in training:
        for line in one:
            groups.setdefault(line.name, []).append(line)
    return groups


def probabilities(facts: Facts) -> Markup:
    """The section on how far to trust the run: reliability of match probabilities, and σ."""
    parts: list[Markup] = [
        tag("h3", "Match probabilities: predicted and observed"),
        *_missing_calibration(facts),
        tag(
            "div", [_reliability(direction, one) for direction, one in facts.reliability.items()], class_="figures wide"
        ),
        tag("h3", "Uncertainty"),
    ]
    if isinstance(facts.recall_by_sigma, Missing):
        parts.append(missing_note("", facts.recall_by_sigma))
    elif isinstance(facts.sigma_histograms, Missing):
        parts.append(missing_note("", facts.sigma_histograms))
    else:
        figures = [
            _figure(
                "Distribution of σ",
                histograms(facts.sigma_histograms, Axes("Distribution of σ", "σ", "percent")),
                [(one.name, k) for k, one in enumerate(facts.sigma_histograms)],
                "σ is an item's uncertainty: the geometric mean over its dimensions. In percent of each kind.",
            )
        ]
        for direction, rows in facts.recall_by_sigma.items():
            title = f"R@1 by uncertainty, {DIRECTION_NAMES[direction]}"
            axes = Axes(title, "fifths of the queries by σ", "R@1", low=0)
            note = (
                "In percent, with 95 % intervals over images. If all queries have equally many right answers, a useful "
                "σ makes the bars fall. If vague queries have more right answers, they may be the easiest."
            )
            drawing = bars(rows, axes, _FIFTHS[: len(rows[0].values)])
            figures.append(_figure(title, drawing, [(one.name, one.run) for one in rows], note))
        parts.append(tag("div", figures, class_="figures"))
    return tag("section", tag("h2", "Probabilities and uncertainty"), parts, id="probabilities")


def _missing_calibration(facts: Facts) -> list[Markup]:
    missing = (one.missing for one in facts.reliability.values() if isinstance(one, ReliabilityFacts))
    return [missing_note("", one) for one in missing if one is not None][:1]


def _reliability(direction: Direction, measured: ReliabilityFacts | Missing) -> Markup:
    name = DIRECTION_NAMES[direction]
    if isinstance(measured, Missing):
        return missing_note(f"{name}: ", measured)
    series = []
    for line in measured.lines:
        remark = " (fitted on these images)" if measured.fitted_here and line.name != UNCALIBRATED else ""
        name_and_error = f"{line.name}{remark}, ECE {line.ece:.3f}"
        series.append(Line(name_and_error, line.predicted, line.observed, _COLOURS[line.name]))
    high = max(max(max(line.x), max(line.y)) for line in series)
    axes = Axes(
        f"Reliability, {name}",
        "predicted probability",
        "share that matched",
        low=0,
        high=min(1.0, 1.08 * high),
        diagonal=True,
    )
    warning = tag("strong", f"{measured.fitted_here} ") if measured.fitted_here else None
    return _figure(
        f"Reliability, {name}",
        lines(series, axes, points=True),
        _keys(series),
        [warning, f"The closer to the dashed line, the better calibrated. {measured.note}"],
    )


def asp_figures(facts: Facts) -> Markup:
    """Histograms of ASP for the hits and the misses of R@1."""
    figures = [
        _figure(
            f"ASP of hits and misses, {DIRECTION_NAMES[direction]}",
            histograms(
                series,
                Axes(
                    f"ASP of R@1's hits and misses, {DIRECTION_NAMES[direction]}",
                    "ASP of the query",
                    "percent",
                    height=220,
                ),
            ),
            [(f"{one.name} ({sum(one.counts):,})", k) for k, one in enumerate(series)],
            "",
        )
        for direction, series in facts.asp_histograms.items()
    ]
    return tag("div", figures, class_="figures wide")


def missing_note(what: str, missing: Missing) -> Markup:
    """A paragraph that says what is missing, why, and how to get it."""
    remedy = [" ", tag("code", missing.remedy)] if missing.remedy else []
    end = "" if missing.why.endswith((".", ":")) else "."
    return tag("p", what, missing.why, end, remedy, class_="missing")


def _figure(title: str, drawing: Markup, keys: Sequence[tuple[str, int]] | None, note: Child) -> Markup:
    """A drawing with its title, its legend and a note on how to read it."""
    words = tag("p", note, class_="note") if note else None
    return tag("figure", tag("figcaption", title), _legend(keys) if keys else None, drawing, words)


def _legend(keys: Sequence[tuple[str, int]]) -> Markup:
    entries = [tag("li", tag("span", "", class_=f"swatch s{colour}"), name) for name, colour in keys]
    return tag("ul", entries, class_="legend")


def _keys(series: Sequence[Line]) -> list[tuple[str, int]]:
    return [(line.name, line.run) for line in series]


def _run_legend(facts: Facts) -> Markup | None:
    return _legend([(run.name, k) for k, run in enumerate(facts.runs)]) if len(facts.runs) > 1 else None
