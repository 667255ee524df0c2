"""The tables and the page of the trust study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from halation import _table
from studies.trust_measure import CANDIDATES, Measured, Row

__all__ = ["page", "tables"]

Table = tuple[str, list[str], list[list[str]]]


def tables(measured: Sequence[Measured]) -> Iterator[Table]:
    """Title, header and rows of each table. The one by number of answers needs a truth that knows them all."""
    yield _probabilities(measured)
    yield _galleries(measured)
    yield _does_anything_match(measured)
    if any(one.by_truth for one in measured):
        yield _by_truth(measured)
    yield _thresholds(measured)
    yield _sets(measured)
    yield _fifths(measured)
    yield _words(measured)


def _probabilities(measured: Sequence[Measured]) -> Table:
    return (
        f"Match probability of each query's {CANDIDATES} best, half of the queries without a match",
        ["", "ECE", "95 % of draws of images", "Brier", "skill over the base rate"],
        [
            [
                f"{one.title}: {row['name']}{' *' if row['chosen'] else ''}",
                f"{row['ece']:.4f}",
                f"{row['low']:.4f} … {row['high']:.4f}",
                f"{row['brier']:.4f}",
                f"{100 * row['skill']:.1f} %",
            ]
            for one in measured
            for row in one.probabilities
        ],
    )


def _galleries(measured: Sequence[Measured]) -> Table:
    return (
        "ECE in galleries of another size",
        ["", "items", "share of candidates that match", "not corrected", "corrected"],
        [
            [one.title, f"{row['gallery']:,}", f"{row['base']:.3f}", f"{row['without']:.4f}", f"{row['with']:.4f}"]
            for one in measured
            for row in one.galleries
        ],
    )


def _does_anything_match(measured: Sequence[Measured]) -> Table:
    return (
        "Does anything match? Queries with all their matches or one of them in the gallery, against queries with none",
        [
            "",
            "taken out (items per query)",
            "statistic",
            "AUROC dev, both",
            "AUROC, all matches",
            "answered at 90 % precision",
            "AUROC, one match",
            "answered",
        ],
        [_abstention(one, row) for one in measured for row in one.abstention],
    )


def _by_truth(measured: Sequence[Measured]) -> Table:
    return (
        "The chosen statistic, by how many items answer the query",
        ["", "items", "queries", "AUROC, all matches", "one match"],
        [
            [one.title, _span(row["low"], row["high"]), f"{row['queries']:,}"]
            + [f"{row[name]:.3f}" for name in ("auroc, all matches", "auroc, one match")]
            for one in measured
            for row in one.by_truth
        ],
    )


def _thresholds(measured: Sequence[Measured]) -> Table:
    return (
        "The threshold chosen on dev for 90 % precision, on test",
        ["", "taken out", "match", "statistic", "precision", "answered", "of those with a match"],
        [_threshold(one, row) for one in measured for row in one.thresholds],
    )


def _sets(measured: Sequence[Measured]) -> Table:
    return (
        "Conformal sets over image-level splits of the test split",
        ["", "level", "coverage", "sd over splits", "items in the set", "at least one match", "threshold from dev"],
        [
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
        ],
    )


def _fifths(measured: Sequence[Measured]) -> Table:
    return (
        "The same by fifth of the query's uncertainty, coverage (items)",
        ["", "level", "most certain", "2", "3", "4", "least certain"],
        [
            [one.title, f"{100 * row['level']:.0f} %"]
            + [f"{100 * share:.1f} % ({size:.0f})" for share, size in row["fifths"]]
            for one in measured
            for row in one.sets
            if row["fifths"]
        ],
    )


def _words(measured: Sequence[Measured]) -> Table:
    return (
        "What the words mean on the test split",
        ["", "word", "queries", "items that answer, mean", "median", "items in the 90 % set"],
        [
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
        ],
    )


def _abstention(one: Measured, row: Row) -> list[str]:
    dev = "–" if row["dev"] != row["dev"] else f"{row['dev']:.3f}"
    figures = []
    for kind in ("all matches", "one match"):
        figures += [f"{row[f'auroc, {kind}']:.3f}", f"{100 * row[f'found, {kind}']:.1f} %"]
    return [
        one.title,
        f"{row['taken out']} ({row['removed']:.0f})",
        row["statistic"] + (" *" if row["chosen"] else ""),
        dev,
        *figures,
    ]


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} … {high:,}"


def _threshold(one: Measured, row: Row) -> list[str]:
    first = [one.title, row["taken out"], row["kind"], row["statistic"]]
    if row["threshold"] is None:
        return [*first, "not reached on dev, so never claimed", "–", "–"]
    return first + [f"{100 * row[name]:.1f} %" for name in ("precision", "answered", "found")]


def page(measured: Sequence[Measured], caught: Mapping[str, float], splits: int) -> str:
    """The page docs/studies/trust.md."""
    runs = dict.fromkeys(f"{one.world}: {one.about}" for one in measured)
    notes = [
        f"{name} calls near {100 * share:.0f} % of the Flickr8k pairs that experts rated 3 or more of 4 though the "
        "caption is another image's."
        for name, share in caught.items()
    ]
    head = (
        "# Can you trust a run?\n\n"
        "Probabilities, “nothing here matches” and conformal sets, fitted on the dev split and measured on the test "
        "split: on drawn scenes, where all that is true is known, and on Flickr8k. How each works: "
        "[trust](../trust.md).\n\n"
        "Made by `python -m studies trust --scenes SCENES --scenes-run RUN --data FLICKR8K --run RUN "
        f"--out docs/studies` with {'; '.join(runs)}.\n\n"
        "![predicted against observed](trust_reliability.png)\n\n"
        "![precision against share answered](trust_abstention.png)\n\n![sets by uncertainty](trust_sets.png)"
    )
    before = dict.fromkeys(f"{one.world}: {one.before}" for one in measured)
    shown = [_table.markdown(header, rows, title=f"## {title}") for title, header, rows in tables(measured)]
    remarks = [
        f"\\* chosen on dev, by halves of its images. “Before” is, for {'; '.join(before)}.",
        *notes,
        f"Conformal sets: {splits} splits of the test images into halves, one for the threshold and one to measure. "
        "Their shape (how much they follow the best score and σ) comes from dev. Coverage is that of a match drawn at "
        "random from the query's matches.",
        "AUROC and precision are for queries of which half have a match. “Answered at 90 % precision” is the share of "
        "the queries with a match at the best threshold of the test split itself; the next table has the threshold of "
        "dev.",
    ]
    return "\n\n".join([head, *shown, *remarks, *_verdict(measured)]) + "\n"


def _verdict(measured: Sequence[Measured]) -> list[str]:
    lines = ["## What holds and what does not", ""]
    for one in measured:
        before, after = one.probabilities[0], next(row for row in one.probabilities if row["chosen"])
        away = max(abs(100 * (row["coverage"] - row["level"])) for row in one.sets)
        chosen = next(row for row in one.abstention if row["chosen"])
        grows = [row["fifths"][-1][1] > row["fifths"][0][1] for row in one.sets if row["fifths"]]
        sizes = (
            "no σ" if not grows else "smaller for certain queries" if all(grows) else "**not** smaller for certain ones"
        )
        lines.append(
            f"- {one.title}: ECE {before['ece']:.3f} → {after['ece']:.3f}, skill {100 * after['skill']:.1f} %; "
            f"AUROC of “has a match” {chosen['auroc, all matches']:.3f} with all matches and "
            f"{chosen['auroc, one match']:.3f} with one, {100 * chosen['found, all matches']:.0f} % and "
            f"{100 * chosen['found, one match']:.0f} % of the queries with a match answered at 90 % precision; "
            f"coverage at most {away:.2f} points from its level; sets {sizes}."
        )
    return ["\n".join(lines)]
