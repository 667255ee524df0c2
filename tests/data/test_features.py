"""Features come back as they were written, from whatever file, in whatever order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from halation import InputError
from halation.data import FeatureArray, FeatureStore, open_dataset, open_features


def write(folder: Path, rng: np.random.Generator, n: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    folder.mkdir(parents=True)
    pooled = rng.normal(size=(n, 6)).astype(np.float16)
    local = rng.integers(-127, 127, (n, 4, 3), dtype=np.int8)
    scale = np.array([0.5, 2.0, 0.25], dtype=np.float32)
    np.save(folder / "net_pool6_f16.npy", pooled)
    np.save(folder / "net_grid2x2_int8.npy", local)
    np.savez(folder / "net_grid2x2_params.npz", scale=scale, mean=np.zeros(3))
    (folder / "images.txt").write_text("\n".join(f"p{k}.jpg" for k in range(n)))
    return pooled, local, scale


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_rows_are_those_of_the_file_in_the_order_asked_for(
    tmp_path: Path, rng: np.random.Generator, memory: int
) -> None:
    pooled, local, scale = write(tmp_path / "f", rng)
    store = open_features(tmp_path / "f", memory=memory)
    for index in ([7, 0, 7, 3], [0, 1, 2], list(range(9)), list(range(8, -1, -1))):
        seen = store.rows(index)
        assert seen.local is not None and seen.pooled.dtype == seen.local.dtype == torch.float32
        assert np.array_equal(seen.pooled.numpy(), pooled[index].astype(np.float32))
        assert np.array_equal(seen.local.numpy(), local[index] * scale)
    part = store.take([5, 2, 8]).take([2, 0])
    assert part.names == ("p8.jpg", "p5.jpg")
    assert np.array_equal(part.rows([1]).pooled.numpy(), pooled[[5]].astype(np.float32))
    assert (store.pooled_dim, store.local_dim, store.cells, store.pooled_only().local_dim) == (6, 3, 4, 0)


def test_changing_a_batch_does_not_change_the_store(rng: np.random.Generator) -> None:
    store = FeatureStore(FeatureArray(rng.normal(size=(4, 3)).astype(np.float32)))
    before = store.rows([0, 1, 2, 3]).pooled.clone()
    store.rows([0, 1, 2, 3]).pooled.zero_()
    assert torch.equal(store.rows([0, 1, 2, 3]).pooled, before)


def test_cells_alone_are_pooled_by_their_mean(rng: np.random.Generator) -> None:
    cells = rng.normal(size=(3, 5, 2)).astype(np.float32)
    seen = FeatureStore(local=FeatureArray(cells)).rows([2, 0])
    assert np.allclose(seen.pooled.numpy(), cells[[2, 0]].mean(axis=1), atol=1e-6)


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_hdf5_gives_the_same_rows(tmp_path: Path, rng: np.random.Generator, memory: int) -> None:
    h5py = pytest.importorskip("h5py")
    pooled = rng.normal(size=(6, 4)).astype(np.float32)
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["pooled"] = pooled
        file["images"] = [f"p{k}.jpg" for k in range(6)]
    store = open_features(tmp_path / "f.h5", memory=memory)
    assert np.array_equal(store.rows([5, 1, 1]).pooled.numpy(), pooled[[5, 1, 1]])
    assert store.names is not None and store.names[5] == "p5.jpg"


def test_a_dataset_takes_the_rows_of_its_images_by_name(flickr8k: Path, rng: np.random.Generator) -> None:
    pooled, _, _ = write(flickr8k / "features", rng)
    data = open_dataset(flickr8k, "test", features="features")
    assert data.features is not None
    assert np.array_equal(data.features.rows([0, 1]).pooled.numpy(), pooled[[6, 7]].astype(np.float32))
    turned = data.subset([1, 0])
    assert turned.features is not None and turned.photos is not None
    assert np.array_equal(turned.features.rows([0]).pooled.numpy(), pooled[[7]].astype(np.float32))
    assert turned.photos.paths[0].name == "p7.jpg" == turned.truth.image_ids[0]


def test_features_that_do_not_fit_are_refused(flickr8k: Path, rng: np.random.Generator) -> None:
    folder = flickr8k / "features"
    write(folder, rng)
    (folder / "images.txt").write_text("\n".join(f"p{k}.jpg" for k in range(8)))
    with pytest.raises(InputError, match="9 rows of features but 8 names"):
        open_dataset(flickr8k, "train", features="features")
    (folder / "images.txt").write_text("\n".join(f"q{k}.jpg" for k in range(9)))
    with pytest.raises(
        InputError, match=r"no row for 4 of the 4 images of flickr8k-train \(p0\.jpg, p1\.jpg, p2\.jpg, …"
    ):
        open_dataset(flickr8k, "train", features="features")
    (folder / "images.txt").write_text("\n".join(["p1.jpg"] * 9))
    with pytest.raises(InputError, match=r"p1\.jpg is listed twice"):
        open_dataset(flickr8k, "train", features="features")
    (folder / "images.txt").unlink()
    with pytest.raises(InputError, match=r"9 rows for the 4 images of flickr8k-train, and no images\.txt"):
        open_dataset(flickr8k, "train", features="features")
    (folder / "net_grid2x2_params.npz").unlink()
    with pytest.raises(InputError, match='"scale"'):
        open_features(folder)
    np.save(folder / "net_other.npy", np.zeros((9, 2)))
    with pytest.raises(InputError, match="Name a file"):
        open_features(folder)
    assert open_features(folder / "net_pool").pooled_dim == 6
    with pytest.raises(InputError, match="does not exist"):
        open_dataset(flickr8k, "train", features="nowhere")


def test_arrays_that_are_no_features_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(4))
    with pytest.raises(InputError, match="1 dimensions"):
        open_features(tmp_path)
    np.save(tmp_path / "x.npy", np.array([["a"]]))
    with pytest.raises(InputError, match="must be numbers"):
        open_features(tmp_path / "x.npy")


def test_the_real_features_of_flickr8k_are_scaled_and_in_order(shared_data: Path) -> None:
    data = open_dataset(shared_data / "flickr8k", "test", features="features")
    folder = shared_data / "flickr8k" / "features"
    names = (folder / "images.txt").read_text().split()
    assert (len(data), data.n_captions) == (1000, 5000)
    row = names.index(str(data.truth.image_ids[417]))
    scale = np.load(folder / "efflite0_grid7x7_pca128_params.npz")["scale"]
    grid = np.load(folder / "efflite0_grid7x7_pca128_int8.npy", mmap_mode="r")[row] * scale
    assert data.features is not None and data.photos is not None
    seen = data.features.rows([417])
    assert seen.local is not None and np.array_equal(seen.local[0].numpy(), grid)
    assert seen.pooled.shape == (1, 1280)
    assert data.photos.paths[417].name == names[row] and min(data.photos[417].size) == 144
