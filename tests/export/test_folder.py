"""A run given away and opened again: the same scores, a card that says what it is, nothing of this machine."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import halation
from halation._errors import InputError
from halation.calibration import Calibrators
from halation.data import Projection, draw_scenes
from halation.encoders import RunFolder, load
from halation.evaluation import evaluate
from halation.export import export_run, export_trec
from halation.search import calibrate_run
from halation.training import read_recipe
from layouts import write_flickr8k
from runs import halation as cli
from runs import write_run


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flickr8k(tmp_path_factory.mktemp("given") / "data")


@pytest.mark.parametrize("settings", [(), ("model.head=sgr",), ("model.head=pcmepp",)])
def test_scores_are_the_same_bit_for_bit(settings: tuple[str, ...], data: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", *settings)
    model, given = load(run), halation.load(export_run(run, tmp_path / "given"))
    ours, theirs = (one.scores(one.open_dataset(data, "test")) for one in (model, given))
    np.testing.assert_array_equal(ours, theirs)
    assert RunFolder(run).fingerprint() == RunFolder(tmp_path / "given").fingerprint()


def test_the_card_says_what_the_model_is(data: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "loss.daa.weight=2.5")
    model = load(run)
    dataset = model.open_dataset(data, "dev")
    report = evaluate(model.scores(dataset), dataset.truth, ["R@1"], resamples=20)
    report.to_json(run / "report.json")
    assert cli("export", run, "-o", tmp_path / "given", "--licence", "cc-by-4.0") == 0
    card = (tmp_path / "given" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: halation\nlicense: cc-by-4.0\ntags:\n- image-text-retrieval\n")
    assert "- daa\n" in card and "daa × 2.5" in card and "infonce × 1" in card
    assert f"| R@1 | {report.i2t['R@1']:.2f}" in card
    parts = ("Gaussian N(μ, diag σ²)", "## Intended use", "## Limits", "not calibrated", "halation.load", "similarity(")
    for words in parts:
        assert words in card
    config = json.loads((tmp_path / "given" / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "pcme" and config["recipe"] == dataclasses.asdict(read_recipe(run))
    with pytest.raises(InputError, match="not the short name of a licence"):
        export_run(run, tmp_path / "other", licence="mit\nevil: true")
    assert "without a measure of uncertainty" in card_of(write_run(tmp_path / "p", "model.head=point"), tmp_path / "q")
    assert "was not evaluated" in (tmp_path / "q" / "README.md").read_text(encoding="utf-8")


def test_the_example_of_the_card_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = card_of(write_run(tmp_path / "run"), tmp_path / "FOLDER")
    for name in ("a.jpg", "b.jpg"):
        Image.new("RGB", (20, 20), "red").save(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {}
    exec(card.split("```python\n")[1].split("```")[0], made)
    assert made["scores"].shape == (2, 1)


def test_the_folder_of_the_features_backbone_is_not_given_away(tmp_path: Path) -> None:
    settings = ("image.backbone=precomputed", "data.features=features/resnet")
    run = write_run(tmp_path / "run", *settings, dims=(4, 0))
    origin = {"backbone": str(tmp_path / "models" / "resnet"), "weights": "1f40"}
    (run / "run.json").write_text(json.dumps({"feature_dims": [4, 0], "feature_origin": origin}), encoding="utf-8")
    about = json.loads((export_run(run, tmp_path / "given") / "run.json").read_text(encoding="utf-8"))
    assert about["feature_origin"] == {"backbone": "resnet", "weights": "1f40"}


def card_of(run: Path, out: Path) -> str:
    return (export_run(run, out) / "README.md").read_text(encoding="utf-8")


def test_nothing_of_this_machine_is_given_away(tmp_path: Path) -> None:
    vectors = tmp_path / "private" / "glove.txt"
    vectors.parent.mkdir()
    vectors.write_text("dog 1 0 0\ncat 0 1 0\n", encoding="utf-8")
    settings = (f"text.vectors={vectors}", f"data.features={tmp_path}/private/efflite0", "image.backbone=precomputed")
    run = write_run(tmp_path / "run", *settings, dims=(4, 0))
    (run / "run.json").write_text(json.dumps({"feature_dims": [4, 0], "host": "my-machine", "path": str(tmp_path)}))
    given = export_run(run, tmp_path / "given")
    vectors.unlink()  # what the words began from is in the weights
    assert load(given).config.data.features == "efflite0"
    for path in given.iterdir():
        assert str(tmp_path).encode() not in path.read_bytes() and b"my-machine" not in path.read_bytes()
    hub = write_run(tmp_path / "hub")
    text = (hub / "config.toml").read_text(encoding="utf-8")
    (hub / "config.toml").write_text(text.replace('name = ""', f'name = "{tmp_path}/bert"', 1), encoding="utf-8")
    with pytest.raises(InputError, match="a folder that only this machine has"):
        export_run(hub, tmp_path / "not")
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize("path", ["../private/{}", "below/../../private/{}", "~/private/{}", "C:\\private\\{}"])
def test_no_path_outside_the_folder_is_exported(path: str, tmp_path: Path) -> None:
    vectors = tmp_path / "glove.txt"
    vectors.write_text("dog 1 0 0\ncat 0 1 0\n", encoding="utf-8")
    features = path.format("efflite0")
    run = write_run(
        tmp_path / "run", f"text.vectors={vectors}", f"data.features='{features}'", "image.backbone=precomputed",
        dims=(4, 0),
    )  # fmt: skip
    recipe = run / "config.toml"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace(str(vectors), "vectors/glove.txt"), encoding="utf-8")
    given = export_run(run, tmp_path / "given")
    config = load(given).config
    assert (config.data.features, config.text.vectors) == ("efflite0", "glove.txt")
    assert all(b"private" not in path.read_bytes() and b"vectors/" not in path.read_bytes() for path in given.iterdir())
    card = (given / "README.md").read_text(encoding="utf-8")
    for key in ("data.features", "text.vectors"):
        assert f"{key} in config.toml was a path on the training machine; only its last name is left" in card


def test_features_below_the_data_keep_their_place_and_the_card_says_nothing_of_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "data.features=features/efflite0", "image.backbone=precomputed", dims=(4, 0))
    given = export_run(run, tmp_path / "given")
    assert load(given).config.data.features == "features/efflite0"
    assert "on the training machine" not in (given / "README.md").read_text(encoding="utf-8")


def test_a_model_in_a_folder_beside_this_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "bert").mkdir(parents=True)
    for number, name in enumerate(("../bert", "models/bert")):
        run = write_run(tmp_path / f"run{number}")
        text = (run / "config.toml").read_text(encoding="utf-8")
        (run / "config.toml").write_text(text.replace('name = ""', f'name = "{name}"', 1), encoding="utf-8")
        with pytest.raises(InputError, match="a folder that only this machine has"):
            export_run(run, tmp_path / "not")


def test_calibration_and_projection_go_with_the_model(tmp_path: Path) -> None:
    draw_scenes(tmp_path / "data", train=1, dev=24, test=1, seed=1)
    run = write_run(tmp_path / "run", f"data.features={tmp_path}/x")  # a path that is cut, so the fingerprint changes
    recipe = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(recipe.replace(f'features = "{tmp_path}/x"', 'features = ""'), encoding="utf-8")
    calibrate_run(run, tmp_path / "data")
    (run / "config.toml").write_text(recipe, encoding="utf-8")
    calibrators = dataclasses.replace(
        Calibrators.load(run / "calibration.json"), fingerprint=RunFolder(run).fingerprint()
    )
    calibrators.save(run / "calibration.json")
    Projection(torch.ones(3), torch.ones(2, 3), torch.ones(2)).save(run / "projection.safetensors")
    given = export_run(run, tmp_path / "given")
    assert RunFolder(given).fingerprint() != RunFolder(run).fingerprint()
    again = Calibrators.load(given / "calibration.json", RunFolder(given).fingerprint())
    assert again.t2i == calibrators.t2i
    assert Projection.load(given / "projection.safetensors").dims == (3, 2)
    card = (given / "README.md").read_text(encoding="utf-8")
    assert "calibration.json turns scores into match probabilities: the probability that the pair matches." in card
    assert f"It was fitted on {calibrators.data}" in card
    dataclasses.replace(calibrators, judge="people").save(run / "calibration.json")
    card = (export_run(run, tmp_path / "people") / "README.md").read_text(encoding="utf-8")
    assert "the probability that a person would accept the pair" in card


def test_names_on_a_hub_are_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is downloaded"):
        load("somebody/pcme-coco")
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"model\.safetensors"):
        load(tmp_path / "empty")


def test_trec_files_judge_as_halation_does(data: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert cli("export", run, "--trec", tmp_path / "trec", "--data", data) == 0
    model = load(run)
    dataset = model.open_dataset(data, "test")
    report = evaluate(model.scores(dataset), dataset.truth, ["R@1"], resamples=0)
    for side in ("i2t", "t2i"):
        lines = [line.split() for line in (tmp_path / "trec" / f"{side}.run").read_text().splitlines()]
        truth = {
            tuple(line.split()[::2][:2]) for line in (tmp_path / "trec" / f"{side}.qrels").read_text().splitlines()
        }
        first = [(line[0], line[2]) for line in lines if line[3] == "1"]
        assert len(first) == (4 if side == "i2t" else 20) and {line[5] for line in lines} == {"tiny"}
        assert 100 * np.mean([pair in truth for pair in first]) == pytest.approx(report.results(side)["R@1"])
    with pytest.raises(InputError, match="name a new or empty folder"):
        export_trec(run, tmp_path / "trec", data)


def test_the_verb_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run")
    for arguments, why in (((), "name a folder"), (("--trec", tmp_path / "t"), "--data"),
                           (("-o", tmp_path / "o", "--trec", tmp_path / "t"), "name a folder")):  # fmt: skip
        assert cli("export", run, *arguments) == 2
        assert why in capsys.readouterr().err
    assert cli("export", tmp_path / "none", "-o", tmp_path / "o") == 2
    assert "does not exist" in capsys.readouterr().err
    assert cli("export", run, "-o", tmp_path / "onnx", "--onnx") == 0
    assert "image.onnx" in capsys.readouterr().out
