"""Recipes: everything a run needs beside the data, as strict TOML; one file is one run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from halation._errors import one_of
from halation._files import read_text
from halation._toml import apply_setting, check_numbers, from_toml, number, parse_toml, to_toml
from halation.encoders import ModelConfig
from halation.training._settings import Settings

__all__ = [
    "CSD",
    "DAA",
    "InfoNCE",
    "Loss",
    "Recipe",
    "Sigmoid",
    "SmoothAP",
    "SoftContrastive",
    "Spread",
    "Term",
    "Triplet",
    "parse_recipe",
    "read_recipe",
    "to_toml",
]


@dataclass(frozen=True)
class Term:
    """A term of the loss with nothing but its weight; 0 = left out."""

    weight: float = 0.0


@dataclass(frozen=True)
class InfoNCE(Term):
    """Cross-entropy over the batch."""

    temperature: float = number(0.07, positive=True)


@dataclass(frozen=True)
class Sigmoid(Term):
    """SigLIP's."""

    scale: float = number(10.0, positive=True)
    shift: float = number(-10.0, any_sign=True)


@dataclass(frozen=True)
class Triplet(Term):
    """VSE++'s hinge."""

    margin: float = 0.2
    hardest: bool = True
    sum_steps: int = 0  # steps at the beginning with all negatives


@dataclass(frozen=True)
class SoftContrastive(Term):
    """PCME's."""

    scale: float = number(15.0, positive=True)
    shift: float = number(15.0, any_sign=True)
    samples: int = number(7, positive=True)


@dataclass(frozen=True)
class CSD(Term):
    """PCME++'s."""

    scale: float = number(5.0, positive=True)
    shift: float = number(5.0, any_sign=True)
    pseudo_positives: float = 0.1


@dataclass(frozen=True)
class DAA(Term):
    """The semantic ranking."""

    temperature: float = number(0.02, positive=True)
    relevance: str = "tfidf"  # tfidf, cider, cider-d, bleu1 … bleu4, rouge-l, mean, sentence
    variant: str = "paper"
    relevance_temperature: float = number(-1.0, any_sign=True)  # below 0: as temperature
    t2i: float = 1.0  # weight of captions asking for images, where images asking for captions has 1
    ramp: int = 0  # steps over which the weight rises from 0


@dataclass(frozen=True)
class SmoothAP(Term):
    """Average precision of the annotated matches."""

    temperature: float = number(0.01, positive=True)


@dataclass(frozen=True)
class Spread(Term):
    """σ as the temperature of retrieval; teaches σ alone."""

    scale: float = number(50.0, positive=True)  # where the learnt scale begins
    memory: int = 0  # images and captions of earlier batches to be told from: a batch has few that are alike


@dataclass(frozen=True)
class Loss:
    """The sum of the terms with a weight."""

    infonce: InfoNCE = field(default_factory=InfoNCE)
    sigmoid: Sigmoid = field(default_factory=Sigmoid)
    triplet: Triplet = field(default_factory=Triplet)
    soft_contrastive: SoftContrastive = field(default_factory=SoftContrastive)
    csd: CSD = field(default_factory=CSD)
    daa: DAA = field(default_factory=DAA)
    smooth_ap: SmoothAP = field(default_factory=SmoothAP)
    kl: Term = field(default_factory=Term)
    spread: Spread = field(default_factory=Spread)
    uniformity: Term = field(default_factory=Term)
    diversity: Term = field(default_factory=Term)
    mmd: Term = field(default_factory=Term)

    def __post_init__(self) -> None:
        for term in dataclasses.fields(self):
            check_numbers(getattr(self, term.name), f"loss.{term.name}")


@dataclass(frozen=True)
class Recipe(ModelConfig):
    """Everything a run needs beside the data."""

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
