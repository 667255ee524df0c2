"""Stops runs that will not recover, and says what was seen and what to try."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from halation._errors import HalationError
from halation.data import Truth
from halation.encoders import Encoded, PartEmbedding
from halation.similarity import Gaussian

__all__ = ["CollapseDetector", "TrainingStopped", "ValidationStats", "chance", "mean_cosine"]

_TRY = (
    "what to try: a lower train.lr, a longer train.warmup, all negatives before the hardest one "
    "(loss.triplet.sum_steps), a lower weight of loss.daa, or a larger train.batch_size"
)


class TrainingStopped(HalationError):
    """Training was stopped because the run cannot recover."""


@dataclass(frozen=True)
class ValidationStats:
    """What a validation measured."""

    epoch: int
    recall: Mapping[str, float]  # R@10 in 0…1, by direction
    mean_cosine: float  # of two images
    losses: Mapping[str, float]  # of the epoch's training
    last_loss: float | None  # of the epoch before


class CollapseDetector:
    """Checks every loss and every validation of a run; raises `TrainingStopped`."""

    def __init__(self, truth: Truth, margin: float | None = None, patience: int = 3) -> None:
        self.chance, self.margin, self.patience = chance(truth), margin, patience
        self.good_luck = {  # what chance reaches on a good day: two standard errors more
            side: share + 2 * math.sqrt(share * (1 - share) / queries)
            for (side, share), queries in zip(self.chance.items(), (truth.n_images, truth.n_captions), strict=True)
        }

    def check_loss(self, parts: Mapping[str, float], step: int) -> None:
        """Stop if a term of the loss is not a finite number."""
        broken = [name for name, value in parts.items() if not math.isfinite(value)]
        if broken:
            values = ", ".join(f"{name} = {parts[name]}" for name in broken)
            raise TrainingStopped(f"step {step}: {values}; the run is stopped; what it saved before is intact. {_TRY}")

    def check_validation(self, stats: ValidationStats, before: int) -> int:
        """How many validations in a row look like a collapse, this one included; the third stops the run.

        A collapse is a recall no better than chance, with a sign that it will stay so: embeddings that are all alike, a
        triplet loss at its margin, or a loss that does not fall. before: how many there were until now.
        """
        signs = self._signs(stats)
        if not signs or any(stats.recall[side] > self.good_luck[side] for side in self.good_luck):
            return 0
        if before + 1 < self.patience:
            return before + 1
        recall = [
            f"R@10 is {100 * stats.recall[side]:.2f} % {side}, chance {100 * self.chance[side]:.2f} %"
            for side in stats.recall
        ]
        raise TrainingStopped(f"epoch {stats.epoch + 1}: the model has collapsed: {'; '.join(recall + signs)}. {_TRY}")

    def _signs(self, stats: ValidationStats) -> list[str]:
        signs = []
        if stats.mean_cosine > 0.99:
            signs.append(f"all embeddings are alike (mean cosine {stats.mean_cosine:.4f})")
        triplet = stats.losses.get("triplet")
        if triplet is not None and self.margin and abs(triplet - 2 * self.margin) < 0.05 * self.margin:
            signs.append(f"the triplet loss is stuck at its margin ({triplet:.4f} of 2 × {self.margin})")
        loss = stats.losses.get("loss", math.nan)
        if stats.last_loss is not None and loss > 0.995 * stats.last_loss:
            signs.append(f"the loss does not fall ({loss:.4f} after {stats.last_loss:.4f})")
        return signs


def chance(truth: Truth, k: int = 10) -> dict[str, float]:
    """R@k of random scores, by direction."""
    result = {}
    for side in ("i2t", "t2i"):
        positives = truth.positives(side)
        share = positives.mean(axis=1)
        result[side] = float((1 - (1 - share) ** k).mean())
    return result


def mean_cosine(encoded: Encoded, most: int = 1000) -> float:
    """Mean cosine of two items: 1 = all the same."""
    if isinstance(encoded, Gaussian):
        x: Tensor = encoded.mean
    elif isinstance(encoded, PartEmbedding):
        x = encoded.local.mean(dim=1)
    else:
        x = encoded.points.mean(dim=1)
    x = torch.nn.functional.normalize(x[:most].float(), dim=1)
    n = len(x)
    return float((x.sum(0).square().sum() - n) / max(n * (n - 1), 1))
