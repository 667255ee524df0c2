"""Recipes made real: models, losses, runs."""

from __future__ import annotations

from halation.build._models import build_loader, build_model, build_objective, frozen_backbone, open_split
from halation.build._runs import PROJECTION, Trained, open_run, train_recipe

__all__ = [
    "PROJECTION",
    "Trained",
    "build_loader",
    "build_model",
    "build_objective",
    "frozen_backbone",
    "open_run",
    "open_split",
    "train_recipe",
]
