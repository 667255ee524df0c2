"""`calibrate_run`: a run learns how far its scores can be believed, from images it was not trained on."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace

import numpy as np

from halation._errors import InputError, one_of
from halation._progress import Progress, silent
from halation.calibration import Ambiguity, CalibratorFit, Calibrators, fit_calibrator, reliability_plot
from halation.data import Dataset, Direction
from halation.encoders import Model, load
from halation.search._judge import NEAR_RELEVANCE, judge, near_matches, uncalibrated_probability
from halation.search._typed import typed
from halation.similarity import Gaussian
from halation.training import read_recipe

__all__ = ["Calibrated", "calibrate_run", "calibration_split", "image_digests"]

_FEWEST = 20  # queries that words for σ are fitted on
_TITLES: dict[Direction, str] = {"t2i": "text → image", "i2t": "image → text"}


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What `calibrate_run` found: what a run keeps, and what it was chosen by."""

    calibrators: Calibrators
    fitted: dict[Direction, CalibratorFit]
    before: str  # what one would have said without calibration

    def plot(self, path: str | os.PathLike[str]) -> None:
        """The reliability plot, held out by image, before and after."""
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
    relevance: str = "cider",
    near: float | None = None,
    seed: int = 0,
    write: bool = True,
    progress: Progress = silent,
) -> Calibrated:
    """Fit probabilities, abstention, conformal sets and words; `calibration.json` and `reliability.png` into the run.

    split       default: the recipe's dev split, and of it the images that early stopping did not look at
                (`data.dev_images`). Where it looked at all of them, all are used and the notes say so
    top         how many candidates of each query are calibrated; hits below that rank get no probability
    precision   of "something here matches", where half of the queries have a match
    alpha       conformal sets hold a match with probability 1 − alpha
    relevance, near   abstention is taught by queries whose matches were taken out of the gallery, and with them the
                images with a caption relevance ≥ near; only where annotations give each caption one image alone
    """
    model = load(run)
    threshold = _threshold(relevance, near)
    dataset, notes = calibration_split(model, data, split)
    close = near_matches(dataset, relevance, threshold, progress=progress)
    if close is not None:
        notes.append(f"near: {relevance} ≥ {threshold:g} between a caption and an image's captions")
    before, function = uncalibrated_probability(read_recipe(model.folder), model.learnt)
    judged = judge(model, dataset, close, progress=progress)
    fitted: dict[Direction, CalibratorFit] = {}
    for done, (direction, own) in enumerate(judged.items()):
        progress("calibrating", done, 2)
        fitted[direction] = fit_calibrator(own, top=top, precision=precision, alpha=alpha, before=function, seed=seed)
    if close is not None and judged["t2i"].uncertainty is not None:
        fitted["t2i"] = _by_what_is_typed(fitted["t2i"], model, dataset, seed)
        notes.append("words for σ: by parts of captions as they are typed, and how many images have all their words")
    progress("calibrating", 2, 2)
    name = f"{len(dataset):,} images of {dataset.name}"
    both, mark = (fitted["t2i"].calibrator, fitted["i2t"].calibrator), model.fingerprint
    calibrators = Calibrators(*both, mark, name, tuple(notes), image_digests(dataset))
    found = Calibrated(calibrators, fitted, before)
    if write:
        calibrators.save(model.folder / "calibration.json")
        found.plot(model.folder / "reliability.png")
    return found


def _by_what_is_typed(fitted: CalibratorFit, model: Model, dataset: Dataset, seed: int) -> CalibratorFit:
    """The same with words for σ from short and long queries: annotated captions alone hardly differ in breadth."""
    texts, covers = typed(dataset.captions, dataset.image_of, seed=seed)
    if len(texts) < _FEWEST:
        return fitted
    encoded = model.encode_texts(texts)
    assert isinstance(encoded, Gaussian)
    ambiguity = Ambiguity.fit(encoded.uncertainty().numpy(), covers)
    return replace(fitted, calibrator=replace(fitted.calibrator, ambiguity=ambiguity))


def image_digests(dataset: Dataset) -> tuple[str, ...]:
    """A short digest of every image's name and captions, in order: the same image has the same in every split of it."""
    written: list[list[str]] = [[str(name)] for name in dataset.truth.image_ids]
    for caption, image in zip(dataset.captions, dataset.image_of.tolist(), strict=True):
        written[image].append(caption)
    return tuple(hashlib.sha256("\0".join(one).encode()).hexdigest()[:12] for one in written)


def calibration_split(
    model: Model, data: str | os.PathLike[str], split: str | None = None
) -> tuple[Dataset, list[str]]:
    """The images to calibrate on, and what a reader must know of them."""
    recipe = model.config
    name = split or recipe.data.dev
    if name == recipe.data.train:
        raise InputError(f"{name} is what {model.folder} was trained on; calibrate on another split")
    dataset = model.open_dataset(data, name)
    if name != recipe.data.dev:
        return dataset, []
    seen = recipe.data.dev_images
    if 0 < seen < len(dataset):
        rest = dataset.subset(np.arange(seen, len(dataset)))
        return rest, [f"early stopping looked at the first {seen:,} images of the split; these are the others"]
    return dataset, [
        "early stopping looked at all images of this split (to choose among epochs), so figures are a little kind; "
        "train with data.dev_images to keep a part unseen, or name another split"
    ]


def _threshold(relevance: str, near: float | None) -> float:
    if near is not None:
        return near
    one_of(relevance, NEAR_RELEVANCE, "relevance with a known threshold (give near)")
    return NEAR_RELEVANCE[relevance]
