"""The origin of stored features: features made in another way are refused, whatever their shape."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from halation import InputError
from halation.data import FeatureOrigin, Projection, cache_features, check_origin, open_dataset, open_features
from layouts import draw, write_features, write_flickr8k, write_precomp
from tiny_backbones import Cells, Patches


class Named(Patches):
    name, preprocessing = "patches", "8 x 8"


def other_pictures(root: Path) -> Path:
    """The same layout with other pictures, whose principal components are others."""
    write_flickr8k(root)
    for k in range(16):
        draw(root / "images" / f"p{k}.jpg", 7 * k + 3)
    return root


def test_cells_projected_in_another_datasets_terms_are_detected(tmp_path: Path) -> None:
    """As in R-sum 186 instead of 225: the same backbone and the same shapes, but each data set's own projection."""
    mine, other = write_flickr8k(tmp_path / "mine"), other_pictures(tmp_path / "other")
    for data in (mine, other):
        cache_features(data, Cells(), data / "features", cells=4)
    trained_on = open_dataset(mine, "train", features="features").features
    read = open_dataset(other, "test", features="features").features
    assert trained_on is not None and read is not None and trained_on.local_dim == read.local_dim
    assert trained_on.origin.weights == read.origin.weights
    assert read.origin.differs_from(trained_on.origin) == "their cells were made smaller by another projection"
    with pytest.raises(InputError) as refused:
        check_origin(read, trained_on.origin, data=other, run=tmp_path / "run")
    assert f"halation features {other} --backbone Cells" in str(refused.value)
    assert f"--projection {tmp_path / 'run'}" in str(refused.value)
    same = open_dataset(mine, "test", features="features").features
    assert same is not None
    check_origin(same, trained_on.origin, data=mine, run="run")
    assert read.pooled_only().origin.differs_from(trained_on.pooled_only().origin) is None  # no cells, no projection


def test_another_backbone_is_recognised_by_its_weights(flickr8k: Path) -> None:
    stores = [cache_features(flickr8k, Named(seed), flickr8k / f"f{seed}") for seed in (0, 1)]
    first, second = (store.origin for store in stores)
    assert first.backbone == "patches" and first.preprocessing == "8 x 8" and first.projection == "none"
    reason = second.differs_from(first)
    assert reason is not None and "another backbone (patches, weights" in reason
    again = cache_features(flickr8k, Named(0), flickr8k / "again").origin
    assert again == first and again.differs_from(first) is None


def test_an_origin_survives_json(flickr8k: Path) -> None:
    origin = cache_features(flickr8k, Named(), flickr8k / "f").origin
    assert FeatureOrigin.from_dict(json.loads(json.dumps(origin.as_dict()))) == origin
    assert FeatureOrigin.from_dict({"state": "finished"}) == FeatureOrigin()
    with pytest.raises(InputError, match='"weights": 7; use a text or null'):
        FeatureOrigin.from_dict({"weights": 7})


def test_features_of_unknown_making_say_so_and_are_not_refused(tmp_path: Path) -> None:
    precomp = open_dataset(write_precomp(tmp_path / "f30k_precomp"), "test").features
    arrays = open_dataset(write_features(write_flickr8k(tmp_path / "flickr8k")), "test", features="features").features
    assert precomp is not None and arrays is not None
    known = FeatureOrigin("efficientnet_lite0", "ab", "crop", "cd")
    for store in (precomp, arrays):
        assert not store.origin.known and store.origin.differs_from(known) is None
        check_origin(store, known, data=tmp_path, run="run")


def test_published_arrays_are_known_by_the_projection_beside_them(tmp_path: Path, rng: np.random.Generator) -> None:
    np.save(tmp_path / "grid.npy", rng.integers(-9, 9, (5, 4, 3)).astype(np.int8))
    mean, components = rng.normal(size=8), rng.normal(size=(3, 8))
    np.savez(tmp_path / "grid_params.npz", mean=mean, components=components, scale=np.ones(3))
    origin = open_features(tmp_path / "grid.npy").origin
    assert origin.backbone is None and origin.projection is not None and origin.known
    mine = Projection(torch.zeros(8), torch.from_numpy(components).float())
    assert origin.differs_from(FeatureOrigin(projection=mine.digest)) is not None
    assert origin.differs_from(FeatureOrigin(projection="none")) == "their cells were made smaller by a projection"


def test_the_features_of_flickr8k_are_told_apart(shared_data: Path) -> None:
    folder = shared_data / "flickr8k"
    first = open_features(folder / "features").origin
    assert first.projection is not None and first == open_features(folder / "features").origin
    assert open_features(folder / "features_lite2").origin.differs_from(first) is not None
