"""What a model is built from: the sections of a recipe for its data, backbones, head and similarity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from halation._errors import InputError
from halation._toml import check_numbers, number

__all__ = ["DataConfig", "HeadConfig", "ImageConfig", "ModelConfig", "TextConfig"]

_NO_GIST = "set it to 0 and train again (DAA then trains the score that search uses)"


@dataclass(frozen=True)
class DataConfig:
    """Which features, captions and splits of the data are used."""

    features: str = ""  # a folder below the data's, or any path; empty: the pictures
    captions: int = 0  # per image of the training split, the first ones; 0 = all
    train: str = "train"
    dev: str = "dev"
    dev_images: int = 0  # validate on this many images only (scorers take every pair through a network); 0 = all

    def __post_init__(self) -> None:
        check_numbers(self, "data")


@dataclass(frozen=True)
class ImageConfig:
    """The image backbone."""

    backbone: str = "precomputed"  # precomputed, efficientnet_lite0, small_conv, hub
    name: str = ""  # of a hub model, or its folder
    trainable: bool = True
    local: bool = True  # use cells as well as the pooled vector, if the features have both
    grid: int = 0  # precomputed cells of a square picture averaged into grid × grid of them; 0 = as they are
    dim: int = number(128, positive=True)  # of small_conv's cells
    size: int = number(64, positive=True)  # of small_conv's pictures, in pixels
    stem: str = "coarse"  # small_conv's first layers: coarse, or fine, which sees small shapes

    def __post_init__(self) -> None:
        check_numbers(self, "image")


@dataclass(frozen=True)
class TextConfig:
    """The text backbone."""

    backbone: str = "pooled_words"  # pooled_words, words_and_sentence, words_gru, small_transformer, minilm, hub
    name: str = ""  # of a hub model, or its folder
    trainable: bool = True
    vectors: str = ""  # a GloVe file, .npz, or "glove-6b-50d" (extra `pretrained`); empty: learnt
    dim: int = number(100, positive=True)  # of the word vectors
    hidden: int = number(256, positive=True)  # of the GRU
    layers: int = number(2, positive=True)  # of the transformer
    heads: int = number(4, positive=True)
    dropout: float = number(0.15, below=1)  # share of words left out in training
    min_count: int = 2  # words seen less often are unknown

    def __post_init__(self) -> None:
        check_numbers(self, "text")


@dataclass(frozen=True)
class HeadConfig:
    """Heads and comparison: a recipe's section `[model]`."""

    head: str = "point"  # point, pvse, pcme, pcmepp, sgr, saf, sgraf
    dim: int = 512  # 0 = the point head keeps the vectors of the backbones, as in CLIP: its map starts as the identity
    dropout: float = number(0.3, below=1)  # of the image features
    text_dropout: float = number(0.0, below=1)  # of the text features
    source: str = "pooled"  # what the point head reads: pooled, local, both, attended; pcmepp: pooled, local
    heads: int = number(4, positive=True)  # of the point head's attention (source = "attended")
    members: int = number(1, positive=True)  # point heads that share `dim`, each with its own loss
    text_summary: str = "pooled"  # the summary in pcme and pvse: the pooled vector, or a GRU over the words ("gru")
    hidden: int = 0  # of pcme's and pvse's attention over cells and words; 0 = half as wide as they are, as published
    k: int = number(2, positive=True)  # embeddings per item (pvse)
    pool: str = "mean"  # of pcmepp's cells: gpo (learnt, as published), mean, max
    similarity: str = ""  # empty: the head's default (point: cosine, pcme: l2 of the means, pcmepp: csd)
    log_sigma: float = number(-3.0, any_sign=True)  # the initial log σ (pcme, pcmepp)
    sim_dim: int = number(64, positive=True)  # of sgr and saf
    steps: int = number(3, positive=True)  # of sgr's reasoning
    regions: int = 0  # cells of an image, for sgr's and saf's batch norm; 0 = no batch norm

    removed_keys: ClassVar[dict[str, str]] = {  # runs of 0.1 name them all
        "gist": _NO_GIST,
        "gist_dropout": "",
        "gist_temperature": "",
        "gist_share": "",
        "gist_floor": "",
    }

    def __post_init__(self) -> None:
        check_numbers(self, "model")
        if self.dim == 0 and self.head != "point":
            raise InputError("model.dim is 0; it must be above 0")
        if self.members > 1 and self.head != "point":
            raise InputError(
                f"model.members is {self.members}, but only point heads form a committee, not {self.head}; set it to 1"
            )
        if self.dim % self.members or (self.members > 1 and not self.dim):
            raise InputError(
                f"model.dim is {self.dim}, which {self.members} members cannot share equally; set it to a multiple"
            )

    def __str__(self) -> str:
        """The head and its dimensions in words.

        >>> print(HeadConfig(dim=12, members=3))
        point head, 12 dimensions, a committee of 3
        """
        committee = f", a committee of {self.members}" if self.members > 1 else ""
        return f"{self.head} head, {self.dim} dimensions{committee}"


@dataclass(frozen=True)
class ModelConfig:
    """Everything a model is built from, except its vocabulary and weights: a recipe without its loss and schedule."""

    name: str = ""
    data: DataConfig = field(default_factory=DataConfig)
    image: ImageConfig = field(default_factory=ImageConfig)
    text: TextConfig = field(default_factory=TextConfig)
    model: HeadConfig = field(default_factory=HeadConfig)
