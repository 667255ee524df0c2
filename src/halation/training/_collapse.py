"""Runs that will not recover are stopped, with what was seen and what to try."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from halation._errors import HalationError
from halation.data import Truth
from halation.encoders import Encoded, PartEmbedding, detail_of
from halation.similarity import Gaussian

__all__ = ["CollapseDetector", "TrainingStopped", "ValidationStats", "alike", "chance"]

_TRY = (
    "what to try: a lower train.lr, a longer train.warmup, all negatives before the hardest one "
    "(loss.triplet.sum_steps), a lower weight of loss.daa, or a larger train.batch_size"
)


class TrainingStopped(HalationError):
    """Training was stopped because it cannot come to anything."""


@dataclass(frozen=True)
class ValidationStats:
    """What a validation saw."""

    epoch: int
    recall: Mapping[str, float]  # R@10 in 0…1, by direction
    likeness: float  # mean cosine of two images
    losses: Mapping[str, float]  # of the epoch's training
    last_loss: float | None  # of the epoch before


class CollapseDetector:
    """Looks at every loss and every validation of a run; raises `TrainingStopped`."""

    def __init__(self, truth: Truth, margin: float | None = None, patience: int = 3) -> None:
        self.chance, self.margin, self.patience = chance(truth), margin, patience
        self.luck = {  # what a scorer that knows nothing reaches on a good day: two standard errors above
            side: share + 2 * math.sqrt(share * (1 - share) / queries)
            for (side, share), queries in zip(self.chance.items(), (truth.n_images, truth.n_captions), strict=True)
        }

    def check_loss(self, parts: Mapping[str, float], step: int) -> None:
        """Every term of the loss must be a number."""
        broken = [name for name, value in parts.items() if not math.isfinite(value)]
        if broken:
            seen = ", ".join(f"{name} = {parts[name]}" for name in broken)
            raise TrainingStopped(f"step {step}: {seen}; the run is stopped; what it saved before is intact. {_TRY}")

    def check_validation(self, seen: ValidationStats, before: int) -> int:
        """How many validations in a row look like a collapse, `before` of them until this one; three end the run.

        Recall no better than luck, and a sign that it will not get better: embeddings all alike, a triplet loss at its
        margin, or a loss that does not fall.
        """
        signs = self._signs(seen)
        if not signs or any(seen.recall[side] > self.luck[side] for side in self.luck):
            return 0
        if before + 1 < self.patience:
            return before + 1
        recall = [
            f"R@10 is {100 * seen.recall[side]:.2f} % {side}, chance {100 * self.chance[side]:.2f} %"
            for side in seen.recall
        ]
        raise TrainingStopped(f"epoch {seen.epoch + 1}: the model has collapsed: {'; '.join(recall + signs)}. {_TRY}")

    def _signs(self, seen: ValidationStats) -> list[str]:
        signs = []
        if seen.likeness > 0.99:
            signs.append(f"all embeddings are alike (mean cosine {seen.likeness:.4f})")
        triplet = seen.losses.get("triplet")
        if triplet is not None and self.margin and abs(triplet - 2 * self.margin) < 0.05 * self.margin:
            signs.append(f"the triplet loss is stuck at its margin ({triplet:.4f} of 2 × {self.margin})")
        loss = seen.losses.get("loss", math.nan)
        if seen.last_loss is not None and loss > 0.995 * seen.last_loss:
            signs.append(f"the loss does not fall ({loss:.4f} after {seen.last_loss:.4f})")
        return signs


def chance(truth: Truth, k: int = 10) -> dict[str, float]:
    """R@k of a scorer that knows nothing, by direction."""
    result = {}
    for side in ("i2t", "t2i"):
        positives = truth.positives(side)
        share = positives.mean(axis=1)
        result[side] = float((1 - (1 - share) ** k).mean())
    return result


def alike(encoded: Encoded, most: int = 1000) -> float:
    """Mean cosine of two items: 1 = all the same."""
    encoded = detail_of(encoded)
    if isinstance(encoded, Gaussian):
        x: Tensor = encoded.mean
    elif isinstance(encoded, PartEmbedding):
        x = encoded.local.mean(dim=1)
    else:
        x = encoded.points.mean(dim=1)
    x = torch.nn.functional.normalize(x[:most].float(), dim=1)
    n = len(x)
    return float((x.sum(0).square().sum() - n) / max(n * (n - 1), 1))
