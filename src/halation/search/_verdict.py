"""How far to trust the hits of a query: probabilities, whether anything matches, how many hold a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from halation._errors import InputError
from halation.calibration import Calibrator, Calibrators, Verdict
from halation.encoders import RunFolder

__all__ = ["CALIBRATION", "JudgedHits", "judge_hits", "read_calibrators"]

CALIBRATION = "calibration.json"

_CANNOT_TELL = "this model cannot tell when nothing matches; it shows the nearest in any case"
_REORDERED = (
    "the order is corrected for hubs: probabilities belong to the model's own scores and need not fall with it, and "
    "how many of the first hits hold a match is not known"
)


@dataclass(frozen=True)
class JudgedHits:
    """How far to trust the hits of one query.

    probabilities      in the order of the scores; None below the rank they were fitted on
    verdict            "matches", "unsure" or "nothing"; None without a calibrator
    expected_matches   how many of the shown hits match, on average
    within, coverage   the first `within` hits hold a match with probability `coverage`, if anything matches
    notes              in words
    """

    probabilities: list[float | None]
    verdict: Verdict | None = None
    expected_matches: float | None = None
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
) -> JudgedHits:
    """Probabilities and notes for scores of the model, in the order of the hits; the first `shown` are shown.

    reordered   the order is corrected for hubs, so the scores need not fall. The calibrator was fitted on scores in
                their own order and judges them so; how many of the first hits hold a match is then unknown
    """
    if calibrator is None or not scores:
        return JudgedHits([None] * len(scores), None if scores else "nothing")
    best_first = sorted(scores, reverse=True)
    fitted = [float(p) for p in calibrator.probability(scores, gallery, uncertainty)[: calibrator.top]]
    verdict = calibrator.verdict(best_first, gallery, uncertainty)
    within = None if reordered else calibrator.match_within(best_first, gallery, uncertainty)
    no_guarantee = None if verdict == "nothing" else _REORDERED if reordered else calibrator.no_guarantee(gallery)
    below = f"probabilities were calibrated on the {calibrator.top} best hits; those below have none"
    notes = [
        below if min(shown, len(scores)) > calibrator.top else None,
        None if calibrator.can_say_nothing(len(scores), uncertainty) else _CANNOT_TELL,
        calibrator.note(gallery),
        no_guarantee,
    ]
    return JudgedHits(
        [*fitted, *[None] * (len(scores) - len(fitted))],
        verdict,
        sum(fitted[:shown]),
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
    return calibrators, [] if calibrators.t2i.can_say_nothing() else [_CANNOT_TELL]
