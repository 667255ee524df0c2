"""Every published recipe from its data to a report, interrupted once, on data of the same layout and tiny models."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from halation import InputError
from halation._tensors import load_tensors
from halation.data import cache_features
from halation.encoders import HubImage, HubText, Vocabulary, build_network, frozen_backbone, load
from halation.evaluation import evaluate
from halation.training import Recipe, Run, read_recipe, train
from layouts import captions_of, draw, write_cub, write_glove, write_hub, write_karpathy, write_precomp

pytest.importorskip("transformers")

RECIPES = Path(__file__).parents[2] / "recipes"
NAMES = sorted(
    path.stem for path in RECIPES.glob("*.toml") if path.stem.split("_")[0] in ("coco", "flickr30k", "cub", "clip")
)


class World(NamedTuple):
    """The data of each recipe, and the models and word vectors it begins with."""

    folders: dict[str, Path]
    hub: Path
    glove: Path

    def data(self, name: str) -> Path:
        dataset, model = name.split("_")[:2]
        return self.folders[f"{dataset}_precomp" if model in ("sgr", "saf") else dataset]

    def recipe(self, name: str, *settings: str) -> Recipe:
        """The recipe as it is, made small: widths, batches, epochs; tiny models in place of those on the hub."""
        whole = read_recipe(RECIPES / f"{name}.toml")
        small = ["train.epochs=2", "train.batch_size=12", "train.warmup=1", "text.min_count=1"]
        small += ["text.dim=8", "text.hidden=8", "model.sim_dim=4"]
        small += ["model.dim=8"] if whole.model.dim else []
        small += [f"text.vectors={self.glove}"] if whole.text.vectors else []
        for side in ("image", "text"):
            if getattr(whole, side).backbone == "hub":
                kind = "resnet" if "resnet" in getattr(whole, side).name else "clip"
                small.append(f"{side}.name={self.hub / kind}")
        batch = ["train.batch_size=8"] if whole.train.one_per_class else []
        return read_recipe(RECIPES / f"{name}.toml", [*small, *batch, *settings])


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("published")
    hub = write_hub(root / "hub", "clip", "resnet", "bert")
    folders = {
        "coco": write_karpathy(root / "coco", "coco"),
        "flickr30k": write_karpathy(root / "flickr30k", "flickr30k"),
        "cub": write_cub(root / "cub"),
        "coco_precomp": write_precomp(root / "coco_precomp"),
        "flickr30k_precomp": write_precomp(root / "f30k_precomp"),
    }
    for name in ("coco", "flickr30k"):
        cache_features(folders[name], frozen_backbone(str(hub / "resnet")), folders[name] / "features" / "resnet-152")
    return World({**folders, "clip": folders["flickr30k"]}, hub, write_glove(root / "glove.txt"))


class Interrupted(Exception):
    """Somebody pulled the plug."""


def interrupt(what: str, done: int, total: int) -> None:
    if what.startswith("epoch 2/"):
        raise Interrupted


@pytest.mark.parametrize("name", NAMES)
def test_a_published_recipe_trains_resumes_and_is_measured(name: str, world: World, tmp_path: Path) -> None:
    alone = not name.endswith("_daa")  # its sibling differs in the loss alone: one epoch, straight through
    recipe, data = world.recipe(name, f"train.epochs={1 + alone}"), world.data(name)
    if alone:
        with pytest.raises(Interrupted):
            train(recipe, data, tmp_path / "run", progress=interrupt)
    train(recipe, data, tmp_path / "run", resume=alone)
    first, *_, last = Run(tmp_path / "run").history()
    losses = {key for key, term in vars(recipe.loss).items() if term.weight}
    assert losses <= first.keys() and ("daa" in losses) is not alone
    assert all(np.isfinite(first[key]) for key in losses) and last["epoch"] == alone
    model = load(tmp_path / "run")
    test = model.open_dataset(data, "test")
    scores = model.scores(test)
    assert scores.shape == (len(test), test.n_captions) and scores.std() > 0
    report = evaluate(scores, test.truth, ["R@1", "ASP"], resamples=0)
    assert all(
        0 <= report.results(side)["R@1"] <= 100 and 0 < report.results(side)["ASP(tfidf)"] <= 100
        for side in ("i2t", "t2i")
    )


@pytest.mark.parametrize("name", ["coco_pcme_daa", "coco_sgr", "flickr30k_pcmepp", "cub_pvse"])
def test_an_interrupted_run_ends_as_an_uninterrupted_one(name: str, world: World, tmp_path: Path) -> None:
    recipe, data = world.recipe(name), world.data(name)
    with pytest.raises(Interrupted):
        train(recipe, data, tmp_path / "two", progress=interrupt)
    train(recipe, data, tmp_path / "two", resume=True)
    train(recipe, data, tmp_path / "one")
    one, two = (load_tensors(tmp_path / run / "model.safetensors") for run in ("one", "two"))
    assert one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


def test_every_recipe_has_its_sibling_with_daa_that_differs_in_nothing_else() -> None:
    for name in NAMES:
        if not name.endswith("_daa"):
            base, with_daa = (read_recipe(RECIPES / f"{stem}.toml") for stem in (name, f"{name}_daa"))
            same = read_recipe(
                RECIPES / f"{name}_daa.toml",
                [
                    f"name={name}",
                    *(f"loss.daa.{key}={value}" for key, value in vars(base.loss.daa).items()),
                ],
            )
            assert with_daa.loss.daa.weight > 0 and same == base


def test_frozen_networks_stay_and_fine_tuned_ones_move(world: World, tmp_path: Path) -> None:
    before = HubImage(world.hub / "resnet").state_dict()
    for name, moves in (("coco_pvse", False), ("coco_pcme", True)):
        train(world.recipe(name, "train.epochs=1"), world.data(name), tmp_path / name)
        after = load(tmp_path / name).network.image.backbone.state_dict()
        assert any(not torch.equal(before[key], after[key]) for key in before) is moves


def test_clip_begins_with_its_own_scores(world: World) -> None:
    recipe = world.recipe("clip_finetune")
    model = build_network(recipe, Vocabulary([])).eval()
    image, text = HubImage(world.hub / "clip"), HubText(world.hub / "clip")
    tokens, pixels = text.tokenize(captions_of(3)), torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        ours = model.scores(model.images(pixels), model.captions(tokens))
        own = torch.nn.functional.cosine_similarity(image(pixels).pooled[:, None], text(tokens).pooled[None], dim=2)
    torch.testing.assert_close(ours, own)


def test_two_towers_of_different_width_need_a_map(world: World, tmp_path: Path) -> None:
    pair = [f"image.name={world.hub / 'resnet'}", f"text.name={world.hub / 'bert'}"]
    data = world.folders["clip"]
    with pytest.raises(InputError, match=r"images have 12 numbers and captions 8; set model\.dim to a width"):
        train(world.recipe("clip_finetune", *pair), data, tmp_path / "run")
    train(world.recipe("clip_finetune", *pair, "model.dim=8", "train.epochs=1"), data, tmp_path / "run")
    assert load(tmp_path / "run").config.model.dim == 8


def test_a_hub_recipe_without_a_model_says_which_key_names_it(world: World, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs image\.name"):
        train(world.recipe("clip_finetune", "image.name="), world.folders["clip"], tmp_path / "run")


class TestWhatAFailedRunLeaves:
    def test_nothing_where_there_are_no_weights_yet(self, world: World, tmp_path: Path) -> None:
        recipe = world.recipe("coco_sgr", "train.batch_size=1000")
        with pytest.raises(InputError, match="batch_size is 1000"):
            train(recipe, world.data("coco_sgr"), tmp_path / "run")
        assert not (tmp_path / "run").exists()
        train(world.recipe("coco_sgr", "train.epochs=1"), world.data("coco_sgr"), tmp_path / "run")

    def test_files_of_others_stay(self, world: World, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(InputError, match="batch_size"):
            train(world.recipe("coco_sgr", "train.batch_size=1000"), world.data("coco_sgr"), tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]

    def test_a_stopped_run_without_weights_makes_room_for_the_next_try(self, world: World, tmp_path: Path) -> None:
        run, data = tmp_path / "run", world.data("coco_sgr")
        recipe = world.recipe("coco_sgr", "train.epochs=1")
        Run(run).begin(recipe, {})
        Run(run).note(state="stopped", problem="loss = nan")
        train(recipe, data, run)
        assert Run(run).about()["state"] == "finished" and "problem" not in Run(run).about()

    def test_a_run_killed_before_its_recipe_was_written_makes_room_too(self, world: World, tmp_path: Path) -> None:
        recipe = world.recipe("coco_sgr", "train.epochs=1")
        Run(tmp_path / "run").begin(recipe, {})
        (tmp_path / "run" / "config.toml").unlink()
        train(recipe, world.data("coco_sgr"), tmp_path / "run")

    def test_a_run_in_its_first_epoch_is_not_taken_for_a_dead_one(self, world: World, tmp_path: Path) -> None:
        Run(tmp_path / "run").begin(world.recipe("coco_sgr"), {})
        with pytest.raises(InputError, match="holds a run already"):
            train(world.recipe("coco_sgr"), tmp_path / "no data", tmp_path / "run")

    def test_weights_are_kept_whatever_happens_later(self, world: World, tmp_path: Path) -> None:
        data = write_karpathy(tmp_path / "data", "flickr30k")
        recipe = world.recipe("flickr30k_infonce")

        def break_a_picture(what: str, done: int, total: int) -> None:
            if what.startswith("epoch 2/"):
                raise InputError("a picture broke")

        with pytest.raises(InputError, match="a picture broke"):
            train(recipe, data, tmp_path / "run", progress=break_a_picture)
        draw(data / "images" / "0.jpg", 0)
        train(recipe, data, tmp_path / "run", resume=True)
        assert Run(tmp_path / "run").about()["state"] == "finished"
