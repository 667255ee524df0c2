"""What a calibration says of one query's hits: probabilities, whether anything matches, how many hold a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from halation.calibration import Calibrator

__all__ = ["CANNOT_TELL", "Verdict", "judged"]

CANNOT_TELL = "this model cannot tell when nothing matches; it shows the nearest in any case"
_REORDERED = (
    "hubs are corrected in the order alone: probabilities are of the model's own scores and need not fall with it, and "
    "how many of the first hold a match is not said"
)


@dataclass(frozen=True)
class Verdict:
    """Probabilities in the order of the scores, None below the rank they were fitted on; notes in words."""

    probabilities: list[float | None]
    nothing_matches: bool = False
    within: int | None = None
    coverage: float | None = None
    notes: list[str] = field(default_factory=list)


def judged(
    calibrator: Calibrator | None,
    scores: Sequence[float],
    gallery: int,
    uncertainty: float | None,
    shown: int,
    *,
    reordered: bool = False,
) -> Verdict:
    """What to say of these scores, the model's own, in the order of the hits, of which the first `shown` are shown.

    reordered   the order is corrected for hubs: the scores need not fall. All was fitted on scores as they are and in
                their own order, so that is how they are judged; what speaks of "the first so many" is left out
    """
    if calibrator is None or not scores:
        return Verdict([None] * len(scores), nothing_matches=not scores)
    best_first = sorted(scores, reverse=True)
    fitted = [float(p) for p in calibrator.probability(scores, gallery)[: calibrator.top]]
    nothing = calibrator.nothing_matches(best_first, gallery, uncertainty)
    within = None if reordered else calibrator.match_within(best_first, gallery, uncertainty)
    silent = None if nothing else _REORDERED if reordered else calibrator.no_guarantee(gallery)
    below = f"probabilities were calibrated on the {calibrator.top} best hits; those below have none"
    notes = [
        below if min(shown, len(scores)) > calibrator.top else None,
        None if calibrator.can_abstain(len(scores), uncertainty) else CANNOT_TELL,
        calibrator.note(gallery),
        silent,
    ]
    return Verdict(
        [*fitted, *[None] * (len(scores) - len(fitted))],
        nothing,
        within,
        None if within is None else 1 - calibrator.conformal.alpha,
        [note for note in notes if note],
    )
