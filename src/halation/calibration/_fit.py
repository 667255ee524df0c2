"""`fit_calibrator`: everything of one direction from judged scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halation._errors import InputError
from halation.calibration._ambiguity import Ambiguity
from halation.calibration._calibrator import Calibrator
from halation.calibration._choose import Before, Choice, choose
from halation.calibration._conformal import Conformal, Shape
from halation.calibration._judged import JudgedScores
from halation.calibration._trials import choose_abstention, fit_abstention

__all__ = ["TOP", "Fitted", "fit_calibrator"]

TOP = 24  # a page of hits
_DEPTH = 10  # best scores that abstention looks at
_FEWEST = 20


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was fitted, and the held-out predictions behind the choice."""

    calibrator: Calibrator
    choice: Choice


def fit_calibrator(
    judged: JudgedScores,
    *,
    top: int = TOP,
    precision: float = 0.9,
    alpha: float = 0.1,
    before: Before | None = None,
    seed: int = 0,
) -> Fitted:
    """Calibration, abstention, conformal sets and words from queries that the model was not trained on.

    top         candidates of each query that are calibrated, all counting alike; abstention looks at the ten best
    precision   of "something matches"
    alpha       conformal sets hold a match with probability 1 − alpha; their shape comes from one half of the images,
                their reach from the other
    """
    if len(judged.images) < _FEWEST:
        raise InputError(f"{len(judged.images)} images to calibrate on are too few; {_FEWEST} are the least")
    choice = choose(judged, top=top, before=before, seed=seed)
    abstention, areas = choose_abstention(judged, depth=min(top, _DEPTH), precision=precision, seed=seed)
    plain = fit_abstention(judged, depth=1, precision=precision, seed=seed)
    shaped, reached = judged.halves(seed)
    shape = Shape.fit(judged.asked_by(shaped), alpha)
    conformal = Conformal.fit(judged.asked_by(reached), shape, alpha)
    answers = judged.matches if judged.near is None else judged.matches | judged.near
    ambiguity = (
        None if judged.uncertainty is None else Ambiguity.fit(judged.uncertainty, np.asarray(answers.sum(axis=1)))
    )
    calibrator = Calibrator(
        choice.calibration, abstention, plain, conformal, ambiguity, choice.name, choice.figures, areas
    )
    return Fitted(calibrator, choice)
