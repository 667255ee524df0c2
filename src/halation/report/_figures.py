"""The curves of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from halation._web import Child, Markup, tag
from halation.data import Direction
from halation.report._facts import Absent, Facts, Line, Reliabilities, Training
from halation.report._head import WAYS
from halation.report._svg import Axes, bars, histograms, lines

__all__ = ["absent", "agreement", "calibrator", "curves", "figure"]

_FIFTHS = ("lowest σ", "2", "3", "4", "highest σ")


def curves(facts: Facts) -> Markup:
    """Recall over K, precision of what is found, and how the runs learnt."""
    drawn = [
        figure(
            f"Recall over K, {WAYS[direction]}",
            lines(line, Axes(f"R@K over K, {WAYS[direction]}", "K", "R@K", log_x=True, low=0, high=100), points=True),
            _keys(line),
            "Share of queries with a right answer among the first K, in percent.",
        )
        for direction, line in facts.recall.items()
    ]
    axes = Axes("Precision of found positives", "positives found", "precision", log_x=True, low=0)
    found = figure(
        "Precision of what is called positive",
        lines(facts.found, axes),
        _keys(facts.found),
        "All pairs from the highest score down: of those called so far, the share that is right, in percent. "
        f"{facts.found_note}",
    )
    return tag(
        "section",
        tag("h2", "Curves"),
        tag("div", drawn, found, class_="figures"),
        tag("h3", "While it learnt"),
        _training(facts),
        id="curves",
    )


def _training(facts: Facts) -> Markup:
    known = [run.training for run in facts.runs if isinstance(run.training, Training)]
    parts: list[Markup | None] = [
        absent(f"{run.name}: ", run.training) for run in facts.runs if isinstance(run.training, Absent)
    ]
    for what, unit, groups in (
        ("Loss", "step", _grouped(one.losses for one in known)),
        ("Validation", "epoch", _grouped(one.validation for one in known)),
    ):
        small = [
            figure(name, lines(group, Axes(f"{what}: {name}", unit, name, 300, 180, whole_x=True)), None, "")
            for name, group in groups.items()
        ]
        if small:
            kept = [
                f"{run.name} kept epoch {run.training.kept}"
                for run in facts.runs
                if isinstance(run.training, Training) and run.training.kept
            ]
            said = "; ".join(kept) if what == "Validation" else "terms before weights; loss: weighted sum"
            parts += [tag("h4", what, tag("small", f" by {unit}; {said}" if said else f" by {unit}"))]
            parts += [_runs_keys(facts), tag("div", small, class_="figures small")]
    return tag("div", parts)


def _grouped(training: Iterable[Sequence[Line]]) -> dict[str, list[Line]]:
    """Lines of the same name together, the order of the first run."""
    groups: dict[str, list[Line]] = {}
    for one in training:
        for line in one:
            groups.setdefault(line.name, []).append(line)
    return groups


def calibrator(facts: Facts) -> Markup:
    """Can it be believed? Reliability, and σ."""
    parts: list[Markup] = []
    drawn = [_reliability(direction, found) for direction, found in facts.reliability.items()]
    parts += [
        tag("h3", "Match probabilities: what was said, what was so"),
        *_missing(facts),
        tag("div", drawn, class_="figures wide"),
    ]
    parts.append(tag("h3", "Uncertainty"))
    if isinstance(facts.fifths, Absent) or isinstance(facts.spread, Absent):
        reason = facts.fifths if isinstance(facts.fifths, Absent) else facts.spread
        assert isinstance(reason, Absent)
        parts.append(absent("", reason))
    else:
        axes = Axes("Spread of σ", "σ", "percent")
        small = [
            figure(
                "Spread of σ",
                histograms(facts.spread, axes),
                [(one.name, k) for k, one in enumerate(facts.spread)],
                "σ is the geometric mean over dimensions: how large an item's cloud is. Shares of each kind.",
            )
        ]
        for direction, rows in facts.fifths.items():
            title = f"R@1 by fifth of σ, {WAYS[direction]}"
            drawing = bars(rows, Axes(title, "queries by their σ", "R@1", low=0), _FIFTHS[: len(rows[0].values)])
            note = (
                "Percent, with 95 % intervals over images. Where every query has as many right answers, an honest σ "
                "lets the bars fall; where a vague query has many, it may be the easiest."
            )
            small.append(figure(title, drawing, [(one.name, one.run) for one in rows], note))
        parts.append(tag("div", small, class_="figures"))
    return tag("section", tag("h2", "Calibrator"), parts, id="trust")


def _missing(facts: Facts) -> list[Markup]:
    found = next((one.missing for one in facts.reliability.values() if isinstance(one, Reliabilities)), None)
    return [] if found is None else [absent("", found)]


def _reliability(direction: Direction, found: Reliabilities | Absent) -> Markup:
    if isinstance(found, Absent):
        return absent(f"{WAYS[direction]}: ", found)
    drawn = []
    for name, said, was, error in found.lines:
        number = 0 if name == "calibrated" else 1
        where = " where it was fitted" if found.seen and name == "calibrated" else ""
        drawn.append(Line(f"{name}{where}, ECE {error:.3f}", said, was, number))
    high = max(max(max(line.x), max(line.y)) for line in drawn)
    axes = Axes(
        f"Reliability, {WAYS[direction]}",
        "probability said",
        "share that matched",
        low=0,
        high=min(1.0, 1.08 * high),
        diagonal=True,
    )
    return figure(
        f"Reliability, {WAYS[direction]}",
        lines(drawn, axes, points=True),
        _keys(drawn),
        [tag("strong", f"{found.seen} ") if found.seen else None, f"On the dashed line is calibrated. {found.note}"],
    )


def agreement(facts: Facts) -> Markup:
    """Does ASP know of R@1's hits?"""
    drawn = [
        figure(
            f"ASP of hits and misses, {WAYS[direction]}",
            histograms(
                found,
                Axes(f"ASP of R@1's hits and misses, {WAYS[direction]}", "ASP of the query", "percent", height=220),
            ),
            [(f"{one.name} ({sum(one.counts):,})", k) for k, one in enumerate(found)],
            "",
        )
        for direction, found in facts.agreement.items()
    ]
    return tag("div", drawn, class_="figures wide")


def figure(title: str, drawing: Markup, keys: Sequence[tuple[str, int]] | None, note: Child) -> Markup:
    """A drawing with its title, its legend and how to read it."""
    legend = None
    if keys:
        legend = tag(
            "ul", [tag("li", tag("span", "", class_=f"swatch s{k}"), name) for name, k in keys], class_="legend"
        )
    words = tag("p", note, class_="note") if note else None
    return tag("figure", tag("figcaption", title), legend, drawing, words)


def absent(what: str, reason: Absent) -> Markup:
    """What is not there, why, and how to get it."""
    remedy = [" ", tag("code", reason.remedy)] if reason.remedy else []
    end = "" if reason.why.endswith((".", ":")) else "."
    return tag("p", what, reason.why, end, remedy, class_="absent")


def _keys(series: Sequence[Line]) -> list[tuple[str, int]]:
    return [(line.name, line.run) for line in series]


def _runs_keys(facts: Facts) -> Markup | None:
    if len(facts.runs) > 1:
        return tag(
            "ul",
            [tag("li", tag("span", "", class_=f"swatch s{k}"), run.name) for k, run in enumerate(facts.runs)],
            class_="legend",
        )
    return None
