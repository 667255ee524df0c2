"""A run's scores of a split, and how likely each pair matches by a judge: calibration is fitted on these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from halation._arrays import BoolArray, FloatArray, sigmoid
from halation._errors import InputError, MissingExtra, one_of
from halation._progress import Progress, silent
from halation.calibration import JudgedScores
from halation.data import Dataset, Direction
from halation.encoders import Encoded, LearntScalars, Model
from halation.semantics import PEOPLE, MiniLM, Semantics
from halation.similarity import Gaussian
from halation.training import Recipe

__all__ = ["JUDGES", "choose_judge", "judge_run", "judge_scores", "judged_truth", "uncalibrated_probability"]

JUDGES = (*PEOPLE, "annotations", "exact")
"""Who says what matches: people (the probability that a person accepts the pair), or the truth as it is given."""

_PROBABILISTIC = ("soft_contrastive", "csd", "sigmoid", "infonce")  # losses that define a match probability
_LEARNT = "at the scale and shift the run learnt"
_INITIAL = "at the recipe's first scale and shift (the run did not keep what it learnt)"


def choose_judge(dataset: Dataset, wanted: str | None = None) -> str:
    """The judge of this data: `wanted`, else "exact" where the truth is complete, else "people" where it is installed.

    Annotations that give each caption one image miss most of what is true ("captions"); every other truth is complete.
    """
    if wanted is not None:
        one_of(wanted, JUDGES, "judge")
        if wanted in PEOPLE and wanted != "people-words" and not MiniLM.is_installed():
            raise MissingExtra(f"the judge {wanted}", "pretrained")
        return wanted
    if dataset.truth.kind != "captions":
        return "exact"
    return "people" if MiniLM.is_installed() else "annotations"


def judged_truth(dataset: Dataset, judge: str, *, progress: Progress = silent) -> FloatArray | BoolArray:
    """(n_images, n_captions): how likely each pair matches by the judge; what is annotated has probability 1."""
    annotated = dataset.truth.positives("i2t")
    if judge not in PEOPLE:
        return annotated
    semantics = Semantics.fit(dataset.captions, dataset.image_of, judge, progress=progress)
    truth = semantics.corpus().matrix(progress=progress)
    truth[annotated] = 1
    return truth


def judge_run(
    model: Model, dataset: Dataset, truth: FloatArray | BoolArray, *, progress: Progress = silent
) -> dict[Direction, JudgedScores]:
    """The scores of both directions of a split; truth (n_images, n_captions), from `judged_truth`."""
    images, captions = model.encode_dataset(dataset, progress=progress)
    scores: FloatArray = model.network.all_scores(images, captions, progress=progress).numpy()
    if not np.isfinite(scores).all():
        raise InputError("gives scores that are not finite; it cannot be calibrated", path=model.folder)
    sides: tuple[tuple[Direction, Encoded], ...] = (("t2i", captions), ("i2t", images))
    return {direction: judge_scores(direction, scores, dataset, truth, encoded) for direction, encoded in sides}


def judge_scores(
    direction: Direction,
    scores: FloatArray,
    dataset: Dataset,
    truth: FloatArray | BoolArray,
    encoded: Encoded | None = None,
    *,
    most: int | None = None,
    seed: int = 0,
) -> JudgedScores:
    """One direction of scores (n_images, n_captions); truth as in `judge_run`.

    encoded   the encoded queries, for their σ
    most      at most this many queries, drawn at random by `seed`
    """
    queries = dataset.truth.queries(direction)
    queries = queries[dataset.truth.n_positives(direction)[queries] > 0]
    if most is not None and most < len(queries):
        queries = np.sort(np.random.default_rng(seed).choice(queries, most, replace=False))
    by_text = direction == "t2i"
    images, image_of_caption = np.arange(len(dataset)), dataset.image_of
    sigma = encoded.uncertainty().numpy() if isinstance(encoded, Gaussian) and not encoded.is_point else None
    return JudgedScores(
        np.ascontiguousarray(scores.T[queries]) if by_text else scores[queries],
        np.ascontiguousarray(truth.T[queries]) if by_text else truth[queries],
        (image_of_caption if by_text else images)[queries],
        images if by_text else image_of_caption,
        None if sigma is None else sigma[queries],
        direction,
    )


def uncalibrated_probability(recipe: Recipe, learnt: LearntScalars) -> tuple[str, Callable[[FloatArray], FloatArray]]:
    """The match probability without calibration: a description, and a function of scores (q, n).

    It is the match probability of the loss the model was trained with, at the scale and shift it learnt. If the run
    did not keep these, the recipe's are taken, and the description says so. For other losses it is a softmax over the
    gallery, as is usual with CLIP.
    """
    head = recipe.model.head
    kind = recipe.model.similarity or {"pcme": "l2", "pcmepp": "csd"}.get(head, "")
    loss = {name: replace(getattr(recipe.loss, name), **learnt.get(name, {})) for name in _PROBABILISTIC}
    origin = {name: _LEARNT if name in learnt else _INITIAL for name in loss}
    if head in ("sgr", "saf", "sgraf"):
        return "the score, which is in 0…1", lambda scores: np.clip(scores, 0, 1)
    if loss["soft_contrastive"].weight and kind in ("l2", "csd"):
        scale, shift = loss["soft_contrastive"].scale, loss["soft_contrastive"].shift
        words = f"σ({shift:.4g} − {scale:.4g}·distance), the loss's match probability, {origin['soft_contrastive']}"
        return words, lambda scores: sigmoid(shift - scale * np.sqrt(np.maximum(-scores, 0)))
    if loss["csd"].weight and kind == "csd":
        scale, shift = loss["csd"].scale, loss["csd"].shift
        words = f"σ({shift:.4g} − {scale:.4g}·CSD), the loss's match probability, {origin['csd']}"
        return words, lambda scores: sigmoid(shift + scale * scores)
    if loss["sigmoid"].weight:
        scale, shift = loss["sigmoid"].scale, loss["sigmoid"].shift
        sign = "+" if shift >= 0 else "−"
        words = f"σ({scale:.4g}·score {sign} {abs(shift):.4g}), the loss's match probability, {origin['sigmoid']}"
        return words, lambda scores: sigmoid(scale * scores + shift)
    temperature = loss["infonce"].temperature
    members = " by each member alone" if recipe.model.members > 1 else ""
    words = f"softmax over the gallery, temperature {temperature:.4g}, {_temperature_origin(recipe, learnt)}{members}"
    return words, lambda scores: _softmax(scores / temperature)


def _temperature_origin(recipe: Recipe, learnt: LearntScalars) -> str:
    if not recipe.loss.infonce.weight:
        return "a usual one (this loss learns none)"
    if "infonce" in learnt:
        return "as the run learnt it"
    return "the recipe's first (the run did not keep what it learnt)"


def _softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp((logits - logits.max(axis=1, keepdims=True)).astype(np.float64))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
