"""`halation calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halation.cli._console import progress_bar

if TYPE_CHECKING:
    from halation.calibration import Ambiguity, Calibrator
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
    precision: Annotated[float, typer.Option(help='How often "something here matches" must be right, 0 to 1.')] = 0.9,
    alpha: Annotated[float, typer.Option(help="Result sets contain a match with probability 1 − alpha.")] = 0.1,
    relevance: Annotated[
        str, typer.Option(help="Relevance that decides which images are near a caption: cider or sentence.")
    ] = "cider",
    near: Annotated[
        float | None, typer.Option(help=r"Relevance from which an image is near.  \[default: as people agreed]")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed that divides the images into a part to fit on and a part to test on.")
    ] = 0,
) -> None:
    """Turn a run's scores into match probabilities, and learn when nothing matches."""
    from halation.search import calibrate_run

    with progress_bar() as progress:
        fitted = calibrate_run(
            run,
            data,
            split=split,
            top=top,
            precision=precision,
            alpha=alpha,
            relevance=relevance,
            near=near,
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
    power = f"odds fall with the power {calibration.gallery_exponent:.2f} of a gallery's size"
    areas = (
        f"AUROC {calibrator.aurocs[abstention.statistic]:.3f} (best score alone {calibrator.aurocs['best score']:.3f})"
    )
    sure = f"{100 * abstention.precision:.0f} %"
    answered = f"; at {sure} precision {100 * abstention.recall:.0f} % of the queries with a match are answered"
    if abstention.threshold is None:
        answered = f"; no threshold is right {sure} of the time, so it never claims a match"
    shape = conformal.nonconformity
    bound = f"score ≥ {shape.best_weight:g} · best − {conformal.quantile:.3g} {-shape.slope:+.2g} · x, x: ln σ"
    return [
        f"fitted for {calibration.gallery:,} items, of which {rate}; {power}",
        "half of the queries have all that matches taken out of the gallery, in the fit and in these figures",
        f"nothing matches: by {abstention.statistic}, {areas}{answered}",
        f"a match is inside with probability {100 * (1 - conformal.alpha):.0f} %: {bound}, standardised",
        _words(calibrator.ambiguity),
    ]


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
