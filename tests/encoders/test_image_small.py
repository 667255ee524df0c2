"""The small network on drawings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from halation import InputError
from halation.encoders import SmallConvNet

COLOURS = [(200, 30, 30), (30, 160, 30), (30, 30, 200)]


def drawings(n: int, seed: int) -> tuple[list[Image.Image], torch.Tensor]:
    """A disc or a square of one of three colours somewhere; its colour 0 … 2."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 6, n)
    pictures = []
    for kind in kinds:
        x, y, r = (int(v) for v in rng.integers((14, 14, 8), (50, 50, 13)))
        picture = Image.new("RGB", (64, 64), (230, 230, 230))
        pen = ImageDraw.Draw(picture)
        (pen.ellipse if kind % 2 else pen.rectangle)([x - r, y - r, x + r, y + r], fill=COLOURS[kind // 2])
        pictures.append(picture)
    return pictures, torch.from_numpy(kinds // 2)


def test_it_learns_colours_in_seconds() -> None:
    torch.manual_seed(0)
    net, top = SmallConvNet(16), torch.nn.Linear(32, 3)
    pictures, colours = drawings(800, seed=0)
    images = torch.stack([net.preprocess(picture) for picture in pictures])
    optimizer = torch.optim.AdamW([*net.parameters(), *top.parameters()], lr=5e-3)
    for step in range(40):
        rows = slice(32 * (step % 20), 32 * (step % 20) + 32)
        loss = torch.nn.functional.cross_entropy(top(net(images[rows]).pooled), colours[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = top(net(images[640:]).pooled).argmax(1) == colours[640:]
    assert right.double().mean() > 0.9


def test_features_do_not_depend_on_the_batch() -> None:
    net = SmallConvNet(8, size=32)
    images = torch.randn(5, 3, 32, 32)
    torch.testing.assert_close(net(images).pooled[3:4], net(images[3:4]).pooled, rtol=1e-4, atol=1e-5)


def test_pooled_is_the_maximum_and_the_mean_of_the_cells() -> None:
    net = SmallConvNet(8, size=32)
    pooled, local, mask = net(torch.randn(2, 3, 32, 32))
    assert mask is None and local is not None and local.shape == (2, 16, 8)
    torch.testing.assert_close(pooled, torch.cat([local.amax(1), local.mean(1)], 1))
    mean = SmallConvNet(8, size=32, pooling="mean")
    assert mean.pooled_dim == 8 == mean(torch.randn(2, 3, 32, 32)).pooled.shape[1]


def test_cells_stand_row_by_row() -> None:
    net = SmallConvNet(8, size=64).eval()
    plain, changed = torch.zeros(1, 3, 64, 64), torch.zeros(1, 3, 64, 64)
    changed[..., :2, 60:] = 1  # the top right corner
    with torch.no_grad():
        difference = (net.stem(plain) - net.stem(changed)).abs().sum(1).flatten()  # before anything mixes cells
    assert difference.nonzero().tolist() == [[7]]


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK"])
def test_any_picture_becomes_a_square_of_three_channels(mode: str) -> None:
    image = SmallConvNet(8).preprocess(Image.new("RGB", (30, 90), (255, 255, 255)).convert(mode))
    assert image.shape == (3, 64, 64) and image.dtype == torch.float32
    assert image.min() > 0.9 and image.max() <= 1


def test_every_layer_learns() -> None:
    net = SmallConvNet(8, size=32, blocks=2)
    net(torch.randn(2, 3, 32, 32)).pooled.square().sum().backward()
    listed = [p for layer in net.layers() for p in layer.parameters()]
    assert {id(p) for p in listed} == {id(p) for p in net.parameters()}
    assert all(p.grad is not None for p in listed)


def test_sizes_that_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="multiple of 8"):
        SmallConvNet(8, size=60)
    with pytest.raises(InputError, match="multiple of 16"):
        SmallConvNet(8, width=20)


def test_the_fine_stem_has_the_same_cells_and_more_layers_before_them() -> None:
    torch.manual_seed(0)
    fine, coarse = SmallConvNet(16, stem="fine"), SmallConvNet(16)
    images = torch.randn(2, 3, 64, 64)
    assert fine(images).local.shape == coarse(images).local.shape == (2, 64, 16)  # type: ignore[union-attr]
    assert fine.pooled_dim == coarse.pooled_dim
    assert sum(p.numel() for p in fine.stem.parameters()) > sum(p.numel() for p in coarse.stem.parameters())
    with pytest.raises(InputError, match="stem"):
        SmallConvNet(16, stem="finest")  # type: ignore[arg-type]
