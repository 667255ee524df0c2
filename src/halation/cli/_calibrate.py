"""`halation calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halation.cli._console import progress_bar

if TYPE_CHECKING:
    from halation.calibration import Abstention, Ambiguity, Calibrator, Conformal
    from halation.search import Calibrated

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of this file to the command line."""
    app.command(rich_help_panel="Train")(calibrate)


def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    data: Annotated[Path, typer.Option(help="The dataset's folder.")],
    split: Annotated[
        str | None,
        typer.Option(help=r"The split to use.  \[default: the part of the dev split that training did not see]"),
    ] = None,
    top: Annotated[
        int, typer.Option(help="Calibrate this many of each query's best hits; later hits get no probability.")
    ] = 24,
    precision: Annotated[
        float, typer.Option(help='How often "matches" and "nothing matches" must be right, 0 to 1.')
    ] = 0.9,
    alpha: Annotated[float, typer.Option(help="Result sets contain a match with probability 1 − alpha.")] = 0.1,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Who says what matches: people, people-loose, people-strict, people-words, annotations or exact.  "
            r"\[default: exact if the truth is complete, else people]"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed that divides the images into a part to fit on and a part to test on.")
    ] = 0,
) -> None:
    """Turn a run's scores into match probabilities, and learn when nothing matches.

    A match probability predicts what the judge says: people, by default, would they accept the picture for the words?
    """
    from halation.search import calibrate_run

    with progress_bar() as progress:
        fitted = calibrate_run(
            run,
            data,
            split=split,
            top=top,
            precision=precision,
            alpha=alpha,
            judge=judge,
            seed=seed,
            progress=progress,
        )
    print(report(fitted, top))
    print(f"\nwrote {run / 'calibration.json'} and {run / 'reliability.png'}; searches with this run now use them")


def report(fitted: Calibrated, top: int) -> str:
    """The calibration as text: what it was fitted on, and its quality in each direction."""
    from halation import _table

    calibrators = fitted.calibrators
    blocks = ["\n".join([f"calibrated on {calibrators.data}", *(f"  {note}" for note in calibrators.notes)])]
    for title, calibrator in (("text → image", calibrators.t2i), ("image → text", calibrators.i2t)):
        rows = [
            [
                f"{row.name}{' *' if row.name == calibrator.chosen else ''}",
                f"{row.ece:.4f}",
                f"{row.brier:.4f}",
                f"{100 * row.skill:.1f} %",
            ]
            for row in calibrator.qualities
        ]
        reason = fitted.fitted[calibrator.probability_map.direction].choice.reason
        notes = [f"* chosen: {reason}", *_lines(calibrator)]
        heading = f"{title}: match probability of each query's {top} best, on images held out"
        header = ["", "ECE", "Brier", "skill over the base rate"]
        blocks.append(_table.text(header, rows, title=heading, notes=notes))
    blocks.append(f"before: {fitted.before}")
    return "\n\n".join(blocks)


def _lines(calibrator: Calibrator) -> list[str]:
    calibration, abstention, conformal = calibrator.probability_map, calibrator.abstention, calibrator.conformal
    rate = f"{calibration.positives:.1f} match on average (base rate {100 * calibration.base_rate:.2f} %)"
    exponent = calibration.gallery_exponent
    power = f"odds fall with the power {exponent:.2f} of a gallery's size" if exponent else "for a gallery of any size"
    area = f"AUROC {calibrator.aurocs[abstention.statistic]:.3f}"
    if abstention.statistic != "best score":
        area += f" (best score alone {calibrator.aurocs['best score']:.3f})"
    return [
        f"fitted for {calibration.gallery:,} items, of which {rate}; {power}",
        f"does anything match? by {abstention.statistic}, {area}",
        *_answers(abstention),
        f"a match is inside with probability {100 * (1 - conformal.alpha):.0f} %: {_bound(conformal)}",
        _words(calibrator.ambiguity),
    ]


def _answers(abstention: Abstention) -> list[str]:
    """The three answers, and how many queries get each."""
    right = f"right at least {100 * abstention.precision:.0f} % of the time"
    yes = f'"something matches": {100 * abstention.answered:.0f} % of the queries with a match; {right}'
    no = f'"nothing matches": {100 * abstention.refused:.0f} % of the queries without a match; {right}'
    if abstention.matches_from is None:
        yes = f'"something matches": never; it would not be {right}'
    if abstention.nothing_below is None:
        no = f'"nothing matches": never; it would not be {right}'
    return [f"  {yes}", f"  {no}", '  "not sure": the rest']


def _bound(conformal: Conformal) -> str:
    """The scores that a result set takes, as an inequality."""
    weight, slope = conformal.nonconformity.best_weight, conformal.nonconformity.slope
    terms = [f"{weight:g} · best", f"{-conformal.quantile:+.3g}"] if weight else [f"{-conformal.quantile:.3g}"]
    spread = f" {-slope:+.2g} · x, x: ln σ, standardised" if slope else ""
    return "score ≥ " + " ".join(terms) + spread


def _words(ambiguity: Ambiguity | None) -> str:
    if ambiguity is None:
        return "no σ, so no word for a query's ambiguity"
    measured = (
        "" if ambiguity.correlation is None else f" (σ against how many items answer: {ambiguity.correlation:.2f})"
    )
    if not ambiguity.is_informative:
        return f"σ says nothing about how much a query covers{measured}: no word for it"
    low, high = ("broad", "specific") if (ambiguity.correlation or 0) < 0 else ("specific", "broad")
    return f"{low}: σ ≤ {ambiguity.low:.3g}; {high}: σ > {ambiguity.high:.3g}{measured}"
