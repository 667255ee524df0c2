"""How to train: what the loop needs to know, checked when it is made."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from halation._errors import InputError, one_of

__all__ = ["Settings"]

_POSITIVE = ("batch_size", "lr", "accumulate", "captions_per_image", "backbone_lr", "layer_decay")


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
    patience           stop after so many epochs without a better validation; 0 = never
    select             what "better" is: "rsum+asp" or "rsum"
    checkpoint_steps   also checkpoint within an epoch, every so many steps; 0 = at its end alone
    """

    epochs: int = 12
    batch_size: int = 128
    seed: int = 0
    unit: str = "captions"
    captions_per_image: int = 1
    one_per_class: bool = False
    optimizer: str = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.01
    backbone_lr: float = 1.0
    layer_decay: float = 1.0
    warmup: int = 100
    clip: float = 2.0
    ema: float = 0.0
    precision: str = "float32"
    accumulate: int = 1
    patience: int = 0
    select: str = "rsum+asp"
    checkpoint_steps: int = 0

    def __post_init__(self) -> None:
        one_of(self.unit, ("captions", "images"), "train.unit")
        one_of(self.optimizer, ("adamw", "adamp"), "train.optimizer")
        one_of(self.precision, ("float32", "bfloat16"), "train.precision")
        one_of(self.select, ("rsum+asp", "rsum"), "train.select")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (str, bool)):
                continue
            least = "above 0" if field.name in _POSITIVE else "0 or more"
            if not math.isfinite(value) or value < 0 or (value == 0 and field.name in _POSITIVE):
                raise InputError(f"train.{field.name} is {value}; it must be {least}")
        if self.ema >= 1:
            raise InputError(f"train.ema is {self.ema}; it must be below 1")

    def rate(self, step: int, steps: int) -> float:
        """The share of the learning rate at step 0 … steps − 1: warm-up, then half a cosine."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return rise * 0.5 * (1 + math.cos(math.pi * step / steps))
