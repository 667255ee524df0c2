"""How far to trust the hits of a query: probabilities, whether anything matches, how many hold a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from halation._errors import InputError
from halation.calibration import Calibrator, Calibrators
from halation.encoders import RunFolder

__all__ = ["CALIBRATION", "Verdict", "judge_hits", "read_calibrators"]

CALIBRATION = "calibration.json"

_CANNOT_TELL = "this model cannot tell when nothing matches; it shows the nearest in any case"
_REORDERED = (
    "the order is corrected for hubs: probabilities belong to the model's own scores and need not fall with it, and "
    "how many of the first hits hold a match is not known"
)


@dataclass(frozen=True)
class Verdict:
    """Probabilities in the order of the scores, None below the rank they were fitted on; notes in words."""

    probabilities: list[float | None]
    nothing_matches: bool = False
    within: int | None = None
    coverage: float | None = None
    notes: list[str] = field(default_factory=list)


def judge_hits(
    calibrator: Calibrator | None,
    scores: Sequence[float],
    gallery: int,
    uncertainty: float | None,
    shown: int,
    *,
    reordered: bool = False,
) -> Verdict:
    """Probabilities and notes for scores of the model, in the order of the hits; the first `shown` are shown.

    reordered   the order is corrected for hubs, so the scores need not fall. The calibrator was fitted on scores in
                their own order and judges them so; how many of the first hits hold a match is then unknown
    """
    if calibrator is None or not scores:
        return Verdict([None] * len(scores), nothing_matches=not scores)
    best_first = sorted(scores, reverse=True)
    fitted = [float(p) for p in calibrator.probability(scores, gallery)[: calibrator.top]]
    nothing = calibrator.nothing_matches(best_first, gallery, uncertainty)
    within = None if reordered else calibrator.match_within(best_first, gallery, uncertainty)
    no_guarantee = None if nothing else _REORDERED if reordered else calibrator.no_guarantee(gallery)
    below = f"probabilities were calibrated on the {calibrator.top} best hits; those below have none"
    notes = [
        below if min(shown, len(scores)) > calibrator.top else None,
        None if calibrator.can_abstain(len(scores), uncertainty) else _CANNOT_TELL,
        calibrator.note(gallery),
        no_guarantee,
    ]
    return Verdict(
        [*fitted, *[None] * (len(scores) - len(fitted))],
        nothing,
        within,
        None if within is None else 1 - calibrator.conformal.alpha,
        [note for note in notes if note],
    )


def read_calibrators(run: Path, mark: str | None = None) -> tuple[Calibrators | None, list[str]]:
    """The calibrators of a run, and notes for whoever searches with it; None where it has none that fit.

    mark   the run's fingerprint, if you know it already
    """
    path = run / CALIBRATION
    if not path.is_file():
        return None, []
    try:
        calibrators = Calibrators.load(path, mark or RunFolder(run).fingerprint())
    except InputError as error:
        return None, [f"there are no probabilities: {error.render(lambda file: file.name)}"]
    return calibrators, [] if calibrators.t2i.can_abstain() else [_CANNOT_TELL]
