"""The two sides of a trained model, as a collection and its queries need them: pictures and words → Gaussians."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image
from torch import Tensor

from halation import similarity
from halation._errors import InputError
from halation.data import Features
from halation.encoders import Encoded
from halation.search._eyes import Eyes, device_here
from halation.search._reader import Reader
from halation.similarity import Gaussian, IndexedSimilarity
from halation.training import Trained
from halation.training._validate import to_device

__all__ = ["SIMILARITIES", "Towers"]

SIMILARITIES: dict[str, IndexedSimilarity] = {
    name: getattr(similarity, name) for name in ("cosine", "l2", "csd", "wasserstein2")
}


class Towers:
    """A run's image and text encoders. `backbone` names what computed the features of a run trained on features.

    The network that looks at pictures is loaded when the first picture comes; methods may be called by many threads.
    """

    def __init__(self, trained: Trained, backbone: str | None = None) -> None:
        trained = trained.in_detail()  # a gist orders what does not match: an index is asked for what does
        self.trained, self.model = trained, trained.model.to(device_here()).eval()
        self.similarity = _similarity(trained)
        self.reader, self.eyes = Reader(trained), Eyes(trained, backbone)

    @property
    def on_features(self) -> bool:
        """Whether the run was trained on features, not on pictures."""
        return self.eyes.on_features

    @property
    def backbone(self) -> str | None:
        """What computed the features of a run trained on features."""
        return self.eyes.backbone

    def open_eyes(self) -> None:
        """Load what looks at pictures; an InputError says why a run on features cannot."""
        _ = self.eyes.network

    def preprocess(self, picture: Image.Image) -> Tensor:
        """A picture → (3, H, W)."""
        return self.eyes.preprocess(picture)

    @torch.inference_mode()
    def pictures(self, pixels: Tensor) -> Gaussian:
        """(B, 3, H, W), as `preprocess` gives them → B Gaussians."""
        return self._gaussian(self.model.images(self.eyes.look(pixels)))

    @torch.inference_mode()
    def features(self, features: Features) -> Gaussian:
        """What a backbone saw of B pictures → B Gaussians."""
        return self._gaussian(self.model.images(to_device(features, device_here())))

    @torch.inference_mode()
    def captions(self, captions: Sequence[str]) -> Gaussian:
        """B captions → B Gaussians."""
        return self._gaussian(self.model.captions(self.reader.tokens(captions)))

    def _gaussian(self, encoded: Encoded) -> Gaussian:
        assert isinstance(encoded, Gaussian)  # `_similarity` has refused the others
        return encoded.to("cpu", torch.float32)


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
