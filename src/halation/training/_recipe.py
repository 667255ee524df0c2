"""Recipes: everything a run needs beside the data, as strict TOML; one file is one run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

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

__all__ = ["CCAFit", "Loss", "Recipe", "parse_recipe", "read_recipe", "to_toml"]


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
            raise InputError(f"the recipe has no loss: give one of {', '.join(names)} a weight")
        return weighted


@dataclass(frozen=True)
class CCAFit:
    """Point heads fitted by CCA on the training split before the first epoch; with train.epochs = 0, instead of it."""

    fit: bool = False
    ridge: float = 1e-3  # share of the mean variance added to every variance
    power: float = 0.0  # dimension k is weighed by its correlation to this power

    def __post_init__(self) -> None:
        check_numbers(self, "cca")


@dataclass(frozen=True)
class Recipe(ModelConfig):
    """Everything a run needs beside the data."""

    cca: CCAFit = field(default_factory=CCAFit)

    loss: Loss = field(default_factory=Loss)
    train: Settings = field(default_factory=Settings)


def read_recipe(path: str | os.PathLike[str], settings: Iterable[str] = ()) -> Recipe:
    """A recipe file, or the name of one that comes with the package, with `section.key=value` settings on top."""
    source = Path(path)
    if not source.exists() and source.parent == Path() and not source.suffix:
        source = _packaged(source.name)
    return parse_recipe(read_text(source), settings, source=str(path))


def _packaged(name: str) -> Path:
    """The file of a recipe that comes with the package: inside it, or beside its sources."""
    package = Path(__file__).parents[1]
    folders = (package / "recipes", package.parents[1] / "recipes")
    folder = next((folder for folder in folders if folder.is_dir()), package)
    return folder / f"{one_of(name, sorted(path.stem for path in folder.glob('*.toml')), 'recipe')}.toml"


def parse_recipe(text: str, settings: Iterable[str] = (), source: str = "recipe") -> Recipe:
    """A recipe from its text.

    >>> parse_recipe("[train]\\nepochs = 3", ["loss.daa.weight=5"]).loss.daa.weight
    5.0
    """
    document = parse_toml(text, source)
    for setting in settings:
        apply_setting(document, setting)
    return from_toml(Recipe, document, source)
