"""What looks at pictures for a run: its own image backbone, or the network that computed the features it was taught."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from halation._errors import InputError
from halation.data import Features, Projection, open_features
from halation.data._projection import PROJECTION
from halation.encoders import Precomputed
from halation.training import Trained, frozen_backbone

__all__ = ["Eyes", "device_here"]

_LITE = ("efflite0", "efficientnet_lite0")  # what features of EfficientNet-Lite0 are called


class Eyes:
    """From a picture to what a run's image encoder takes.

    backbone   names what computed the features, where the run learnt from features
    data       the data's folder, for runs that do not keep how the cells of their features were made smaller

    The network is loaded when the first picture comes; methods may be called by many threads.
    """

    def __init__(self, trained: Trained, backbone: str | None = None, data: Path | None = None) -> None:
        self.trained, self._own, self._data = trained, trained.model.image.backbone, data
        self.backbone = backbone or _guess(trained)
        self._lock = threading.Lock()
        self._network: Any = None
        self.projection: Projection | None = None

    @property
    def on_features(self) -> bool:
        """Whether the run was trained on features, not on pictures."""
        return isinstance(self._own, Precomputed)

    @property
    def network(self) -> Any:
        """What looks at pictures; an InputError says why a run on features cannot."""
        with self._lock:
            if self._network is None:
                self._network = self._load() if self.on_features else self._own
            return self._network

    def preprocess(self, picture: Image.Image) -> Tensor:
        """A picture → (3, H, W)."""
        pixels: Tensor = self.network.preprocess(picture)
        return pixels

    @torch.no_grad()
    def look(self, pixels: Tensor) -> Tensor | Features:
        """(B, 3, H, W), as `preprocess` gives them → what the image encoder takes."""
        network, pixels = self.network, pixels.to(device_here())
        if not self.on_features:
            return pixels
        seen: Features = network(pixels)
        if self.projection is not None and seen.local is not None:
            seen = Features(seen.pooled, self.projection(seen.local))
        return Features(*(None if x is None else x.half().float() for x in seen[:2]))  # type: ignore[arg-type]

    def _load(self) -> Any:
        taught = self.trained.recipe.data.features or "features"
        if self.backbone is None:
            raise InputError(
                f"{self.trained.folder} was trained on features ({taught}) and does not say which network computed "
                "them, so it cannot look at new pictures; name that network with --backbone (efficientnet_lite0, or "
                "the name or folder of a transformers model), or give the dataset's own folder, whose features are used"
            )
        eyes: Any = frozen_backbone(self.backbone).to(device_here())
        wanted: Any = self._own
        if wanted.local_dim and eyes.local_dim != wanted.local_dim:
            self.projection = _projection(self.trained, self._data)
        cells = eyes.local_dim if self.projection is None else self.projection.dims[1]
        reads = self.projection is None or self.projection.dims[0] == eyes.local_dim
        given = (eyes.pooled_dim, cells if wanted.local_dim else 0)
        if given != (wanted.pooled_dim, wanted.local_dim) or not reads:
            raise InputError(
                f"{self.trained.folder} was trained on features ({taught}) of {wanted.pooled_dim} numbers and cells of "
                f"{wanted.local_dim}, but {self.backbone} gives {eyes.pooled_dim} and {eyes.local_dim}; they were "
                "computed otherwise, so this run cannot look at new pictures: give the dataset's own folder, or train "
                "on the pictures, or on features by `halation features`"
            )
        return eyes


def _projection(trained: Trained, data: Path | None) -> Projection | None:
    """How the cells were made smaller: kept in the run, or beside the features of its data."""
    kept = trained.folder / PROJECTION
    if kept.is_file():
        return Projection.load(kept)
    return None if data is None else open_features(data / trained.recipe.data.features).projection


def device_here() -> torch.device:
    """This process's accelerator, of those torchrun shares out, where there are any."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None else torch.device(found.type, int(os.environ.get("LOCAL_RANK", "0")))


def _guess(trained: Trained) -> str | None:
    name = Path(trained.recipe.data.features).name if trained.recipe.data.features else ""
    return "efficientnet_lite0" if name.startswith(_LITE) else None
