"""Runs without gradients: CCA in closed form, and weights as they are drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from halation import similarity
from halation._errors import InputError
from halation._tensors import load_tensors
from halation.data import Dataset
from halation.encoders import CCA, Model, Vocabulary, build_network, load, loader_for
from halation.export import export_run
from halation.search import embed, make_index, open_search
from halation.training import Run, parse_recipe, train

CLOSED_FORM = ["cca.fit=true", "cca.ridge=0.1", "train.epochs=0", "loss.infonce.weight=0", "model.dim=8"]


def features(model: Model, dataset: Dataset) -> tuple[Tensor, Tensor]:
    """The pooled vectors that the backbones give for every image and every caption."""
    loader = loader_for(model.network, dataset)
    sides = (model.network.image, loader.all_images(64)), (model.network.text, loader.all_captions(64))
    with torch.no_grad():
        images, captions = (torch.cat([side.backbone(block).pooled for block in blocks]) for side, blocks in sides)
    return images, captions


def test_a_run_of_cca_scores_as_cca_does(world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe = parse_recipe(recipe_text, [*CLOSED_FORM, "cca.power=2"])
    state = train(recipe, world, tmp_path / "run")
    assert (state.epoch, state.best_epoch) == (0, -1)
    model = load(tmp_path / "run")
    train_set, dev = (model.open_dataset(world, split) for split in ("train", "dev"))
    images, captions = features(model, train_set)
    cca = CCA.fit(images[torch.from_numpy(train_set.image_of)], captions, 8, 0.1, 2.0)
    images, captions = features(model, dev)
    expected = similarity.cosine(cca.images(images), cca.captions(captions))
    np.testing.assert_allclose(model.scores(dev), expected, atol=1e-4)


def test_cca_finds_more_than_chance_and_leaves_a_whole_run(world: Path, recipe_text: str, tmp_path: Path) -> None:
    lines: list[str] = []
    train(parse_recipe(recipe_text, CLOSED_FORM), world, tmp_path / "run", log=lines.append)
    run = Run(tmp_path / "run")
    (line,) = run.history()
    assert line["selected"] and line["epoch"] == -1
    assert line["dev"]["R@10 t2i"] > 3 * 100 * 10 / 40, "chance is 10 of the dev split's images"
    assert lines[-1].startswith("no epochs  dev R@1 ") and f"{line['dev']['rsum']:.1f}" in lines[-1]
    about = run.about()
    assert (about["state"], about["epochs"], about["best_epoch"]) == ("finished", 0, 0)
    assert json.loads((tmp_path / "run" / "report.json").read_text())


def test_a_run_of_cca_is_the_same_twice(world: Path, recipe_text: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        train(parse_recipe(recipe_text, CLOSED_FORM), world, tmp_path / name)
    a, b = (load_tensors(tmp_path / name / "model.safetensors") for name in ("a", "b"))
    assert all(torch.equal(a[key], b[key]) for key in a)


def test_a_run_of_cca_is_exported_and_indexed_like_any_other(world: Path, recipe_text: str, tmp_path: Path) -> None:
    train(parse_recipe(recipe_text, CLOSED_FORM), world, tmp_path / "run")
    export_run(tmp_path / "run", tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "linear maps fitted by CCA, ridge 0.1" in card and "no epochs" in card and "loss: none" in card
    dataset = load(tmp_path / "run").open_dataset(world, "test")
    np.testing.assert_array_equal(load(tmp_path / "model").scores(dataset), load(tmp_path / "run").scores(dataset))
    embed(tmp_path / "run", world, tmp_path / "embeddings", split="test")
    make_index(tmp_path / "embeddings", tmp_path / "index")
    assert len(open_search(tmp_path / "index").text(dataset.captions[0], k=3).hits) == 3


def test_epochs_go_on_from_cca(world: Path, recipe_text: str, tmp_path: Path) -> None:
    settings = [*CLOSED_FORM[:2], "model.dim=8", "model.dropout=0", "train.epochs=1", "train.lr=1e-12", "train.ema=0"]
    train(parse_recipe(recipe_text, settings), world, tmp_path / "trained")
    train(parse_recipe(recipe_text, CLOSED_FORM), world, tmp_path / "fitted")
    trained, fitted = (load_tensors(tmp_path / name / "model.safetensors") for name in ("trained", "fitted"))
    torch.testing.assert_close(trained["image.head.fc.weight"], fitted["image.head.fc.weight"])


def test_no_epochs_without_cca_keep_the_weights_as_they_are_drawn(
    world: Path, recipe_text: str, tmp_path: Path
) -> None:
    recipe = parse_recipe(recipe_text, ["train.epochs=0", "train.seed=5"])
    train(recipe, world, tmp_path / "run")
    vocabulary = Vocabulary.load(tmp_path / "run" / "vocabulary.json")
    dims = Run(tmp_path / "run").about()["feature_dims"]
    drawn = build_network(recipe, vocabulary, (dims[0], dims[1]), seed=5).state_dict()
    kept = load_tensors(tmp_path / "run" / "model.safetensors")
    assert kept.keys() == drawn.keys() and all(torch.equal(kept[key], drawn[key]) for key in kept)


@pytest.mark.parametrize(
    "settings", [["model.head=pcme"], ["model.head=sgr"], ["model.members=2"], ["model.source=attended"]]
)
def test_what_has_no_single_linear_map_is_refused_and_leaves_no_run(
    settings: list[str], world: Path, recipe_text: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"cca.fit sets the linear maps of single point heads: take model.head"):
        train(parse_recipe(recipe_text, [*CLOSED_FORM, *settings]), world, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_more_dimensions_than_the_features_have_are_named(world: Path, recipe_text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dim must be between 1 and"):
        train(parse_recipe(recipe_text, [*CLOSED_FORM, "model.dim=500"]), world, tmp_path / "run")
