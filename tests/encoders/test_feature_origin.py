"""A run refuses stored features that were made in another way than those it was trained on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import halation
from halation._errors import InputError
from halation.data import Projection, cache_features
from halation.encoders import SmallConvNet, load
from halation.search import embed
from layouts import draw, write_flickr8k
from runs import TINY
from runs import halation as command

SETTINGS = ["image.backbone=precomputed", "data.features=features", "train.epochs=1", "train.batch_size=4"]


@pytest.fixture(scope="module")
def backbone() -> SmallConvNet:
    import torch

    torch.manual_seed(0)
    return SmallConvNet(16, 16).eval()


@pytest.fixture
def mine(tmp_path: Path, backbone: SmallConvNet) -> Path:
    data = write_flickr8k(tmp_path / "mine")
    cache_features(data, backbone, data / "features", cells=4)
    return data


@pytest.fixture
def other(tmp_path: Path, backbone: SmallConvNet) -> Path:
    """The same captions, other pictures: a projection fitted on them is another one."""
    data = write_flickr8k(tmp_path / "other")
    for number, picture in enumerate(sorted((data / "images").iterdir())):
        draw(picture, number + 100)
    cache_features(data, backbone, data / "features", cells=4)
    return data


@pytest.fixture
def run(mine: Path, tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(TINY, encoding="utf-8")
    halation.train(tmp_path / "tiny.toml", mine, tmp_path / "run", overrides=SETTINGS)
    return tmp_path / "run"


def test_features_of_another_projection_are_refused_with_the_command_that_makes_fitting_ones(
    run: Path, mine: Path, other: Path, backbone: SmallConvNet, capsys: pytest.CaptureFixture[str]
) -> None:
    model = load(run)
    assert np.isfinite(model.scores(model.open_dataset(mine, "test"))).all()
    with pytest.raises(InputError, match="cells were made smaller by another projection; make features that fit"):
        model.open_dataset(other, "test")
    assert command("evaluate", run, "--data", other) == 2
    assert "halation features" in capsys.readouterr().err
    cache_features(other, backbone, other / "fitting", projection=Projection.load(run / Projection.FILE))
    (other / "features").rename(other / "wrong")
    (other / "fitting").rename(other / "features")
    assert np.isfinite(model.scores(model.open_dataset(other, "test"))).all()


def test_a_run_of_an_older_version_is_known_by_its_projection(run: Path, mine: Path, other: Path) -> None:
    about = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert about.pop("feature_origin")["projection"]
    (run / "run.json").write_text(json.dumps(about), encoding="utf-8")
    load(run).open_dataset(mine, "test")
    with pytest.raises(InputError, match="another projection"):
        load(run).open_dataset(other, "test")


def test_embedding_such_a_dataset_needs_a_network_that_sees_the_pictures(
    run: Path, other: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="does not say which network computed them"):
        embed(run, other, tmp_path / "emb")
    assert not (tmp_path / "emb").exists()
