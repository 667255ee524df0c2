"""Image models of the transformers library."""

from __future__ import annotations

import json
import os
from typing import Any

from PIL import Image
from torch import Tensor, nn

from halation._errors import InputError
from halation.data import Features
from halation.encoders._pretrained import (
    Freezable,
    import_transformers,
    layers_in_order,
    load_model,
    load_options,
    load_quietly,
)

__all__ = ["HubImage"]

_TOWERS = {  # the image tower of models of images and text
    "clip": "CLIPVisionModelWithProjection",
    "clip_vision_model": "CLIPVisionModelWithProjection",
    "siglip": "SiglipVisionModel",
    "siglip_vision_model": "SiglipVisionModel",
}
_PREPROCESSING = (  # settings of an image processor that change pixels
    "do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_normalize",
    "image_mean", "image_std",
)  # fmt: skip


class HubImage(Freezable):
    """An image model of transformers: CLIP's or SigLIP's image tower, DINOv2, ViT, ResNet and others.

    `source` is a name on the Hugging Face hub or a folder. local (B, cells, d) = patch tokens without the class and
    register tokens, or the cells of a feature map, row by row; pooled = the pooled output of the model (CLIP: the
    projected embedding that is compared with text; ViT: the class token; ResNet: the mean). `trainable=False`
    freezes the model.
    """

    def __init__(self, source: str | os.PathLike[str], *, trainable: bool = True) -> None:
        super().__init__()
        library = import_transformers("an image model of transformers")
        self.model, kind = load_model(library, source, "vision", _TOWERS)
        read, options = library.AutoImageProcessor.from_pretrained, load_options(source)
        self._processor: Any = load_quietly(
            library, source, "the image processor", lambda: read(source, backend="pil", **options)
        )
        self.name = str(source)
        prepared: dict[str, Any] = self._processor.to_dict()
        self.preprocessing = json.dumps({key: prepared.get(key) for key in _PREPROCESSING}, default=str)
        inner = self.model.config
        self._patch = getattr(inner, "patch_size", None)
        widths = getattr(inner, "hidden_sizes", None)
        self.local_dim = int(widths[-1] if widths else inner.hidden_size)
        self.pooled_dim = int(inner.projection_dim) if kind.startswith("clip") else self.local_dim
        for name, parameter in self.model.named_parameters():
            if name.endswith("mask_token"):  # only used in pretraining: it never gets a gradient
                parameter.requires_grad_(False)
        if not trainable:
            self.freeze()

    def preprocess(self, image: Image.Image) -> Tensor:
        """A picture → (3, H, W), as the model's processor prepares it."""
        pixels: Tensor = self._processor(image.convert("RGB"), return_tensors="pt")["pixel_values"]
        return pixels[0]

    def view(self, width: int, height: int) -> tuple[float, float, float, float]:
        """The part of a picture of this size that the model sees (left, top, right, bottom)."""
        size, crop = (dict(getattr(self._processor, name, None) or {}) for name in ("size", "crop_size"))
        short = size.get("shortest_edge")
        if not short or not crop or not getattr(self._processor, "do_center_crop", False):
            return 0.0, 0.0, float(width), float(height)  # squeezed into a square
        scale = min(width, height) / short
        across, down = min(width, crop["width"] * scale), min(height, crop["height"] * scale)
        left, top = (width - across) / 2, (height - down) / 2
        return left, top, left + across, top + down

    def forward(self, images: Tensor) -> Features:
        """images (B, 3, H, W) → pooled (B, pooled_dim), local (B, cells, local_dim)."""
        with self.gradients():
            out = self.model(pixel_values=images)
            last: Tensor = out.last_hidden_state
            is_map = last.ndim == 4  # (B, d, h, w), else tokens (B, n, d)
            special = 0 if is_map else self._special_tokens(last, images)
            local = last.flatten(2).transpose(1, 2) if is_map else last[:, special:]
            pooled = getattr(out, "image_embeds", None)
            if pooled is None:
                pooled = getattr(out, "pooler_output", None)
            if pooled is None:
                pooled = last[:, 0] if special else local.mean(1)
            return Features(pooled.flatten(1), local)

    def layers(self) -> list[nn.Module]:
        """The layers, from the input to the output."""
        return layers_in_order(self.model)

    def _special_tokens(self, tokens: Tensor, images: Tensor) -> int:
        """The number of class and register tokens before the patches."""
        if not isinstance(self._patch, int):
            return 0
        special = tokens.shape[1] - (images.shape[2] // self._patch) * (images.shape[3] // self._patch)
        if special < 0:
            raise InputError(
                f"{tokens.shape[1]} tokens for images of {tuple(images.shape[2:])} in patches of {self._patch}"
            )
        return special
