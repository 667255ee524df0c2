"""Recipes: strict, round in TOML, helpful when wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from halation._errors import InputError
from halation.training import Recipe, list_recipes, override, parse_recipe, read_recipe, to_toml

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_is_valid_named_as_its_file_and_survives_writing(path: Path) -> None:
    recipe = read_recipe(path)
    assert recipe.name == path.stem
    assert parse_recipe(to_toml(recipe)) == recipe


def test_the_effective_recipe_names_every_key() -> None:
    text = to_toml(Recipe())
    for section in dataclasses.fields(Recipe):
        assert section.name in text
    assert "[loss.daa]" in text and "relevance = " in text


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.epoch=3", "there is no train.epoch; did you mean train.epochs?"),
        ("loss.daa.wieght=3", "did you mean loss.daa.weight?"),
        ("epochs=3", "did you mean train.epochs?"),
        ("train.epochs=many", "train.epochs is 'many'; it must be a whole number"),
        ("train.epochs=1.5", "train.epochs is 1.5; it must be a whole number"),
        ("train.one_per_class=1", "must be true or false"),
        ("train.epochs=-1", "train.epochs is -1; it must be 0 or more"),
        ("train.ema=1", "train.ema is 1.0; it must be 0 or more and below 1"),
        ("train.optimizer=adam", "did you mean 'adamw'"),
        ("train=3", "train is a section with keys of its own"),
        ("train.lr", "is not of the form section.key=value"),
        ("train.lr=nan", "train.lr is nan"),
        ("model.dim=-1", "model.dim is -1; it must be 0 or more"),
        ("model.dropout=2", "model.dropout is 2.0; it must be 0 or more and below 1"),
        ("text.dim=0", "text.dim is 0; it must be above 0"),
        ("loss.daa.weight=-1", "loss.daa.weight is -1.0; it must be 0 or more"),
        ("loss.infonce.temperature=0", "loss.infonce.temperature is 0.0; it must be above 0"),
        ("model.log_sigma=nan", "model.log_sigma is nan; it must be a number"),
    ],
)
def test_a_wrong_setting_names_itself_and_the_remedy(setting: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_recipe("", [setting])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("loss.dda.weight", "there is no loss.dda; did you mean loss.daa?"),
        ("loss.info_nce.weight", "did you mean loss.infonce?"),
        ("loss.daa.temprature", "did you mean loss.daa.temperature?"),
        ("trian.epochs", "there is no trian; did you mean train?"),
        ("train.batchsize", "did you mean train.batch_size?"),
        ("train.learning_rate", "did you mean train.lr?"),
        ("train.warm_up", "did you mean train.warmup?"),
        ("model.dimension", "did you mean model.dim?"),
        ("text.backbon", "did you mean text.backbone?"),
        ("seed", "did you mean train.seed?"),
        ("epoch", "did you mean train.epochs?"),
        ("dropout", "did you mean text.dropout or model.dropout?"),
        ("loss.weight", "did you mean loss.infonce.weight, loss.sigmoid.weight or loss.triplet.weight?"),
        ("loss.pcme.weight", "there are loss.infonce, loss.sigmoid, loss.triplet, "),
        ("data.zzz", "there are data.features, data.captions, data.train, data.dev, data.dev_images"),
    ],
)
def test_a_misspelt_key_gets_the_nearest_sensible_one(typed: str, meant: str) -> None:
    with pytest.raises(InputError) as error:
        parse_recipe("", [f"{typed}=1"])
    assert meant in str(error.value)


def test_every_packaged_recipe_is_listed_with_one_line() -> None:
    listed = dict(list_recipes())
    assert list(listed) == [path.stem for path in RECIPES]
    assert all(10 < len(line) < 200 and "\n" not in line for line in listed.values()), listed
    assert listed["coco_pcme"] == "PCME (Chun et al., CVPR 2021)"
    assert listed["coco_pcme_daa"] == "PCME (Chun et al., CVPR 2021); with DAA"


def test_a_recipe_is_overridden_by_values_or_by_texts() -> None:
    changed = override(Recipe(name="mine"), {"train.epochs": 2, "loss.daa.relevance": "cider", "image.local": False})
    assert (changed.train.epochs, changed.loss.daa.relevance, changed.image.local) == (2, "cider", False)
    assert override(Recipe(name="mine"), ["train.epochs=2", "loss.daa.relevance=cider", "image.local=false"]) == changed
    with pytest.raises(InputError, match=r"mine.*train\.epochs is '2'; it must be a whole number"):
        override(Recipe(name="mine"), {"train.epochs": "2"})


def test_only_the_point_head_can_keep_the_backbones_vectors() -> None:
    assert parse_recipe("", ["model.dim=0"]).model.dim == 0
    with pytest.raises(InputError, match=r"model\.dim is 0; it must be above 0"):
        parse_recipe("", ["model.dim=0", "model.head=pcme"])


def test_members_share_the_dimensions_of_a_point_head() -> None:
    assert parse_recipe("", ["model.members=3", "model.dim=12"]).model.members == 3
    with pytest.raises(InputError, match=r"model\.dim is 512, which 3 members cannot share equally"):
        parse_recipe("", ["model.members=3"])
    with pytest.raises(InputError, match=r"model\.dim is 0, which 2 members"):
        parse_recipe("", ["model.members=2", "model.dim=0"])
    with pytest.raises(InputError, match=r"only point heads form a committee, not pcme"):
        parse_recipe("", ["model.members=2", "model.head=pcme"])
    with pytest.raises(InputError, match=r"model\.members is 0; it must be above 0"):
        parse_recipe("", ["model.members=0"])


def test_settings_win_over_the_file_and_need_no_quotes() -> None:
    recipe = parse_recipe('[loss.daa]\nrelevance = "tfidf"', ["loss.daa.relevance=cider", "train.lr=1e-4"])
    assert recipe.loss.daa.relevance == "cider" and recipe.train.lr == 1e-4


def test_broken_toml_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("[train\nepochs = 3")
    with pytest.raises(InputError, match=r"r.toml: not valid TOML"):
        read_recipe(tmp_path / "r.toml")


OLD_KEYS = "gist_dropout = 0.5\ngist_temperature = 0.1\ngist_share = 0.05\ngist_floor = 0.5\n"


def test_a_recipe_with_a_gist_is_refused_with_the_way_to_train_without(tmp_path: Path) -> None:
    old = tmp_path / "old.toml"
    old.write_text(f"[model]\ndim = 8\ngist = 256\n{OLD_KEYS}")
    with pytest.raises(InputError) as error:
        read_recipe(old)
    assert error.value.path == old and "\n" not in str(error.value)
    assert "model.gist is 256, but gist was removed; set it to 0 and train again" in str(error.value)
    assert read_recipe(old, ["model.gist=0"]) == parse_recipe("[model]\ndim = 8")
