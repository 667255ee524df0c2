"""The two sides of a trained model, as a collection and its queries need them: pictures and words → Gaussians."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from halation import similarity
from halation._errors import InputError
from halation.build import Trained, frozen_backbone
from halation.encoders import Encoded, Features, Precomputed, WordsAndSentence
from halation.gaussian import Gaussian
from halation.similarity import IndexedSimilarity
from halation.training._validate import to_device

__all__ = ["SIMILARITIES", "Towers", "device_here"]

SIMILARITIES: dict[str, IndexedSimilarity] = {
    name: getattr(similarity, name) for name in ("cosine", "l2", "csd", "wasserstein2")
}
_LITE = ("efflite0", "efficientnet_lite0")  # what features of EfficientNet-Lite0 are called


class Towers:
    """A run's image and text encoders. `backbone` names what computed the features of a run trained on features.

    The network that looks at pictures is loaded when the first picture comes; methods may be called by many threads.
    """

    def __init__(self, trained: Trained, backbone: str | None = None) -> None:
        trained = trained.in_detail()  # a gist orders what does not match: an index is asked for what does
        self.trained, self.model = trained, trained.model.to(device_here()).eval()
        self.similarity = _similarity(trained)
        self._text: Any = self.model.text.backbone
        if isinstance(self._text, WordsAndSentence):
            self._text.read_only()
        self._lock = threading.Lock()  # tokenizers refuse two callers at a time
        self._eyes: Any = None  # what turns a picture into what the image encoder takes
        self.backbone = backbone or _guess(trained)

    @property
    def on_features(self) -> bool:
        """Whether the run was trained on features, not on pictures."""
        return isinstance(self.model.image.backbone, Precomputed)

    def open_eyes(self) -> None:
        """Load what looks at pictures; an InputError says why a run on features cannot."""
        self._seeing()

    def preprocess(self, picture: Image.Image) -> Tensor:
        """A picture → (3, H, W)."""
        pixels: Tensor = self._seeing().preprocess(picture)
        return pixels

    @torch.inference_mode()
    def pictures(self, pixels: Tensor) -> Gaussian:
        """(B, 3, H, W), as `preprocess` gives them → B Gaussians."""
        eyes = self._seeing()
        if not self.on_features:
            return self._gaussian(self.model.images(pixels.to(device_here())))
        seen: Features = eyes(pixels.to(device_here()))
        return self.features(Features(*(None if x is None else x.half().float() for x in seen[:2])))  # type: ignore[arg-type]

    @torch.inference_mode()
    def features(self, features: Features) -> Gaussian:
        """What a backbone saw of B pictures → B Gaussians."""
        return self._gaussian(self.model.images(to_device(features, device_here())))

    @torch.inference_mode()
    def captions(self, captions: Sequence[str]) -> Gaussian:
        """B captions → B Gaussians."""
        with self._lock:
            tokens = self._text.tokenize(list(captions))
        return self._gaussian(self.model.captions(to_device(tokens, device_here())))

    def unknown_words(self, text: str) -> list[str]:
        """The words of a text the model has no vector for, where words are all it reads."""
        vocabulary = getattr(self._text, "vocabulary", None)
        if vocabulary is None or isinstance(self._text, WordsAndSentence):
            return []  # word pieces, or a sentence encoder beside the words: nothing is unknown
        from halation.semantics._tokenizers import TOKENIZERS

        words = dict.fromkeys(TOKENIZERS[vocabulary.tokenizer](text))
        return [word for word in words if word not in vocabulary]

    def reads(self, text: str) -> bool:
        """Whether any word of a text is known to the model."""
        vocabulary = getattr(self._text, "vocabulary", None)
        if vocabulary is None or isinstance(self._text, WordsAndSentence):
            return True
        tokens = vocabulary.encode([text]).ids
        return bool((tokens > 1).any())  # 1 stands for every unknown word

    def _seeing(self) -> Any:
        with self._lock:
            if self._eyes is None:
                self._eyes = self._load_eyes() if self.on_features else self.model.image.backbone
            return self._eyes

    def _load_eyes(self) -> Any:
        taught = self.trained.recipe.data.features or "features"
        if self.backbone is None:
            raise InputError(
                f"{self.trained.folder} was trained on features ({taught}) and does not say which network computed "
                "them, so it cannot look at new pictures; name that network with --backbone (efficientnet_lite0, or "
                "the name or folder of a transformers model), or give the dataset's own folder, whose features are used"
            )
        eyes: Any = frozen_backbone(self.backbone).to(device_here())
        wanted: Any = self.model.image.backbone
        given = (eyes.pooled_dim, eyes.local_dim if wanted.local_dim else 0)
        if given != (wanted.pooled_dim, wanted.local_dim):
            raise InputError(
                f"{self.trained.folder} was trained on features ({taught}) of {wanted.pooled_dim} numbers and cells of "
                f"{wanted.local_dim}, but {self.backbone} gives {eyes.pooled_dim} and {eyes.local_dim}; they were "
                "computed otherwise, so this run cannot look at new pictures: give the dataset's own folder, or train "
                "on the pictures, or on features by `halation features`"
            )
        return eyes

    def _gaussian(self, encoded: Encoded) -> Gaussian:
        assert isinstance(encoded, Gaussian)  # `_similarity` has refused the others
        return encoded.to("cpu", torch.float32)


def device_here() -> torch.device:
    """This process's accelerator, of those torchrun shares out, where there are any."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None else torch.device(found.type, int(os.environ.get("LOCAL_RANK", "0")))


def _similarity(trained: Trained) -> IndexedSimilarity:
    compare = trained.model.compare
    if isinstance(compare, IndexedSimilarity):
        return compare
    head = trained.recipe.model.head
    what = "several vectors an item" if head == "pvse" else "a network that looks at both items at once"
    raise InputError(
        f"{trained.folder} is a {head} model: it compares by {what}, which no index can store; "
        "search needs a head of one vector or one Gaussian an item (point, pcme, pcmepp)"
    )


def _guess(trained: Trained) -> str | None:
    name = Path(trained.recipe.data.features).name if trained.recipe.data.features else ""
    return "efficientnet_lite0" if name.startswith(_LITE) else None
