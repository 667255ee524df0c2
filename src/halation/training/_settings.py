"""The schedule of a run: a recipe's section `[train]`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from halation._errors import one_of
from halation._toml import check_numbers, number

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """The schedule of a run.

    epochs             0 = no training: a run of the weights as they are drawn, or fitted in closed form
    batch_size         the global batch, over all processes
    seed               of everything that is drawn
    unit               "captions": an epoch is every pair once; "images": every image once, with captions_per_image
    one_per_class      no two items of a batch share a class (CUB)
    optimizer          "adamw" or "adamp", with lr, weight_decay
    backbone_lr        backbones learn at this share of lr, their earlier layers at layer_decay times the next one's
    warmup             steps over which the rate rises from 0; afterwards it falls to 0 along half a cosine
    clip               largest norm of the gradient; 0 = any
    ema                decay of the averaged weights that are measured and kept; 0 = the weights themselves
    precision          "float32" or "bfloat16" (autocast of the encoders)
    accumulate         batches per step of the optimiser
    patience           stop after this many epochs without a better validation; 0 = never
    select             what the best epoch maximises: "rsum+asp" (ASP by the relevance of loss.daa), "rsum+people"
                       (R-P(people), which needs the extra "pretrained"), or "rsum"
    checkpoint_steps   also write a checkpoint every this many steps; 0 = only at the end of an epoch
    """

    epochs: int = 12
    batch_size: int = number(128, positive=True)
    seed: int = 0
    unit: str = "captions"
    captions_per_image: int = number(1, positive=True)
    one_per_class: bool = False
    optimizer: str = "adamw"
    lr: float = number(1e-3, positive=True)
    weight_decay: float = 0.01
    backbone_lr: float = number(1.0, positive=True)
    layer_decay: float = number(1.0, positive=True)
    warmup: int = 100
    clip: float = 2.0
    ema: float = number(0.0, below=1)
    precision: str = "float32"
    accumulate: int = number(1, positive=True)
    patience: int = 0
    select: str = "rsum+asp"
    checkpoint_steps: int = 0

    def __post_init__(self) -> None:
        one_of(self.unit, ("captions", "images"), "train.unit")
        one_of(self.optimizer, ("adamw", "adamp"), "train.optimizer")
        one_of(self.precision, ("float32", "bfloat16"), "train.precision")
        one_of(self.select, ("rsum+asp", "rsum+people", "rsum"), "train.select")
        check_numbers(self, "train")

    def rate(self, step: int, steps: int) -> float:
        """The share of the learning rate at step 0 … steps − 1: warm-up, then half a cosine."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return rise * 0.5 * (1 + math.cos(math.pi * step / steps))
