"""The tables and the page of the trust study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from studies.page import Table, grouped, join, paragraph, without_repeats
from studies.trust_measure import CANDIDATES, Measured, Row

__all__ = ["page", "tables"]


def tables(measured: Sequence[Measured], splits: int) -> Iterator[Table]:
    """Every table of the study. The one by number of answers needs a truth that knows them all."""
    yield _probabilities(measured)
    yield _galleries(measured)
    yield _does_anything_match(measured)
    if any(one.by_truth for one in measured):
        yield _by_truth(measured)
    yield _thresholds(measured)
    yield _sets(measured, splits)
    yield _fifths(measured)
    yield _words(measured)


def _probabilities(measured: Sequence[Measured]) -> Table:
    rows = [
        [
            one.title,
            row["name"] + (" *" if row["chosen"] else ""),
            f"{row['ece']:.4f}",
            f"{row['low']:.4f} … {row['high']:.4f}",
            f"{row['brier']:.4f}",
            f"{100 * row['skill']:.1f} %",
        ]
        for one in measured
        for row in one.probabilities
    ]
    before = dict.fromkeys(f"{one.world}: {one.before}" for one in measured)
    return Table(
        "Are the match probabilities right?",
        ["calibrator", "ECE", "95 % interval", "Brier", "skill"],
        grouped(rows),
        f"The {CANDIDATES} best hits of each query; half of the queries have no match. ECE is the gap between "
        "predicted and observed probability (0 is best). Skill compares the Brier score with always predicting the "
        f"base rate. \\* chosen on dev, by halves of its images. “Before” is what you would take without calibration. "
        f"{'. '.join(before)}.",
    )


def _galleries(measured: Sequence[Measured]) -> Table:
    rows = [
        [one.title, f"{row['gallery']:,}", f"{row['base']:.3f}", f"{row['without']:.4f}", f"{row['with']:.4f}"]
        for one in measured
        for row in one.galleries
    ]
    return Table(
        "Does that hold in a gallery of another size?",
        ["run", "items", "hits that match", "ECE, not corrected", "ECE, corrected"],
        without_repeats(rows),
        "A bigger gallery has more near misses. The correction takes its size into account.",
    )


def _does_anything_match(measured: Sequence[Measured]) -> Table:
    return Table(
        "Does it know when nothing matches?",
        ["statistic", "dev", "all matches", "answered", "one match", "answered"],
        grouped([_abstention(one, row) for one in measured for row in one.abstention]),
        "Half of the queries lost their matches: they were taken out of the gallery (in brackets, how many per query). "
        "The others kept all of them, or only one. You see AUROC on dev and on test (0.5 is chance), and the share of "
        "queries with a match that are answered at 90 % precision, at the best threshold of the test split itself. "
        "\\* chosen on dev.",
    )


def _by_truth(measured: Sequence[Measured]) -> Table:
    rows = [
        [one.title, _span(row["low"], row["high"]), f"{row['queries']:,}"]
        + [f"{row[name]:.3f}" for name in ("auroc, all matches", "auroc, one match")]
        for one in measured
        for row in one.by_truth
    ]
    return Table(
        "The same, by how many items answer the query",
        ["run", "items", "queries", "AUROC, all matches", "AUROC, one match"],
        without_repeats(rows),
        "With the chosen statistic. Only scenes know every answer.",
    )


def _thresholds(measured: Sequence[Measured]) -> Table:
    return Table(
        "Does the threshold from dev keep its promise?",
        ["run", "taken out", "kept", "statistic", "precision", "answered", "of those with a match"],
        without_repeats([_threshold(one, row) for one in measured for row in one.thresholds], 2),
        "The threshold was set on dev for 90 % precision, and measured on test. Where dev never reached 90 %, the run "
        "makes no claim.",
    )


def _sets(measured: Sequence[Measured], splits: int) -> Table:
    rows = [
        [
            one.title,
            f"{100 * row['level']:.0f} %",
            f"{100 * row['coverage']:.2f} %",
            f"{100 * row['sd']:.2f}",
            f"{row['size']:.1f}",
            f"{100 * row['any']:.1f} %",
            f"{100 * row['from dev']:.1f} %",
        ]
        for one in measured
        for row in one.sets
    ]
    return Table(
        "Do conformal sets contain the match as often as they promise?",
        ["run", "promised", "coverage", "sd", "items per set", "any match", "threshold from dev"],
        without_repeats(rows),
        f"Mean over {splits} splits of the test images into halves: one sets the threshold, the other is measured. How "
        "far the sets follow the best score and σ was fitted on dev. Coverage is for a match drawn at random from the "
        "query's matches. The last column is the coverage with a threshold from dev instead.",
    )


def _fifths(measured: Sequence[Measured]) -> Table:
    rows = [
        [one.title, f"{100 * row['level']:.0f} %"]
        + [f"{100 * share:.1f} % ({size:.0f})" for share, size in row["fifths"]]
        for one in measured
        for row in one.sets
        if row["fifths"]
    ]
    return Table(
        "Are sets smaller for certain queries?",
        ["run", "promised", "most certain", "2", "3", "4", "least certain"],
        without_repeats(rows),
        "Coverage, and in brackets the items per set, by fifth of the query's uncertainty.",
    )


def _words(measured: Sequence[Measured]) -> Table:
    rows = [
        [
            one.title,
            row["word"],
            f"{100 * row['queries']:.0f} %",
            f"{row['answers']:.1f}",
            f"{row['median']:.0f}",
            f"{row['set']:.0f}",
        ]
        for one in measured
        for row in one.words
    ]
    return Table(
        "Do “specific”, “ordinary” and “broad” mean what they say?",
        ["run", "word", "queries", "answers, mean", "median", "items in the 90 % set"],
        without_repeats(rows),
        "The word comes from σ alone. Answers are the items of the test split that match the query.",
    )


def _abstention(one: Measured, row: Row) -> list[str]:
    dev = "–" if row["dev"] != row["dev"] else f"{row['dev']:.3f}"
    figures = []
    for kind in ("all matches", "one match"):
        figures += [f"{row[f'auroc, {kind}']:.3f}", f"{100 * row[f'found, {kind}']:.1f} %"]
    return [
        f"{one.title}: {row['taken out']} ({row['removed']:.0f})",
        row["statistic"] + (" *" if row["chosen"] else ""),
        dev,
        *figures,
    ]


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} … {high:,}"


def _threshold(one: Measured, row: Row) -> list[str]:
    first = [one.title, row["taken out"], row["kind"], row["statistic"]]
    if row["threshold"] is None:
        return [*first, "no claim", "–", "–"]
    return first + [f"{100 * row[name]:.1f} %" for name in ("precision", "answered", "found")]


def page(measured: Sequence[Measured], caught: Mapping[str, float], splits: int) -> str:
    """The page docs/studies/trust.md."""
    runs = dict.fromkeys(f"- {one.world}: {one.about}" for one in measured)
    head = [
        "# Can you trust a run?",
        "Calibration promises three things: match probabilities that are right, an honest “nothing here matches”, and "
        "result sets that contain a match as often as they claim. Here each promise is checked on test images. "
        "[How they work](../trust.md).",
        "There are two worlds. In drawn scenes every match is known. In Flickr8k most were never annotated; there, "
        "what means nearly the same is taken out of the gallery together with the annotated matches. " + _near(caught),
        "\n".join(runs),
        "Made by `python -m studies trust --scenes SCENES --scenes-run RUN --data FLICKR8K --run RUN "
        "--out docs/studies`; the numbers are in `trust.json`.",
    ]
    plots = [
        "![Predicted against observed match probability](trust_reliability.png)",
        "![Precision against the share of queries answered](trust_abstention.png)",
        "![Items per set, by uncertainty](trust_sets.png)",
    ]
    shown = [table.markdown() for table in (_summary(measured), *tables(measured, splits))]
    paragraphs = [part if part.startswith("- ") else paragraph(part) for part in head]
    return join([*paragraphs, shown[0], *plots, *shown[1:]])


def _near(caught: Mapping[str, float]) -> str:
    """How many of the matches that experts confirmed each relevance finds."""
    shares = [f"{name} finds {100 * share:.0f} %" for name, share in caught.items()]
    if not shares:
        return ""
    return (
        f"Of the pairs that experts rated 3 or more out of 4 although the caption belongs to another image, "
        f"{' and '.join(shares)}."
    )


def _summary(measured: Sequence[Measured]) -> Table:
    rows = []
    for one in measured:
        before, after = one.probabilities[0], next(row for row in one.probabilities if row["chosen"])
        away = max(abs(100 * (row["coverage"] - row["level"])) for row in one.sets)
        chosen = next(row for row in one.abstention if row["chosen"])
        grows = [row["fifths"][-1][1] > row["fifths"][0][1] for row in one.sets if row["fifths"]]
        rows.append(
            [
                one.title,
                f"{before['ece']:.3f} → {after['ece']:.3f}",
                f"{100 * after['skill']:.1f} %",
                f"{chosen['auroc, all matches']:.3f} / {chosen['auroc, one match']:.3f}",
                f"{100 * chosen['found, all matches']:.0f} % / {100 * chosen['found, one match']:.0f} %",
                f"{away:.2f} points",
                "no σ" if not grows else "yes" if all(grows) else "**no**",
            ]
        )
    header = ["run", "ECE", "skill", "AUROC", "answered", "off by", "smaller sets"]
    return Table(
        "What holds and what does not",
        header,
        rows,
        "ECE before and after calibration, and the skill after it. Then AUROC of “has a match”, and the share of "
        "queries with a match that are answered at 90 % precision: with all matches in the gallery / with only one. "
        "“Off by” is the largest distance between the coverage of the sets and what they promise. The last column: are "
        "the sets smaller for queries the model is certain of?",
    )
