"""Readers turn pictures and texts into the inputs of a model's encoders."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from halation._errors import InputError
from halation.data import Features, Projection, Tokens, open_features
from halation.encoders._build import frozen_backbone
from halation.encoders._config import ModelConfig
from halation.encoders._image_precomputed import Precomputed
from halation.encoders._network import current_device
from halation.encoders._text_words import WordsAndSentence
from halation.encoders._vocabulary import Vocabulary

__all__ = ["ImageReader", "TextReader"]

_LITE0_NAMES = ("efflite0", "efficientnet_lite0")  # folders of its features begin with one of these


class ImageReader:
    """Turns pictures into the input of a model's image encoder.

    A model trained on pictures reads pixels. A model trained on features needs the network that computed them:
    `backbone` names it if the name of the features does not. If their cells were projected, the run holds the
    projection; `data` is the dataset's folder, for a run that does not.

    The network is loaded with the first picture. Several threads may use one reader.
    """

    def __init__(
        self,
        folder: Path,
        config: ModelConfig,
        model_backbone: Any,
        backbone: str | None = None,
        data: Path | None = None,
    ) -> None:
        self.backbone = backbone or _backbone_by_name(config)
        self._folder, self._config, self._model_backbone, self._data = folder, config, model_backbone, data
        self._lock = threading.Lock()
        self._network: Any = None
        self.projection: Projection | None = None

    @property
    def on_features(self) -> bool:
        """Whether the model was trained on features instead of pictures."""
        return isinstance(self._model_backbone, Precomputed)

    @property
    def network(self) -> Any:
        """The network that takes pixels; an InputError if that of a model on features is not known or does not fit."""
        with self._lock:
            if self._network is None:
                self._network = self._load() if self.on_features else self._model_backbone
            return self._network

    def preprocess(self, picture: Image.Image) -> Tensor:
        """A picture → (3, H, W)."""
        pixels: Tensor = self.network.preprocess(picture)
        return pixels

    @torch.no_grad()
    def read(self, pixels: Tensor) -> Tensor | Features:
        """Pixels (B, 3, H, W), as `preprocess` gives them → the input of the image encoder."""
        network, pixels = self.network, pixels.to(current_device())
        if not self.on_features:
            return pixels
        features: Features = network(pixels)
        if self.projection is not None and features.local is not None:
            features = Features(features.pooled, self.projection(features.local))
        # stored features are float16: new ones are rounded the same way
        return Features(*(None if x is None else x.half().float() for x in features[:2]))  # type: ignore[arg-type]

    def _load(self) -> Any:
        features = Path(self._config.data.features or "features")
        trained_on = features.name if features.is_absolute() else features
        if self.backbone is None:
            raise InputError(
                f"was trained on features ({trained_on}) and does not say which network computed them, so it cannot "
                "look at new pictures",
                path=self._folder,
                remedy="give the dataset's own folder, whose features are used, or name that network: "
                "efficientnet_lite0, or the name or folder of a transformers model",
                argument="backbone",
            )
        network: Any = frozen_backbone(self.backbone).to(current_device())
        expected = self._model_backbone
        if expected.local_dim and network.local_dim != expected.local_dim:
            self.projection = self._kept_projection()
        cells = network.local_dim if self.projection is None else self.projection.dims[1]
        fits = self.projection is None or self.projection.dims[0] == network.local_dim
        given = (network.pooled_dim, cells if expected.local_dim else 0)
        if given != (expected.pooled_dim, expected.local_dim) or not fits:
            raise InputError(
                f"was trained on features ({trained_on}) of {expected.pooled_dim} numbers and cells of "
                f"{expected.local_dim}, but {self.backbone} gives {network.pooled_dim} and {network.local_dim}; they "
                "were computed in another way, so this run cannot look at new pictures",
                path=self._folder,
                remedy="give the dataset's own folder, or train on the pictures, or on features by `halation features`",
            )
        return network

    def _kept_projection(self) -> Projection | None:
        """The projection of the cells, which the run holds, or its data beside the features."""
        kept = self._folder / Projection.FILE
        if kept.is_file():
            return Projection.load(kept)
        return None if self._data is None else open_features(self._data / self._config.data.features).projection


def _backbone_by_name(config: ModelConfig) -> str | None:
    name = Path(config.data.features).name if config.data.features else ""
    return "efficientnet_lite0" if name.startswith(_LITE0_NAMES) else None


class TextReader:
    """Turns texts into the input of a model's text encoder. Several threads may use one reader."""

    def __init__(self, text_backbone: Any) -> None:
        self._text: Any = text_backbone
        self._lock = threading.Lock()  # tokenizers refuse two callers at a time
        self._vocabulary: Any = getattr(text_backbone, "vocabulary", None)

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """B texts → `Tokens` (B, L)."""
        with self._lock:
            if isinstance(self._text, WordsAndSentence):
                self._text.read_only()
            tokens: Tokens = self._text.tokenize(list(texts))
        return tokens.to(current_device())

    def words(self, text: str) -> list[str] | None:
        """The words of a text, one per token, as the vocabulary splits it; None for a model that reads word pieces."""
        return None if self._vocabulary is None else self._vocabulary.split(text)

    def unknown_words(self, text: str) -> list[str]:
        """The words of a text that the model has no vector for; none if it reads more than words."""
        if self._reads_everything:
            return []
        return [word for word in dict.fromkeys(self._vocabulary.split(text)) if word not in self._vocabulary]

    def knows_any_word(self, text: str) -> bool:
        """Whether the model knows any word of a text."""
        return self._reads_everything or bool((self._vocabulary.encode([text]).ids > Vocabulary.UNKNOWN).any())

    @property
    def _reads_everything(self) -> bool:
        """Whether no word is unknown: the model reads word pieces, or has a sentence encoder."""
        return self._vocabulary is None or isinstance(self._text, WordsAndSentence)
