"""Runs that will not recover are stopped, with what was seen and what to try."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from halation._errors import HalationError
from halation.encoders import Encoded, Parts
from halation.gaussian import Gaussian
from halation.relevance import Truth

__all__ = ["TrainingStopped", "Watch", "alike", "chance"]

_TRY = (
    "what to try: a lower train.lr, a longer train.warmup, all negatives before the hardest one "
    "(loss.triplet.sum_steps), a lower weight of loss.daa, or a larger train.batch_size"
)


class TrainingStopped(HalationError):
    """Training was stopped because it cannot come to anything."""


class Watch:
    """Looks at every loss and every validation of a run; raises `TrainingStopped`."""

    def __init__(self, truth: Truth, margin: float | None = None, patience: int = 3) -> None:
        self.chance, self.margin, self.patience = chance(truth), margin, patience
        self.luck = {  # what a scorer that knows nothing reaches on a good day: two standard errors above
            side: share + 2 * math.sqrt(share * (1 - share) / queries)
            for (side, share), queries in zip(self.chance.items(), (truth.n_images, truth.n_captions), strict=True)
        }

    def loss(self, parts: Mapping[str, float], step: int) -> None:
        """Every term of the loss must be a number."""
        broken = [name for name, value in parts.items() if not math.isfinite(value)]
        if broken:
            seen = ", ".join(f"{name} = {parts[name]}" for name in broken)
            raise TrainingStopped(f"step {step}: {seen}; the run is stopped, its last checkpoint is intact. {_TRY}")

    def validation(
        self, recall: Mapping[str, float], likeness: float, triplet: float | None, epoch: int, before: int
    ) -> int:
        """recall: R@10 in 0…1 by direction; before: validations in a row at chance until now. How many there are now.

        Three in a row: nothing is being learnt.
        """
        at_chance = all(recall[side] <= self.luck[side] for side in self.chance)
        if not at_chance or before + 1 < self.patience:
            return before + 1 if at_chance else 0
        signs = [
            f"R@10 is {100 * recall[side]:.2f} % {side}, chance {100 * self.chance[side]:.2f} %" for side in recall
        ]
        if likeness > 0.99:
            signs.append(f"all embeddings are alike (mean cosine {likeness:.4f})")
        if triplet is not None and self.margin and abs(triplet - 2 * self.margin) < 0.05 * self.margin:
            signs.append(f"the triplet loss is stuck at its margin ({triplet:.4f} of 2 × {self.margin})")
        raise TrainingStopped(f"epoch {epoch + 1}: the model has collapsed: {'; '.join(signs)}. {_TRY}")


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
    if isinstance(encoded, Gaussian):
        x: Tensor = encoded.mean
    elif isinstance(encoded, Parts):
        x = encoded.local.mean(dim=1)
    else:
        x = encoded.points.mean(dim=1)
    x = torch.nn.functional.normalize(x[:most].float(), dim=1)
    n = len(x)
    return float((x.sum(0).square().sum() - n) / max(n * (n - 1), 1))
