"""Cells made smaller while features are computed: by what training has, once, whatever happens in between."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from halation import InputError
from halation.data import FeatureArray, Photos, cache_features, open_dataset, open_features
from halation.data._projection import principal
from killed import Killed, cut_short
from layouts import draw, write_flickr8k
from tiny_backbones import Cells


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Flickr8k as it is downloaded: a picture in no list, and a line of a picture that there is not."""
    root = write_flickr8k(tmp_path / "data")
    draw(root / "images" / "unused.jpg", 99)
    with (root / "Flickr8k.token.txt").open("a", encoding="utf-8") as file:
        file.write("unused.jpg#0\tnobody lists it .\np0.jpg.1#0\tno such picture .\n")
    return root


def whole_of(data: Path) -> Tensor:
    """All cells of the training split's pictures, (8 · 16, 12), as they are stored."""
    photos = open_dataset(data, "train").photos
    assert photos is not None
    backbone = Cells()
    seen = backbone(torch.stack([backbone.preprocess(photos[k]) for k in range(len(photos))]))
    assert seen.local is not None
    return seen.local.half().double().flatten(0, 1)


def test_the_components_are_those_of_the_training_pictures(data: Path) -> None:
    store = cache_features(data, Cells(), data / "features" / "small", cells=5)
    assert len(store) == 17 and (store.cells, store.local_dim, store.pooled_dim) == (16, 5, 3)
    assert store.projection is not None and store.projection.dims == (12, 5)
    cells = whole_of(data)
    centred = cells - cells.mean(0)
    spread, basis = torch.linalg.svd(centred, full_matrices=False)[1:]
    ours = store.projection.components.double()
    torch.testing.assert_close((ours @ basis[:5].T).abs(), torch.eye(5, dtype=torch.float64), atol=1e-4, rtol=0)
    torch.testing.assert_close(store.projection.mean.double(), cells.mean(0), atol=1e-6, rtol=0)
    assert (ours.gather(1, ours.abs().argmax(1, keepdim=True)) > 0).all()  # not the other way round elsewhere
    about = json.loads((data / "features" / "small" / "meta.json").read_text())
    assert about["fitted_on"] == 8 and about["cells"] == 5
    assert about["variance"] == pytest.approx(float((spread[:5] ** 2).sum() / (spread**2).sum()), abs=1e-6)


def test_what_is_kept_is_what_new_pictures_come_to(data: Path) -> None:
    store = cache_features(data, Cells(), data / "f", cells=5)
    test = open_dataset(data, "test", features="f")
    assert test.photos is not None and test.features is not None and test.features.projection is not None
    backbone = Cells()
    seen = backbone(backbone.preprocess(test.photos[2])[None])
    looked = test.features.projection(seen.local)  # type: ignore[arg-type]
    stored = test.features.rows([2])
    torch.testing.assert_close(looked, stored.local, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(seen.pooled, stored.pooled, atol=1e-3, rtol=1e-3)
    (files,) = (data / "f").glob("data-*")
    names = ["corrupt.txt", "images.txt", "local.npy", "pooled.npy", "projection.safetensors"]
    assert sorted(path.name for path in files.iterdir()) == names and store.names is not None
    assert {path.name for path in (data / "f").iterdir()} == {"meta.json", files.name}


def test_pictures_of_other_splits_and_the_size_of_batches_change_nothing(data: Path, tmp_path: Path) -> None:
    def components(out: str, batch_size: int = 64) -> bytes:
        cache_features(data, Cells(), tmp_path / out, cells=4, batch_size=batch_size)
        return next((tmp_path / out).glob("data-*/projection.safetensors")).read_bytes()

    first = components("a")
    assert components("b", batch_size=3) == first
    for name in ("p13.jpg", "p9.jpg", "unused.jpg"):  # test, dev, none
        draw(data / "images" / name, 51)
    assert components("c") == first
    draw(data / "images" / "p2.jpg", 51)
    assert components("d") != first


def test_memory_does_not_grow_with_the_pictures(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    rows = FeatureArray(rng.normal(size=(300, 4, 6)).astype(np.float16), memory=0)
    sizes, read = [], FeatureArray.read

    def watched(self: FeatureArray, index: np.ndarray) -> Tensor:
        sizes.append(len(index))
        return read(self, index)

    monkeypatch.setattr(FeatureArray, "read", watched)
    projection, share = principal(rows, np.arange(300), 6)
    assert max(sizes) <= 64 and sum(sizes) == 600 and share == pytest.approx(1)
    assert torch.allclose(projection.components @ projection.components.T, torch.eye(6), atol=1e-5)


def test_cut_short_anywhere_the_same_call_does_the_rest(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped before each single step to the disk, in turn."""
    whole = cache_features(data, Cells(), data / "whole", cells=4, batch_size=9)
    every = np.arange(len(whole))
    for cut in range(80):
        out, first, finished = data / f"cut{cut}", Cells(), True
        with monkeypatch.context() as patch:
            cut_short(patch, after=cut)
            try:
                cache_features(data, first, out, cells=4, batch_size=9)
            except Killed:
                finished = False
        if not (out / "meta.json").is_file():
            with pytest.raises(InputError, match=r"not finished|does not exist|holds no \.npy"):
                open_features(out)
        backbone = Cells()
        store = cache_features(data, backbone, out, cells=4)
        assert first.seen + backbone.seen <= len(whole) + 9  # at most one block again
        assert torch.equal(store.rows(every).local, whole.rows(every).local)  # type: ignore[arg-type]
        assert torch.equal(store.rows(every).pooled, whole.rows(every).pooled) and not (out / "partial").exists()
        if finished:
            break
    assert finished and cut > 20


def test_finished_is_finished_and_another_size_needs_another_folder(data: Path) -> None:
    cache_features(data, Cells(), data / "f", cells=4)
    backbone = Cells()
    cache_features(data, backbone, data / "f", cells=4)
    assert backbone.seen == 0
    for other in (5, None):
        with pytest.raises(InputError, match="its cells have another size"):
            cache_features(data, Cells(), data / "f", cells=other)
    cache_features(data, Cells(), data / "plain")
    with pytest.raises(InputError, match="its cells have another size"):
        cache_features(data, Cells(), data / "plain", cells=4)


def test_impossible_sizes_are_refused_before_the_work(data: Path, tmp_path: Path) -> None:
    backbone = Cells()
    for wrong in (0, -1, 13):
        with pytest.raises(InputError, match="Cells gives cells of 12 numbers; take fewer"):
            cache_features(data, backbone, tmp_path / "f", cells=wrong)
    backbone.local_dim = 0
    with pytest.raises(InputError, match="gives no cells"):
        cache_features(data, backbone, tmp_path / "f", cells=3)
    assert backbone.seen == 0 and not (tmp_path / "f").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(InputError, match=r"holds other files \(thesis.txt\)"):
        cache_features(data, Cells(), tmp_path / "mine", cells=3)


def test_pictures_without_splits_are_all_learnt_from(data: Path, tmp_path: Path) -> None:
    photos = Photos(sorted((data / "images").glob("*.jpg"))[:3])
    cache_features(photos, Cells(), tmp_path / "f", cells=3)
    assert json.loads((tmp_path / "f" / "meta.json").read_text())["fitted_on"] == 3


def test_new_pictures_come_in_the_terms_of_those_that_were_there(data: Path) -> None:
    before = cache_features(data, Cells(), data / "f", cells=4)
    for k in (30, 31):
        draw(data / "images" / f"p{k}.jpg", k)
    with (data / "Flickr8k.token.txt").open("a", encoding="utf-8") as file:
        file.write("p30.jpg#0\tone more .\np31.jpg#0\tand one .\n")
    with (data / "Flickr_8k.trainImages.txt").open("a", encoding="utf-8") as file:
        file.write("p30.jpg\n")
    backbone = Cells()
    store = cache_features(data, backbone, data / "f", cells=4)
    assert backbone.seen == 2 and len(store) == len(before) + 2
    assert store.origin == before.origin  # the projection is kept, not fitted anew
    assert store.projection is not None and store.names is not None
    row = store.names.index("p30.jpg")
    with Image.open(data / "images" / "p30.jpg") as picture:
        cells = backbone(backbone.preprocess(picture)[None]).local
    torch.testing.assert_close(store.rows([row]).local, store.projection(cells), atol=2e-3, rtol=2e-3)
    every = np.arange(len(before))
    again = store.take([store.names.index(name) for name in before.names or ()])
    assert torch.equal(again.rows(every).local, before.rows(every).local)  # type: ignore[arg-type]


def test_features_are_made_in_the_terms_of_others(data: Path, tmp_path: Path) -> None:
    """What `check_origin` asks for: features of other data that a run can read."""
    mine = cache_features(data, Cells(), data / "f", cells=4)
    other = write_flickr8k(tmp_path / "other", {"train": 3, "dev": 2, "test": 2})
    backbone = Cells()
    store = cache_features(other, backbone, other / "f", projection=mine.projection)
    assert store.origin == mine.origin and store.local_dim == 4 and backbone.seen == 7
    assert cache_features(other, backbone, other / "f", projection=mine.projection).names == store.names
    assert backbone.seen == 7
    own = cache_features(other, Cells(), other / "own", cells=4)
    assert own.origin.differs_from(mine.origin) is not None
    with pytest.raises(InputError, match="made smaller by another projection; name another folder"):
        cache_features(other, Cells(), other / "own", projection=mine.projection)
    with pytest.raises(InputError, match="cells and projection both set the size of a cell"):
        cache_features(other, Cells(), other / "g", cells=4, projection=mine.projection)
