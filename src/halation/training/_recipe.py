"""Recipes: everything a run needs beside the data, as strict TOML; one file is one run."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halation._errors import InputError, one_of
from halation._files import read_text
from halation._toml import apply_setting, check_numbers, from_toml, parse_toml, to_toml
from halation.encoders import ModelConfig
from halation.training._settings import Settings
from halation.training._spread import Spread
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

__all__ = ["CCAFit", "Loss", "Recipe", "list_recipes", "override", "parse_recipe", "read_recipe", "to_toml"]


@dataclass(frozen=True)
class Loss:
    """The loss: the sum of all terms with a weight. The section `[loss.daa]` of a recipe is `Loss.daa`."""

    infonce: InfoNCE = field(default_factory=InfoNCE)
    sigmoid: Sigmoid = field(default_factory=Sigmoid)
    triplet: Triplet = field(default_factory=Triplet)
    soft_contrastive: SoftContrastive = field(default_factory=SoftContrastive)
    csd: CSD = field(default_factory=CSD)
    daa: DAA = field(default_factory=DAA)
    smooth_ap: SmoothAP = field(default_factory=SmoothAP)
    kl: KL = field(default_factory=KL)
    spread: Spread = field(default_factory=Spread)
    uniformity: Uniformity = field(default_factory=Uniformity)
    diversity: Diversity = field(default_factory=Diversity)
    mmd: MMD = field(default_factory=MMD)

    def __post_init__(self) -> None:
        for term in dataclasses.fields(self):
            check_numbers(getattr(self, term.name), f"loss.{term.name}")

    def terms(self) -> dict[str, Term]:
        """The terms with a weight, by name; at least one must have one."""
        names = [term.name for term in dataclasses.fields(self)]
        weighted = {name: getattr(self, name) for name in names if getattr(self, name).weight}
        if not weighted:
            raise InputError("the recipe has no loss", remedy=f"give one of {', '.join(names)} a weight")
        return weighted


@dataclass(frozen=True)
class CCAFit:
    """Point heads fitted by CCA on the training split before the first epoch; with train.epochs = 0, instead of it."""

    fit: bool = False
    ridge: float = 1e-3  # share of the mean variance added to every variance
    power: float = 0.0  # dimension k is weighted by its correlation to this power

    def __post_init__(self) -> None:
        check_numbers(self, "cca")


@dataclass(frozen=True)
class Recipe(ModelConfig):
    """Everything a run needs beside the data."""

    cca: CCAFit = field(default_factory=CCAFit)
    loss: Loss = field(default_factory=Loss)
    train: Settings = field(default_factory=Settings)


def read_recipe(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Recipe:
    """The recipe in a file, of a run's folder, or of the package by its name; `section.key=value` overrides on top."""
    source = Path(path)
    if (source / "config.toml").is_file():
        source = source / "config.toml"
    elif not source.exists() and source.parent == Path() and not source.suffix:
        source = _packaged(source.name)
    return parse_recipe(read_text(source), overrides, source=str(source))


def parse_recipe(text: str, overrides: Iterable[str] = (), source: str = "recipe") -> Recipe:
    """A recipe from its text.

    >>> parse_recipe("[train]\\nepochs = 3", ["loss.daa.weight=5"]).loss.daa.weight
    5.0
    """
    document = parse_toml(text, source)
    for setting in overrides:
        apply_setting(document, setting)
    return from_toml(Recipe, document, source)


def override(recipe: Recipe, overrides: Mapping[str, Any] | Iterable[str] | None) -> Recipe:
    """The recipe with some settings changed: {"train.epochs": 2}, or ["train.epochs=2"] as on the command line.

    >>> override(Recipe(), {"train.epochs": 2}).train.epochs
    2
    """
    if isinstance(overrides, Mapping):
        overrides = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in overrides.items()]
    settings = list(overrides or ())
    return parse_recipe(to_toml(recipe), settings, recipe.name or "recipe") if settings else recipe


def list_recipes() -> list[tuple[str, str]]:
    """The recipes that come with the package: (name, one line of description), by name."""
    return [(path.stem, _description(path)) for path in sorted(_packaged_folder().glob("*.toml"))]


def _packaged(name: str) -> Path:
    folder = _packaged_folder()
    names = sorted(path.stem for path in folder.glob("*.toml"))
    return folder / f"{one_of(name, names, 'recipe', remedy='`halation recipes` lists them')}.toml"


def _packaged_folder() -> Path:
    """The folder of the recipes that come with the package: inside it, or beside its sources."""
    package = Path(__file__).parents[1]
    folders = (package / "recipes", package.parents[1] / "recipes")
    return next((folder for folder in folders if folder.is_dir()), package)


def _description(path: Path) -> str:
    """The first sentence of a recipe file's first comment, and whether DAA is added."""
    text = read_text(path)
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith("#")), len(lines))
    comment = []
    for line in lines[start:]:
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# ").strip())
    sentence = " ".join(comment).partition(". ")[0].rstrip(".")
    daa = parse_toml(text, str(path)).get("loss", {}).get("daa", {}).get("weight")
    return f"{sentence}; with DAA" if daa else sentence
