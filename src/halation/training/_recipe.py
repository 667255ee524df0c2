"""A recipe: everything a run needs beside the data, as frozen dataclasses; one TOML file = one run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from halation._errors import InputError
from halation.training._settings import Settings

__all__ = [
    "CSD",
    "DAA",
    "Data",
    "Image",
    "InfoNCE",
    "Loss",
    "Model",
    "Recipe",
    "Sigmoid",
    "SmoothAP",
    "SoftContrastive",
    "Spread",
    "Term",
    "Text",
    "Triplet",
]


@dataclass(frozen=True)
class Data:
    """Which parts of the data are used, and how."""

    features: str = ""  # below the data's folder, or any path; empty: the pictures themselves
    captions: int = 0  # per image of the training split, the first so many; 0 = all
    train: str = "train"
    dev: str = "dev"
    dev_images: int = 0  # validate on the first so many (scorers take every pair through a network); 0 = all


@dataclass(frozen=True)
class Image:
    """The image backbone."""

    backbone: str = "precomputed"  # precomputed, efficientnet_lite0, small_conv, hub
    name: str = ""  # of a hub model, or its folder
    trainable: bool = True
    local: bool = True  # cells as well as the pooled vector, where the features have both
    grid: int = 0  # precomputed cells of a square picture averaged into grid × grid of them; 0 = as they are
    dim: int = 128  # of small_conv's cells
    size: int = 64  # of small_conv's pictures, in pixels
    stem: str = "coarse"  # small_conv's first layers: coarse, or fine, which sees small shapes


@dataclass(frozen=True)
class Text:
    """The text backbone."""

    backbone: str = "pooled_words"  # pooled_words, words_and_sentence, words_gru, small_transformer, minilm, hub
    name: str = ""  # of a hub model, or its folder
    trainable: bool = True
    vectors: str = ""  # a GloVe file, .npz, or "glove-6b-50d" (extra `pretrained`); empty: learnt
    dim: int = 100  # of the word vectors
    hidden: int = 256  # of the GRU
    layers: int = 2  # of the transformer
    heads: int = 4
    dropout: float = 0.15  # share of words left out in training
    min_count: int = 2  # words seen less often are unknown


@dataclass(frozen=True)
class Model:
    """Heads and comparison."""

    head: str = "point"  # point, pvse, pcme, pcmepp, sgr, saf, sgraf
    dim: int = 512  # 0 = the point head keeps the backbones' own vectors, as in CLIP: its map begins as the identity
    dropout: float = 0.3  # of the image features
    text_dropout: float = 0.0  # of the text features
    source: str = "pooled"  # what the point head reads: pooled, local, both, attended; pcmepp: pooled, local
    heads: int = 4  # of the point head's attention (source = "attended")
    members: int = 1  # point heads that share `dim` among them, each with a loss of its own; search sees one point
    text_summary: str = "pooled"  # what pcme and pvse begin with: the pooled vector, or a GRU of the head's own ("gru")
    hidden: int = 0  # of pcme's and pvse's attention over cells and words; 0 = half as wide as they are, as published
    k: int = 2  # embeddings an item (pvse)
    pool: str = "mean"  # of pcmepp's cells: gpo (learnt, as published), mean, max
    similarity: str = ""  # empty: the head's own (cosine; l2 of the means for pcme; csd for pcmepp)
    log_sigma: float = -3.0  # where log σ begins (pcme, pcmepp)
    sim_dim: int = 64  # of sgr and saf
    steps: int = 3  # of sgr's reasoning
    regions: int = 0  # cells of an image, for sgr's and saf's batch norm; 0 = no batch norm
    gist: int = 0  # dimensions of a second embedding that orders what does not match in detail; 0 = none
    gist_dropout: float = 0.5  # of the features it reads
    gist_temperature: float = 0.1  # of the soft maximum of detail and gist
    gist_share: float = 0.05  # of the pairs, about, are ranked by detail alone
    gist_floor: float = 0.5  # the least a gist says, where 0 is the detail's median and 1 where it decides alone


@dataclass(frozen=True)
class Term:
    """A term of the loss with nothing but its weight; 0 = left out."""

    weight: float = 0.0


@dataclass(frozen=True)
class InfoNCE(Term):
    """Cross-entropy over the batch."""

    temperature: float = 0.07


@dataclass(frozen=True)
class Sigmoid(Term):
    """SigLIP's."""

    scale: float = 10.0
    shift: float = -10.0


@dataclass(frozen=True)
class Triplet(Term):
    """VSE++'s hinge."""

    margin: float = 0.2
    hardest: bool = True
    sum_steps: int = 0  # steps at the beginning with all negatives


@dataclass(frozen=True)
class SoftContrastive(Term):
    """PCME's."""

    scale: float = 15.0
    shift: float = 15.0
    samples: int = 7


@dataclass(frozen=True)
class CSD(Term):
    """PCME++'s."""

    scale: float = 5.0
    shift: float = 5.0
    pseudo_positives: float = 0.1


@dataclass(frozen=True)
class DAA(Term):
    """The semantic ranking."""

    temperature: float = 0.02
    relevance: str = "tfidf"  # tfidf, cider, cider-d, bleu1 … bleu4, rouge-l, mean, sentence
    variant: str = "paper"
    relevance_temperature: float = -1.0  # below 0: as temperature
    t2i: float = 1.0  # weight of captions asking for images, where images asking for captions has 1
    ramp: int = 0  # steps over which the weight rises from 0


@dataclass(frozen=True)
class SmoothAP(Term):
    """Average precision of the annotated matches."""

    temperature: float = 0.01


@dataclass(frozen=True)
class Spread(Term):
    """σ as the temperature of retrieval; teaches σ alone."""

    scale: float = 50.0  # where the learnt scale begins
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


@dataclass(frozen=True)
class Recipe:
    """Everything a run needs beside the data."""

    name: str = ""
    data: Data = field(default_factory=Data)
    image: Image = field(default_factory=Image)
    text: Text = field(default_factory=Text)
    model: Model = field(default_factory=Model)
    loss: Loss = field(default_factory=Loss)
    train: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        for place, value in _numbers(self):
            low, high = -math.inf if place in _ANY else 0, 1 if place in _SHARES else math.inf
            positive = place in _POSITIVE or (place == "model.dim" and self.model.head != "point")
            if not math.isfinite(value) or not low <= value < high or (positive and value == 0):
                bound = "a number" if place in _ANY else "above 0" if positive else "0 or more"
                raise InputError(f"{place} is {value}; it must be {bound}{' and below 1' if high == 1 else ''}")
        self._check_members()

    def _check_members(self) -> None:
        model = self.model
        if model.members > 1 and model.head != "point":
            raise InputError(
                f"model.members is {model.members}, but only point heads sit together, not {model.head}; take 1"
            )
        if model.dim % model.members or (model.members > 1 and not model.dim):
            raise InputError(
                f"model.dim is {model.dim}, which {model.members} members cannot share alike; take a multiple"
            )

    @property
    def shape(self) -> str:
        """Head and dimensions in words.

        >>> Recipe(model=Model(dim=12, members=3)).shape
        'point head, 12 dimensions, a committee of 3'
        """
        model = self.model
        together = f", a committee of {model.members}" if model.members > 1 else ""
        return f"{model.head} head, {model.dim} dimensions{together}"


_POSITIVE = {
    "image.dim", "image.size", "text.dim", "text.hidden", "text.layers", "text.heads", "model.k", "model.heads",
    "model.members",
    "model.sim_dim", "model.steps", "model.gist_temperature", "model.gist_share", "loss.infonce.temperature",
    "loss.sigmoid.scale", "loss.soft_contrastive.scale", "loss.soft_contrastive.samples", "loss.csd.scale",
    "loss.spread.scale", "loss.daa.temperature", "loss.smooth_ap.temperature",
}  # fmt: skip
_ANY = {
    "model.log_sigma", "loss.sigmoid.shift", "loss.soft_contrastive.shift", "loss.csd.shift",
    "loss.daa.relevance_temperature",
}  # fmt: skip
_SHARES = {
    "text.dropout",
    "model.dropout",
    "model.text_dropout",
    "model.gist_dropout",
    "model.gist_share",
    "model.gist_floor",
}


def _numbers(section: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """(key, value) of every number of a recipe, but those `Settings` has checked itself."""
    for part in dataclasses.fields(section):
        value = getattr(section, part.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, Settings):
            yield from _numbers(value, f"{place}{part.name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{place}{part.name}", value
