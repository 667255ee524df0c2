"""`calibrate_run`: fit match probabilities to a run's scores, on images it was not trained on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halation._errors import InputError
from halation._progress import Progress, silent
from halation.calibration import (
    Ambiguity,
    CalibratorFit,
    Calibrators,
    JudgedScores,
    fit_calibrator,
    reliability_plot,
)
from halation.data import Dataset, Direction
from halation.encoders import Model, load
from halation.search._judge import choose_judge, judge_run, judged_truth, uncalibrated_probability
from halation.search._typed import typed_queries
from halation.search._verdict import CALIBRATION
from halation.semantics import PEOPLE, people_map, people_notes
from halation.similarity import Gaussian
from halation.training import read_recipe

__all__ = ["Calibrated", "calibrate_run", "calibration_split", "image_digests"]

_MIN_QUERIES = 20  # to fit words for σ on
_TITLES: dict[Direction, str] = {"t2i": "text → image", "i2t": "image → text"}


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The result of `calibrate_run`: the calibrators that the run keeps, and the fits they were chosen by."""

    calibrators: Calibrators
    fitted: dict[Direction, CalibratorFit]
    before: str  # the probability without calibration, in words

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write the reliability plot of images that were held out, before and after calibration."""
        panels = []
        for direction, title in _TITLES.items():
            choice = self.fitted[direction].choice
            panels.append(
                (title, [(name, choice.predicted[name], choice.observed) for name in ("before", choice.name)])
            )
        reliability_plot(panels, path)


def calibrate_run(
    run: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    split: str | None = None,
    top: int = 24,
    precision: float = 0.9,
    alpha: float = 0.1,
    judge: str | None = None,
    seed: int = 0,
    write: bool = True,
    progress: Progress = silent,
) -> Calibrated:
    """Fit match probabilities, abstention, conformal sets and words for σ.

    With `write`, the run's folder gets `calibration.json` and `reliability.png`.

    split       default: the images of the recipe's dev split that early stopping did not look at (`data.dev_images`).
                If it looked at all of them, all are used and the notes say so
    top         how many candidates of each query are calibrated; hits below that rank get no probability
    precision   of "something here matches" and of "nothing here matches", where half of the queries have a match
    alpha       conformal sets hold a match with probability 1 − alpha
    judge       who says what matches: "people" (a caption written for another image may match too), a stricter or
                looser level of it, "annotations" (as they are) or "exact" (a truth that is complete). Default: "exact"
                where the truth is complete, else "people" where the extra "pretrained" is installed
    """
    model = load(run)
    dataset, notes = calibration_split(model, data, split)
    judge = choose_judge(dataset, judge)
    notes += _judge_notes(judge, dataset)
    before, uncalibrated = uncalibrated_probability(read_recipe(model.folder), model.learnt)
    judged = judge_run(model, dataset, judged_truth(dataset, judge, progress=progress), progress=progress)
    fitted = _fit(judged, progress, top=top, precision=precision, alpha=alpha, before=uncalibrated, seed=seed)
    if dataset.truth.kind == "captions" and judged["t2i"].uncertainty is not None:
        fitted["t2i"] = _with_typed_queries(fitted["t2i"], model, dataset, seed)
        notes.append("words for σ: by parts of captions as they are typed, and how many images have all their words")
    name = f"{len(dataset):,} images of {dataset.name}"
    both = (fitted["t2i"].calibrator, fitted["i2t"].calibrator)
    calibrators = Calibrators(*both, model.fingerprint, name, tuple(notes), image_digests(dataset), judge)
    calibrated = Calibrated(calibrators, fitted, before)
    if write:
        calibrators.save(model.folder / CALIBRATION)
        calibrated.plot(model.folder / "reliability.png")
    return calibrated


def _fit(
    judged: Mapping[Direction, JudgedScores], progress: Progress, **options: Any
) -> dict[Direction, CalibratorFit]:
    """`fit_calibrator` of both directions."""
    fitted: dict[Direction, CalibratorFit] = {}
    for done, (direction, scores) in enumerate(judged.items()):
        progress("calibrating", done, len(judged))
        fitted[direction] = fit_calibrator(scores, **options)
    progress("calibrating", len(judged), len(judged))
    return fitted


def _with_typed_queries(fitted: CalibratorFit, model: Model, dataset: Dataset, seed: int) -> CalibratorFit:
    """The same fit with words for σ from short and long queries: annotated captions alone hardly differ in breadth."""
    texts, covers = typed_queries(dataset.captions, dataset.image_of, seed=seed)
    if len(texts) < _MIN_QUERIES:
        return fitted
    encoded = model.encode_texts(texts)
    assert isinstance(encoded, Gaussian)
    ambiguity = Ambiguity.fit(encoded.uncertainty().numpy(), covers)
    return replace(fitted, calibrator=replace(fitted.calibrator, ambiguity=ambiguity))


def image_digests(dataset: Dataset) -> tuple[str, ...]:
    """A short digest of every image's name and captions, in order; an image has the same digest in every split."""
    texts: list[list[str]] = [[str(name)] for name in dataset.truth.image_ids]
    for caption, image in zip(dataset.captions, dataset.image_of.tolist(), strict=True):
        texts[image].append(caption)
    return tuple(hashlib.sha256("\0".join(of_image).encode()).hexdigest()[:12] for of_image in texts)


def calibration_split(
    model: Model, data: str | os.PathLike[str], split: str | None = None
) -> tuple[Dataset, list[str]]:
    """The images to calibrate on, and notes for the reader about them."""
    recipe = model.config
    name = split or recipe.data.dev
    if name == recipe.data.train:
        raise InputError(
            f"was trained on the split {name}",
            path=model.folder,
            remedy="calibrate on another split",
            argument="split",
        )
    dataset = model.open_dataset(data, name)
    if name != recipe.data.dev:
        return dataset, []
    seen = recipe.data.dev_images
    if 0 < seen < len(dataset):
        rest = dataset.subset(np.arange(seen, len(dataset)))
        return rest, [f"early stopping looked at the first {seen:,} images of the split; these are the others"]
    return dataset, [
        "early stopping chose the epoch on all images of this split, so the figures are slightly optimistic; "
        "train with data.dev_images to keep a part unseen, or name another split"
    ]


def _judge_notes(judge: str, dataset: Dataset) -> list[str]:
    """What a reader must know about who judged."""
    if judge in PEOPLE:
        return [f"a match: {people_map(judge).meaning}, as {judge} predicts it", *people_notes(dataset.captions)]
    if judge == "annotations" and dataset.truth.kind == "captions":
        return [
            "a match: what was annotated. Annotations miss most matches, so these probabilities are too low by "
            'people\'s judgement; let people be the judge (pip install "halation[pretrained]")'
        ]
    return []
