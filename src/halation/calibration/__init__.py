"""How far to believe a score: match probabilities, "nothing here matches", sets that hold a match, words for σ.

Arrays only; nothing here knows a model. Everything is fitted on `JudgedScores`: the scores of queries against a
gallery, with what matches.

    fitted = fit_trust(judged)
    fitted.trust.probability(scores, gallery=50_000)     # calibrated, corrected for the gallery's size
    fitted.trust.nothing_matches(scores, 50_000)
    fitted.trust.conformal.rows(scores)                  # holds a match with probability 0.9
    fitted.trust.ambiguity(sigma)                        # "specific", "ordinary", "broad"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.calibration._abstention import Abstention
    from halation.calibration._ambiguity import Ambiguity
    from halation.calibration._calibrator import Calibrator, Calibrators
    from halation.calibration._candidates import Candidates, top_candidates
    from halation.calibration._choose import Before, Choice, Figures, choose
    from halation.calibration._conformal import Conformal, Shape
    from halation.calibration._fit import Fitted, fit_calibrator
    from halation.calibration._judged import JudgedScores
    from halation.calibration._maps import Isotonic, Platt
    from halation.calibration._plot import reliability_plot
    from halation.calibration._probability_map import ProbabilityMap
    from halation.calibration._quality import Reliability, brier, brier_skill, ece, reliability
    from halation.calibration._roc import Coverage, auroc, coverage_at_precision
    from halation.calibration._trials import Trial, choose_abstention, fit_abstention, trials

__all__ = [
    "Abstention",
    "Ambiguity",
    "Before",
    "Calibrator",
    "Calibrators",
    "Candidates",
    "Choice",
    "Conformal",
    "Coverage",
    "Figures",
    "Fitted",
    "Isotonic",
    "JudgedScores",
    "Platt",
    "ProbabilityMap",
    "Reliability",
    "Shape",
    "Trial",
    "auroc",
    "brier",
    "brier_skill",
    "choose",
    "choose_abstention",
    "coverage_at_precision",
    "ece",
    "fit_abstention",
    "fit_calibrator",
    "reliability",
    "reliability_plot",
    "top_candidates",
    "trials",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "Abstention": "halation.calibration._abstention",
            "Ambiguity": "halation.calibration._ambiguity",
            "Before": "halation.calibration._choose",
            "ProbabilityMap": "halation.calibration._probability_map",
            "Candidates": "halation.calibration._candidates",
            "Choice": "halation.calibration._choose",
            "Conformal": "halation.calibration._conformal",
            "Coverage": "halation.calibration._roc",
            "Figures": "halation.calibration._choose",
            "Fitted": "halation.calibration._fit",
            "Isotonic": "halation.calibration._maps",
            "JudgedScores": "halation.calibration._judged",
            "Platt": "halation.calibration._maps",
            "Reliability": "halation.calibration._quality",
            "Shape": "halation.calibration._conformal",
            "Trial": "halation.calibration._trials",
            "Calibrator": "halation.calibration._calibrator",
            "Calibrators": "halation.calibration._calibrator",
            "auroc": "halation.calibration._roc",
            "brier": "halation.calibration._quality",
            "brier_skill": "halation.calibration._quality",
            "choose": "halation.calibration._choose",
            "choose_abstention": "halation.calibration._trials",
            "coverage_at_precision": "halation.calibration._roc",
            "ece": "halation.calibration._quality",
            "fit_abstention": "halation.calibration._trials",
            "fit_calibrator": "halation.calibration._fit",
            "reliability": "halation.calibration._quality",
            "reliability_plot": "halation.calibration._plot",
            "top_candidates": "halation.calibration._candidates",
            "trials": "halation.calibration._trials",
        },
    )
