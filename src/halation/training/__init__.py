"""Recipes, the losses they are made of, the visible loop, checkpoints and resuming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.training._adamp import AdamP
    from halation.training._collapse import TrainingStopped
    from halation.training._loop import fit
    from halation.training._objective import Objective, build_objective
    from halation.training._processes import Processes, processes
    from halation.training._recipe import (
        CCAFit,
        Loss,
        Recipe,
        list_recipes,
        override,
        parse_recipe,
        read_recipe,
        to_toml,
    )
    from halation.training._run import Run, TrainState
    from halation.training._settings import Settings
    from halation.training._spread import Spread
    from halation.training._step import Step
    from halation.training._terms import (
        CSD,
        DAA,
        KL,
        MMD,
        Diversity,
        InfoNCE,
        Sigmoid,
        SmoothAP,
        SoftContrastive,
        Term,
        Triplet,
        Uniformity,
    )
    from halation.training._train import resume, train
    from halation.training._validate import measure

__all__ = [
    "CSD",
    "DAA",
    "KL",
    "MMD",
    "AdamP",
    "CCAFit",
    "Diversity",
    "InfoNCE",
    "Loss",
    "Objective",
    "Processes",
    "Recipe",
    "Run",
    "Settings",
    "Sigmoid",
    "SmoothAP",
    "SoftContrastive",
    "Spread",
    "Step",
    "Term",
    "TrainState",
    "TrainingStopped",
    "Triplet",
    "Uniformity",
    "build_objective",
    "fit",
    "list_recipes",
    "measure",
    "override",
    "parse_recipe",
    "processes",
    "read_recipe",
    "resume",
    "to_toml",
    "train",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "CSD": "halation.training._terms",
            "DAA": "halation.training._terms",
            "KL": "halation.training._terms",
            "MMD": "halation.training._terms",
            "CCAFit": "halation.training._recipe",
            "AdamP": "halation.training._adamp",
            "Diversity": "halation.training._terms",
            "InfoNCE": "halation.training._terms",
            "Loss": "halation.training._recipe",
            "Objective": "halation.training._objective",
            "Processes": "halation.training._processes",
            "Recipe": "halation.training._recipe",
            "Run": "halation.training._run",
            "Settings": "halation.training._settings",
            "Sigmoid": "halation.training._terms",
            "SmoothAP": "halation.training._terms",
            "SoftContrastive": "halation.training._terms",
            "Spread": "halation.training._spread",
            "Step": "halation.training._step",
            "Term": "halation.training._terms",
            "TrainState": "halation.training._run",
            "TrainingStopped": "halation.training._collapse",
            "Triplet": "halation.training._terms",
            "Uniformity": "halation.training._terms",
            "build_objective": "halation.training._objective",
            "fit": "halation.training._loop",
            "list_recipes": "halation.training._recipe",
            "measure": "halation.training._validate",
            "override": "halation.training._recipe",
            "parse_recipe": "halation.training._recipe",
            "processes": "halation.training._processes",
            "read_recipe": "halation.training._recipe",
            "resume": "halation.training._train",
            "to_toml": "halation.training._recipe",
            "train": "halation.training._train",
        },
    )
