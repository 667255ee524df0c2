"""A run's scores of a split, with what matches and what may: what a calibration is fitted on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from halation._arrays import BoolArray, FloatArray, sigmoid
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.calibration import JudgedScores
from halation.data import Dataset, Direction
from halation.encoders import Encoded, LearntScalars, Model
from halation.semantics import Semantics
from halation.similarity import Gaussian
from halation.training import Recipe

__all__ = ["NEAR_RELEVANCE", "judge", "judge_scores", "near_matches", "uncalibrated_probability"]

NEAR_RELEVANCE = {"cider": 0.10, "sentence": 0.32}
"""From this caption relevance on, an image may well match a caption that was written for another image.

Each catches nine in ten of the Flickr8k pairs of this kind that experts rated 3 or more of 4.
"""

_PROBABLE = ("soft_contrastive", "csd", "sigmoid", "infonce")  # losses whose scores say a probability
_HAD = "at the scale and shift the run learnt"
_FIRST = "at the recipe's first scale and shift (the run did not keep what it learnt)"


def judge(
    model: Model, dataset: Dataset, near: BoolArray | None = None, *, progress: Progress = silent
) -> dict[Direction, JudgedScores]:
    """The scores of both directions of a split, with what matches. near (n_images, n_captions): from `near_matches`."""
    images, captions = model.encode_dataset(dataset, progress=progress)
    scores: FloatArray = model.network.all_scores(images, captions, progress=progress).numpy()
    if not np.isfinite(scores).all():
        raise InputError(f"{model.folder} gives scores that are not finite; it cannot be calibrated")
    sides: tuple[tuple[Direction, Encoded], ...] = (("t2i", captions), ("i2t", images))
    return {direction: judge_scores(direction, scores, dataset, encoded, near) for direction, encoded in sides}


def judge_scores(
    direction: Direction,
    scores: FloatArray,
    dataset: Dataset,
    encoded: Encoded | None = None,
    near: BoolArray | None = None,
    *,
    most: int | None = None,
    seed: int = 0,
) -> JudgedScores:
    """One direction of given scores (n_images, n_captions), with what matches; near (n_images, n_captions).

    encoded   the encoded queries, for their σ
    most      at most this many queries, drawn at random by `seed`
    """
    own, each = dataset.image_of, np.arange(len(dataset))
    asked = dataset.truth.queries(direction)
    asked = asked[dataset.truth.n_positives(direction)[asked] > 0]
    if most is not None and most < len(asked):
        asked = np.sort(np.random.default_rng(seed).choice(asked, most, replace=False))
    words = direction == "t2i"
    sigma = encoded.uncertainty().numpy() if isinstance(encoded, Gaussian) and not encoded.is_point else None
    return JudgedScores(
        np.ascontiguousarray(scores.T[asked]) if words else scores[asked],
        dataset.truth.positives(direction, asked),
        (own if words else each)[asked],
        each if words else own,
        None if sigma is None else sigma[asked],
        None if near is None else np.ascontiguousarray(near.T[asked]) if words else near[asked],
        direction,
    )


def near_matches(
    dataset: Dataset, relevance: str = "cider", threshold: float | None = None, *, progress: Progress = silent
) -> BoolArray | None:
    """Which pairs (n_images, n_captions) may match although nobody wrote them: caption relevance ≥ threshold.

    The threshold is that of `NEAR_RELEVANCE`, unless given. None if the truth is complete: only annotations that give
    each caption one image ("captions") miss most of what is true.
    """
    if dataset.truth.kind != "captions":
        return None
    corpus = Semantics.fit(dataset.captions, dataset.image_of, relevance, progress=progress).corpus()
    least = NEAR_RELEVANCE[relevance] if threshold is None else threshold
    return np.asarray(corpus.matrix(progress=progress) >= least)


def uncalibrated_probability(recipe: Recipe, learnt: LearntScalars) -> tuple[str, Callable[[FloatArray], FloatArray]]:
    """The probability that one would take without calibration, in words and as a function of scores (q, n).

    The match probability of the loss the model was trained with, at the scale and shift it has learnt (the recipe's
    first, and the words say so, where the run did not keep them), or a softmax over the gallery, as is usual with CLIP.
    """
    head = recipe.model.head
    kind = recipe.model.similarity or {"pcme": "l2", "pcmepp": "csd"}.get(head, "")
    loss = {name: replace(getattr(recipe.loss, name), **learnt.get(name, {})) for name in _PROBABLE}
    told = {name: _HAD if name in learnt else _FIRST for name in loss}
    if head in ("sgr", "saf", "sgraf"):
        return "the score, which is in 0…1", lambda scores: np.clip(scores, 0, 1)
    if loss["soft_contrastive"].weight and kind in ("l2", "csd"):
        scale, shift = loss["soft_contrastive"].scale, loss["soft_contrastive"].shift
        words = f"σ({shift:.4g} − {scale:.4g}·distance), the loss's match probability, {told['soft_contrastive']}"
        return words, lambda scores: sigmoid(shift - scale * np.sqrt(np.maximum(-scores, 0)))
    if loss["csd"].weight and kind == "csd":
        scale, shift = loss["csd"].scale, loss["csd"].shift
        words = f"σ({shift:.4g} − {scale:.4g}·CSD), the loss's match probability, {told['csd']}"
        return words, lambda scores: sigmoid(shift + scale * scores)
    if loss["sigmoid"].weight:
        scale, shift = loss["sigmoid"].scale, loss["sigmoid"].shift
        sign = "+" if shift >= 0 else "−"
        words = f"σ({scale:.4g}·score {sign} {abs(shift):.4g}), the loss's match probability, {told['sigmoid']}"
        return words, lambda scores: sigmoid(scale * scores + shift)
    temperature = loss["infonce"].temperature
    whose = " by each member alone" if recipe.model.members > 1 else ""
    how = f"temperature {temperature:.4g}, {_temperature_told(recipe, learnt)}{whose}"
    return f"softmax over the gallery, {how}", lambda scores: _softmax(scores / temperature)


def _temperature_told(recipe: Recipe, learnt: LearntScalars) -> str:
    if not recipe.loss.infonce.weight:
        return "a usual one (this loss learns none)"
    if "infonce" in learnt:
        return "as the run learnt it"
    return "the recipe's first (the run did not keep what it learnt)"


def _softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp((logits - logits.max(axis=1, keepdims=True)).astype(np.float64))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
