"""From scores to match probabilities, "nothing here matches", sets that hold a match, and words for σ.

Arrays only; nothing here needs a model. Everything is fitted on `JudgedScores`: the scores of queries against a
gallery, and how likely each item matches by the judge.

    calibrator = fit_calibrator(judged).calibrator
    calibrator.probability(scores, gallery=50_000)      # calibrated, corrected for the gallery's size
    calibrator.verdict(scores, 50_000)                  # "matches", "unsure" or "nothing"
    calibrator.conformal.prediction_set(scores)         # holds a match with probability 0.9
    calibrator.ambiguity(sigma)                         # "specific", "ordinary", "broad"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.calibration._abstention import Abstention, Verdict
    from halation.calibration._ambiguity import Ambiguity
    from halation.calibration._calibrator import Calibrator, Calibrators
    from halation.calibration._conformal import Conformal, Nonconformity
    from halation.calibration._fit import CalibratorFit, fit_calibrator, probability_maps
    from halation.calibration._fit_abstention import AbstentionTrials, choose_abstention, fit_abstention
    from halation.calibration._judged_scores import PAGE, JudgedScores
    from halation.calibration._logistic import fit_logistic
    from halation.calibration._maps import Isotonic, Platt
    from halation.calibration._probability_map import ProbabilityMap
    from halation.calibration._quality import (
        Coverage,
        Reliability,
        auroc,
        brier,
        brier_skill,
        coverage_at_precision,
        ece,
        reliability,
        reliability_plot,
    )

__all__ = [
    "PAGE",
    "Abstention",
    "AbstentionTrials",
    "Ambiguity",
    "Calibrator",
    "CalibratorFit",
    "Calibrators",
    "Conformal",
    "Coverage",
    "Isotonic",
    "JudgedScores",
    "Nonconformity",
    "Platt",
    "ProbabilityMap",
    "Reliability",
    "Verdict",
    "auroc",
    "brier",
    "brier_skill",
    "choose_abstention",
    "coverage_at_precision",
    "ece",
    "fit_abstention",
    "fit_calibrator",
    "fit_logistic",
    "probability_maps",
    "reliability",
    "reliability_plot",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "PAGE": "halation.calibration._judged_scores",
            "Abstention": "halation.calibration._abstention",
            "AbstentionTrials": "halation.calibration._fit_abstention",
            "Ambiguity": "halation.calibration._ambiguity",
            "Calibrator": "halation.calibration._calibrator",
            "CalibratorFit": "halation.calibration._fit",
            "Calibrators": "halation.calibration._calibrator",
            "Conformal": "halation.calibration._conformal",
            "Coverage": "halation.calibration._quality",
            "Isotonic": "halation.calibration._maps",
            "JudgedScores": "halation.calibration._judged_scores",
            "Nonconformity": "halation.calibration._conformal",
            "Platt": "halation.calibration._maps",
            "ProbabilityMap": "halation.calibration._probability_map",
            "Reliability": "halation.calibration._quality",
            "Verdict": "halation.calibration._abstention",
            "auroc": "halation.calibration._quality",
            "brier": "halation.calibration._quality",
            "brier_skill": "halation.calibration._quality",
            "choose_abstention": "halation.calibration._fit_abstention",
            "coverage_at_precision": "halation.calibration._quality",
            "ece": "halation.calibration._quality",
            "fit_abstention": "halation.calibration._fit_abstention",
            "fit_calibrator": "halation.calibration._fit",
            "fit_logistic": "halation.calibration._logistic",
            "probability_maps": "halation.calibration._fit",
            "reliability": "halation.calibration._quality",
            "reliability_plot": "halation.calibration._quality",
        },
    )
