"""Reliability of match probabilities on the split of the report: without calibration, and with the run's own."""

from __future__ import annotations

import numpy as np

from halation._arrays import BoolArray, FloatArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.calibration import Calibrators, JudgedScores, ece, reliability
from halation.data import Dataset, Direction
from halation.encoders import Model, RunFiles
from halation.report._facts import Missing, ReliabilityFacts, ReliabilityLine
from halation.search._calibrate import image_marks
from halation.search._judge import NEAR, judged, naive, near_ones
from halation.training import read_recipe

__all__ = ["reliabilities"]

_CELLS = 1 << 24  # scores a direction looks at: enough for a curve, and a COCO gallery stays in memory


def reliabilities(
    model: Model, dataset: Dataset, scores: FloatArray, *, seed: int = 0, progress: Progress = silent
) -> dict[Direction, ReliabilityFacts | Missing]:
    """Both directions. scores (n_images, n_captions): of the run in detail, as a calibration is fitted."""
    if dataset.name.endswith(f"-{model.config.data.train}"):
        return dict.fromkeys(("i2t", "t2i"), Missing("this is the training split, on which probabilities mean nothing"))
    calibrators = _trusts(model)
    seen = "" if isinstance(calibrators, Missing) else _seen(calibrators, dataset)
    near = near_ones(dataset, "cider", NEAR["cider"], progress=progress)
    found: dict[Direction, ReliabilityFacts | Missing] = {}
    sides: tuple[Direction, Direction] = ("i2t", "t2i")
    for direction in sides:
        every = judged(direction, scores, dataset, None, near, most=_most(direction, scores), seed=seed)
        found[direction] = _reliability(every, model, calibrators, seen)
    return found


def _reliability(asked: JudgedScores, model: Model, calibrators: Calibrators | Missing, seen: str) -> ReliabilityFacts:
    calibrator = None if isinstance(calibrators, Missing) else calibrators[asked.direction]
    scores, matches = asked.mixed() if calibrator is None else asked.mixed(calibrator.top)
    top = scores.shape[1]
    there = np.isfinite(scores)
    words, before = naive(read_recipe(model.folder / RunFiles.CONFIG), model.learnt)
    lines = [_line("uncalibrated", asked.mixed_values(before, top)[there], matches[there])]
    if calibrator is not None:
        lines.append(_line("calibrated", calibrator.probability(scores, asked.gallery)[there], matches[there]))
    note = (
        f"Measured on the {top} best candidates of {len(asked):,} queries, once in the whole gallery and once without "
        f"its matches. Uncalibrated: {words}."
    )
    if not isinstance(calibrators, Missing) and not seen:
        note += f" Calibrated: fitted on {calibrators.data}{', none of them shown here' if calibrators.images else ''}."
    return ReliabilityFacts(tuple(lines), note, calibrators if isinstance(calibrators, Missing) else None, seen)


def _seen(calibrators: Calibrators, dataset: Dataset) -> str:
    """In words, which of these images the calibration was fitted on; empty where it was on none of them."""
    kind = "the calibrated line shows how well it fits, not how well it holds on new images; use another split"
    if not calibrators.images:  # an older calibration.json: it has the name of its data and no more
        same = calibrators.data.endswith(f" images of {dataset.name}")
        return f"Perhaps fitted on these images ({calibrators.data}). If so, {kind}." if same else ""
    both = len(set(calibrators.images) & set(image_marks(dataset)))
    if both == len(dataset):
        return f"Fitted on these images: {kind}."
    return f"Fitted on {both:,} of these {len(dataset):,} images: {kind}." if both else ""


def _line(name: str, predicted: FloatArray, matched: BoolArray) -> ReliabilityLine:
    bins = reliability(predicted, matched)
    return ReliabilityLine(name, tuple(bins.predicted.tolist()), tuple(bins.observed.tolist()), ece(predicted, matched))


def _trusts(model: Model) -> Calibrators | Missing:
    path = model.folder / "calibration.json"
    remedy = f"halation calibrate {model.folder.name}"
    if not path.is_file():
        return Missing("This run is not calibrated, so there is no calibrated line. To get it:", remedy)
    try:
        return Calibrators.load(path, model.fingerprint)
    except InputError:  # of another model, or of an older version
        return Missing("The run's calibration.json belongs to another model or version. Fit it again:", remedy)


def _most(direction: Direction, scores: FloatArray) -> int:
    gallery = int(scores.shape[1] if direction == "i2t" else scores.shape[0])
    return max(1, _CELLS // gallery)
