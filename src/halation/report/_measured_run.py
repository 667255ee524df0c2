"""`MeasuredRun`: a run on a split, with its embeddings, scores and measures."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from halation._arrays import FloatArray
from halation._progress import Progress
from halation.data import Dataset, Direction, Truth
from halation.encoders import Encoded, Model, MultiEmbedding, load
from halation.evaluation import Report, default_metrics, evaluate, people_metrics
from halation.report._facts import Map, Missing, RunFacts
from halation.report._figure_data import training_of
from halation.report._map import Clouds, make_map
from halation.semantics import MiniLM
from halation.similarity import Gaussian
from halation.training import Run, read_recipe

__all__ = ["MeasuredRun", "measure_run"]


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A run on a split.

    number   0 for the report's run, 1 for the run it is compared with
    scores   (n_images, n_captions)
    sigma    of "images" and "captions"; empty if embeddings are points
    """

    title: str
    number: int
    model: Model
    dataset: Dataset
    images: Encoded
    captions: Encoded
    scores: FloatArray
    report: Report
    sigma: dict[str, FloatArray]

    def scores_of(self, direction: Direction, item: int) -> FloatArray:
        """The scores (n,) of one query."""
        return self.scores[item] if direction == "i2t" else np.ascontiguousarray(self.scores[:, item])

    def facts(self) -> RunFacts:
        """The run in one line."""
        recipe, run = read_recipe(self.model.folder), Run(self.model.folder)
        terms = [(name, term.weight) for name, term in vars(recipe.loss).items() if term.weight]
        losses = ", ".join(f"{name} × {weight:g}" for name, weight in terms)
        seconds = run.about().get("seconds")
        return RunFacts(
            self.title,
            recipe.name,
            f"{recipe.model}; losses {losses}",
            float(seconds) if isinstance(seconds, (int, float)) else None,
            training_of(run, self.number),
        )

    def map(self, *, seed: int, progress: Progress) -> Map | Missing:
        """The map of the embeddings, if there are any."""
        progress("map", 0, 1)
        clouds = self._clouds()
        made = clouds if isinstance(clouds, Missing) else make_map(clouds, self.dataset.image_of, seed=seed)
        progress("map", 1, 1)
        return made

    def _clouds(self) -> Clouds | Missing:
        images, captions = self.images, self.captions
        if isinstance(images, MultiEmbedding) and isinstance(captions, MultiEmbedding):
            notes = ("this model has several embeddings per item; each item is shown at their mean",)
            return Clouds(images.points.mean(1).numpy(), captions.points.mean(1).numpy(), notes=notes)
        if not isinstance(images, Gaussian) or not isinstance(captions, Gaussian):
            return Missing("This model scores pairs directly, so images and captions have no embeddings to map")
        if images.is_point or captions.is_point:
            return Clouds(images.mean.numpy(), captions.mean.numpy())
        variances = images.var.numpy(), captions.var.numpy()
        return Clouds(images.mean.numpy(), captions.mean.numpy(), *variances)


def measure_run(
    title: str, number: int, run: str | os.PathLike[str], data: str | os.PathLike[str], split: str, progress: Progress
) -> MeasuredRun:
    """Encode, score and measure a run on a split."""
    model = load(run)
    dataset = model.open_dataset(data, split)
    images, captions = model.encode_dataset(dataset, progress=progress)
    scores: FloatArray = model.network.all_scores(images, captions, progress=progress).numpy()
    report = evaluate(scores, dataset.truth, _metrics(dataset.truth), progress=progress)
    return MeasuredRun(title, number, model, dataset, images, captions, scores, report, _sigma(images, captions))


def _sigma(images: Encoded, captions: Encoded) -> dict[str, FloatArray]:
    sides = {"images": images, "captions": captions}
    clouds = {name: side for name, side in sides.items() if isinstance(side, Gaussian) and not side.is_point}
    return {name: side.uncertainty().numpy() for name, side in clouds.items()} if len(clouds) == 2 else {}


def _metrics(truth: Truth) -> list[str]:
    """Every metric of the truth, and those by people where captions and the encoder for them are there."""
    by_people = truth.kind == "captions" and truth.captions is not None and MiniLM.is_installed()
    return [*default_metrics(truth), *(people_metrics() if by_people else ())]
