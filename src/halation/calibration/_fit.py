"""`fit_calibrator`: everything of one direction from judged scores; which probability map, by held-out images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from halation._arrays import FloatArray
from halation._errors import InputError
from halation.calibration._ambiguity import Ambiguity
from halation.calibration._calibrator import Calibrator, MapQuality
from halation.calibration._conformal import Conformal, Nonconformity
from halation.calibration._fit_abstention import choose_abstention, fit_abstention
from halation.calibration._judged_scores import PAGE, JudgedScores
from halation.calibration._probability_map import Kind, ProbabilityMap
from halation.calibration._quality import brier, brier_skill, ece

__all__ = ["CalibratorFit", "MapChoice", "choose_map", "fit_calibrator", "probability_maps"]

_KINDS: dict[str, tuple[Kind, tuple[str, ...]]] = {  # the simplest first
    "score": ("platt", ()),
    "score, isotonic": ("isotonic", ()),
    "score and σ": ("platt", ("sigma",)),
    "score, best and mean": ("platt", ("best", "mean")),
    "score, best and mean, isotonic": ("isotonic", ("best", "mean")),
    "score, best, mean and σ": ("platt", ("best", "mean", "sigma")),
}
_WORTH = 0.002  # skill that a less simple map must gain
_DEPTH = 10  # the number of best scores that abstention uses
_FEWEST_IMAGES = 20


@dataclass(frozen=True, eq=False)
class MapChoice:
    """The probability map, fitted on everything, and the held-out figures it was chosen by.

    predicted, observed   held-out probabilities by name, and how likely those candidates match by the judge
    """

    probability_map: ProbabilityMap
    name: str
    reason: str
    qualities: tuple[MapQuality, ...]
    predicted: dict[str, FloatArray]
    observed: FloatArray


@dataclass(frozen=True, eq=False)
class CalibratorFit:
    """What `fit_calibrator` returns: the calibrator, and the held-out predictions behind its choice of a map."""

    calibrator: Calibrator
    choice: MapChoice


def fit_calibrator(
    judged: JudgedScores,
    *,
    top: int = PAGE,
    precision: float = 0.9,
    alpha: float = 0.1,
    before: Callable[[FloatArray], FloatArray] | None = None,
    seed: int = 0,
) -> CalibratorFit:
    """Probabilities, abstention, conformal sets and words for σ, from queries that the model was not trained on.

    top         the number of candidates per query that are calibrated; abstention uses the ten best
    precision   of "something matches" and of "nothing matches"; in between the answer is "not sure"
    alpha       conformal sets hold a match with probability 1 − alpha; their nonconformity is fitted on one half of the
                images, their quantile on the other
    before      what you would call a probability without calibration, as a function of scores (q, n); measured beside
    """
    if len(judged.images) < _FEWEST_IMAGES:
        raise InputError(f"{len(judged.images)} images are too few to calibrate on; give at least {_FEWEST_IMAGES}")
    choice = choose_map(judged, top=top, before=before, seed=seed)
    abstention, aurocs = choose_abstention(judged, depth=min(top, _DEPTH), precision=precision, seed=seed)
    by_best = fit_abstention(judged, depth=1, precision=precision, seed=seed)
    first, second = judged.halves(seed)
    nonconformity = Nonconformity.fit(judged.queries_of(first), alpha)
    conformal = Conformal.fit(judged.queries_of(second), nonconformity, alpha)
    ambiguity = None
    if judged.uncertainty is not None:
        ambiguity = Ambiguity.fit(judged.uncertainty, np.asarray(judged.truth.sum(axis=1)))
    calibrator = Calibrator(
        choice.probability_map, abstention, by_best, conformal, ambiguity, choice.name, choice.qualities, aurocs
    )
    return CalibratorFit(calibrator, choice)


def probability_maps(judged: JudgedScores, *, top: int = PAGE, seed: int = 0) -> dict[str, ProbabilityMap]:
    """Every kind of probability map by its name, the simplest first, fitted on these scores.

    Whether a person accepts a picture does not depend on what else is in the gallery: where the judge is graded, no map
    looks at the query's other scores.
    """
    return {
        name: ProbabilityMap.fit(judged, kind, context=context, top=top, seed=seed)
        for name, (kind, context) in _KINDS.items()
        if ("sigma" not in context or judged.has_sigma) and not (judged.is_graded and "best" in context)
    }


def choose_map(
    judged: JudgedScores,
    *,
    top: int = PAGE,
    before: Callable[[FloatArray], FloatArray] | None = None,
    seed: int = 0,
) -> MapChoice:
    """The kind of probability map with the best Brier score on held-out images, fitted on all images.

    Two halves by image, each measured by the maps of the other, each with its own images as the gallery. A less simple
    map has to gain at least 0.002 of skill.
    """
    predicted: dict[str, list[FloatArray]] = {}
    observed = []
    first, second = judged.halves(seed)
    for fit_on, measure_on in ((first, second), (second, first)):
        measured = judged.of_images(measure_on)
        scores, truth = measured.candidates(top)
        present = np.isfinite(scores)
        if before is not None:
            predicted.setdefault("before", []).append(measured.candidate_values(before, top)[present])
        for name, probability_map in probability_maps(judged.of_images(fit_on), top=top, seed=seed).items():
            values = probability_map(scores, measured.gallery, uncertainty=measured.candidate_uncertainty)
            predicted.setdefault(name, []).append(values[present])
        observed.append(truth[present])
    labels = np.concatenate(observed)
    together = {name: np.concatenate(parts) for name, parts in predicted.items()}
    qualities = tuple(
        MapQuality(name, ece(p, labels), brier(p, labels), brier_skill(p, labels)) for name, p in together.items()
    )
    name, reason = _best([row for row in qualities if row.name != "before"])
    kind, context = _KINDS[name]
    final = ProbabilityMap.fit(judged, kind, context=context, top=top, seed=seed)
    return MapChoice(final, name, reason, qualities, together, labels)


def _best(qualities: list[MapQuality]) -> tuple[str, str]:
    chosen = qualities[0]
    for row in qualities[1:]:
        if row.skill > chosen.skill + _WORTH:
            chosen = row
    others = ", ".join(f"{row.name} {row.brier:.4f}" for row in qualities if row is not chosen)
    return chosen.name, f"Brier {chosen.brier:.4f} on held-out images (others: {others})"
