"""Reliability of match probabilities on the split of the report, uncalibrated and calibrated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from halation._arrays import BoolArray, FloatArray
from halation._errors import InputError, MissingExtra
from halation._progress import Progress, silent
from halation.calibration import PAGE, Calibrators, JudgedScores, ece, reliability
from halation.data import Dataset, Direction
from halation.encoders import Encoded, Model
from halation.report._facts import Missing, ReliabilityFacts, ReliabilityLine
from halation.search import choose_judge, image_digests, judge_scores, judged_truth, uncalibrated_probability
from halation.semantics import PEOPLE, people_map
from halation.training import read_recipe

__all__ = ["AGAINST_ANNOTATIONS", "CALIBRATED", "UNCALIBRATED", "reliabilities"]

UNCALIBRATED, CALIBRATED, AGAINST_ANNOTATIONS = "uncalibrated", "calibrated", "calibrated, against annotations"
"""The names of the lines."""

_JUDGES = {
    "annotations": "A match is an annotated pair. Annotations miss most matches.",
    "exact": "Every match is known.",
}

_CELLS = 1 << 24  # scores per direction: enough for a curve, and a COCO gallery stays in memory


def reliabilities(
    model: Model,
    dataset: Dataset,
    scores: FloatArray,
    queries: Mapping[Direction, Encoded],
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[Direction, ReliabilityFacts | Missing]:
    """The reliability of both directions. scores (n_images, n_captions); queries: what was encoded, for its σ."""
    if dataset.name.endswith(f"-{model.config.data.train}"):
        return dict.fromkeys(("i2t", "t2i"), Missing("this is the training split, on which probabilities mean nothing"))
    calibrators = _read_calibrators(model)
    judge = None if isinstance(calibrators, Missing) else calibrators.judge
    try:
        judge = choose_judge(dataset, judge)
    except MissingExtra as error:
        missing = Missing(
            f"This run is calibrated to the judge {judge}, which is not installed here:", error.remedy or ""
        )
        return dict.fromkeys(("i2t", "t2i"), missing)
    fitted_here = "" if isinstance(calibrators, Missing) else _fitted_here(calibrators, dataset)
    truth = judged_truth(dataset, judge, progress=progress)
    facts: dict[Direction, ReliabilityFacts | Missing] = {}
    sides: tuple[Direction, Direction] = ("i2t", "t2i")
    for direction in sides:
        most = _most_queries(direction, scores)
        judged = judge_scores(direction, scores, dataset, truth, queries[direction], most=most, seed=seed)
        facts[direction] = _reliability(judged, model, calibrators, fitted_here, judge)
    return facts


def _reliability(
    judged: JudgedScores, model: Model, calibrators: Calibrators | Missing, fitted_here: str, judge: str
) -> ReliabilityFacts:
    calibrator = None if isinstance(calibrators, Missing) else calibrators[judged.direction]
    scores, truth = judged.candidates(PAGE if calibrator is None else calibrator.top)
    top, present = scores.shape[1], np.isfinite(scores)
    words, before = uncalibrated_probability(read_recipe(model.folder), model.learnt)
    lines = [_line(UNCALIBRATED, judged.candidate_values(before, top)[present], truth[present])]
    if calibrator is not None:
        predicted = calibrator.probability(scores, judged.gallery, judged.candidate_uncertainty)[present]
        lines.append(_line(CALIBRATED, predicted, truth[present]))
        if judge in PEOPLE:
            lines.append(_line(AGAINST_ANNOTATIONS, predicted, (truth == 1)[present]))
    note = f"Measured on the {top} best candidates of {len(judged):,} queries. {_judged_by(judge)}"
    if len(lines) == 3:
        note += " Annotations miss most matches, so against them the same probabilities look too high."
    note += f" Uncalibrated: {words}."
    if not isinstance(calibrators, Missing) and not fitted_here:
        note += f" Calibrated: fitted on {calibrators.data}, none of them shown here."
    return ReliabilityFacts(tuple(lines), note, calibrators if isinstance(calibrators, Missing) else None, fitted_here)


def _judged_by(judge: str) -> str:
    """A sentence that says what counts as a match."""
    if judge not in PEOPLE:
        return _JUDGES[judge]
    return f"A match is judged by people: {people_map(judge).meaning}, as predicted from the captions."


def _fitted_here(calibrators: Calibrators, dataset: Dataset) -> str:
    """A sentence that says which of these images the calibrators were fitted on; empty if none."""
    kind = "the calibrated line shows how well it fits, not how well it holds on new images; use another split"
    both = len(set(calibrators.images) & set(image_digests(dataset)))
    if both == len(dataset):
        return f"Fitted on these images: {kind}."
    return f"Fitted on {both:,} of these {len(dataset):,} images: {kind}." if both else ""


def _line(name: str, predicted: FloatArray, matched: FloatArray | BoolArray) -> ReliabilityLine:
    curve = reliability(predicted, matched)
    return ReliabilityLine(
        name, tuple(curve.predicted.tolist()), tuple(curve.observed.tolist()), ece(predicted, matched)
    )


def _read_calibrators(model: Model) -> Calibrators | Missing:
    path = model.folder / "calibration.json"
    remedy = f"halation calibrate {model.folder.name}"
    if not path.is_file():
        return Missing("This run is not calibrated, so there is no calibrated line. To get it:", remedy)
    try:
        return Calibrators.load(path, model.fingerprint)
    except InputError:  # of another model, or of an older version
        return Missing("The run's calibration.json belongs to another model or version. Fit it again:", remedy)


def _most_queries(direction: Direction, scores: FloatArray) -> int:
    gallery = int(scores.shape[1] if direction == "i2t" else scores.shape[0])
    return max(1, _CELLS // gallery)
