"""Reliability of match probabilities on the split of the report, uncalibrated and calibrated."""

from __future__ import annotations

import numpy as np

from halation._arrays import BoolArray, FloatArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.calibration import Calibrators, JudgedScores, ece, reliability
from halation.data import Dataset, Direction
from halation.encoders import Model
from halation.report._facts import Missing, ReliabilityFacts, ReliabilityLine
from halation.search import image_digests, judge_scores, near_matches, uncalibrated_probability
from halation.training import read_recipe

__all__ = ["reliabilities"]

_CELLS = 1 << 24  # scores per direction: enough for a curve, and a COCO gallery stays in memory


def reliabilities(
    model: Model, dataset: Dataset, scores: FloatArray, *, seed: int = 0, progress: Progress = silent
) -> dict[Direction, ReliabilityFacts | Missing]:
    """The reliability of both directions. scores (n_images, n_captions)."""
    if dataset.name.endswith(f"-{model.config.data.train}"):
        return dict.fromkeys(("i2t", "t2i"), Missing("this is the training split, on which probabilities mean nothing"))
    calibrators = _read_calibrators(model)
    fitted_here = "" if isinstance(calibrators, Missing) else _fitted_here(calibrators, dataset)
    near = near_matches(dataset, progress=progress)
    facts: dict[Direction, ReliabilityFacts | Missing] = {}
    sides: tuple[Direction, Direction] = ("i2t", "t2i")
    for direction in sides:
        judged = judge_scores(direction, scores, dataset, None, near, most=_most_queries(direction, scores), seed=seed)
        facts[direction] = _reliability(judged, model, calibrators, fitted_here)
    return facts


def _reliability(
    judged: JudgedScores, model: Model, calibrators: Calibrators | Missing, fitted_here: str
) -> ReliabilityFacts:
    calibrator = None if isinstance(calibrators, Missing) else calibrators[judged.direction]
    scores, matches = judged.mixed() if calibrator is None else judged.mixed(calibrator.top)
    top = scores.shape[1]
    present = np.isfinite(scores)
    words, before = uncalibrated_probability(read_recipe(model.folder), model.learnt)
    lines = [_line("uncalibrated", judged.mixed_values(before, top)[present], matches[present])]
    if calibrator is not None:
        lines.append(_line("calibrated", calibrator.probability(scores, judged.gallery)[present], matches[present]))
    note = (
        f"Measured on the {top} best candidates of {len(judged):,} queries, once in the whole gallery and once without "
        f"its matches. Uncalibrated: {words}."
    )
    if not isinstance(calibrators, Missing) and not fitted_here:
        note += f" Calibrated: fitted on {calibrators.data}{', none of them shown here' if calibrators.images else ''}."
    return ReliabilityFacts(tuple(lines), note, calibrators if isinstance(calibrators, Missing) else None, fitted_here)


def _fitted_here(calibrators: Calibrators, dataset: Dataset) -> str:
    """A sentence that says which of these images the calibrators were fitted on; empty if none."""
    kind = "the calibrated line shows how well it fits, not how well it holds on new images; use another split"
    if not calibrators.images:  # an older calibration.json has only the name of its data
        same = calibrators.data.endswith(f" images of {dataset.name}")
        return f"Perhaps fitted on these images ({calibrators.data}). If so, {kind}." if same else ""
    both = len(set(calibrators.images) & set(image_digests(dataset)))
    if both == len(dataset):
        return f"Fitted on these images: {kind}."
    return f"Fitted on {both:,} of these {len(dataset):,} images: {kind}." if both else ""


def _line(name: str, predicted: FloatArray, matched: BoolArray) -> ReliabilityLine:
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
