"""Calibrating a run: the files, the part of dev that is used, mistakes; and the study."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation._tensors import load_tensors, save_tensors
from halation.calibration import Ambiguity, Calibrators, fit_calibrator
from halation.data import draw_scenes, read_scenes
from halation.encoders import Model, RunFolder, load
from halation.search import calibrate_run, calibration_split, judge
from halation.search._judge import near_matches, uncalibrated_probability
from halation.search._typed import typed_queries
from halation.semantics import caption_relevance
from halation.training import read_recipe, train
from runs import halation
from studies import trust as trust_study
from studies.__main__ import main as studies_main
from studies.jobs import digest
from worlds import RECIPE, write_world

SIZES = {"train": 120, "dev": 60, "test": 60}
GAUSSIANS = ("model.head='pcmepp'", "loss.infonce.weight=1", "loss.csd.weight=1", "loss.kl.weight=0.1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("data"), SIZES)


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "toy.toml").write_text(RECIPE)
    recipe = read_recipe(folder / "toy.toml", [*GAUSSIANS, "train.epochs=4"])
    train(recipe, data, folder / "run")
    return folder / "run"


@pytest.fixture
def run(model: Path, tmp_path: Path) -> Path:
    """A run one may write into."""
    return Path(shutil.copytree(model, tmp_path / "run"))


def test_words_for_sigma_are_fitted_on_queries_as_they_are_typed(run: Path, data: Path) -> None:
    calibrated = calibrate_run(run, data, write=False)
    dataset, _ = calibration_split(load(run), data)
    texts, covers = typed_queries(dataset.captions, dataset.image_of)
    expected = Ambiguity.fit(load(run).encode_texts(texts).uncertainty(), covers)
    assert expected is not None and calibrated.calibrators.t2i.ambiguity is not None
    assert calibrated.calibrators.t2i.ambiguity.to_json() == pytest.approx(expected.to_json(), rel=1e-4)
    alone = fit_calibrator(judge(load(run), dataset)["t2i"]).calibrator.ambiguity
    assert alone is not None and alone.to_json() != pytest.approx(expected.to_json(), rel=1e-3)
    assert any(note.startswith("words for σ: ") for note in calibrated.calibrators.notes)


def test_calibrating_prints_a_table_and_writes_what_search_reads(
    run: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert halation("calibrate", run, "--data", data) == 0
    printed = capsys.readouterr().out
    assert "calibrated on 60 images of " in printed
    for word in ("ECE", "Brier", "skill over the base rate", "before", "Platt", "isotonic", "* chosen: Brier"):
        assert word in printed, word
    assert "early stopping chose the epoch on all images" in printed and "cider ≥ 0.1" in printed
    assert (run / "reliability.png").read_bytes().startswith(b"\x89PNG")
    read = Calibrators.load(run / "calibration.json", RunFolder(run).fingerprint())
    assert read.t2i.probability_map.gallery == 60 and read.i2t.probability_map.gallery == 180
    assert read.t2i.probability_map.direction == "t2i" and read.i2t.probability_map.direction == "i2t"
    p = read.t2i.probability(np.linspace(-1, -3, 10), 60)
    assert ((p > 0) & (p < 1)).all() and (np.diff(p) <= 0).all()
    figures = {row.name: row for row in read.t2i.qualities}
    assert len(figures) == 5 and figures[read.t2i.chosen].ece < 0.1


def test_a_calibration_is_of_one_model(run: Path, data: Path) -> None:
    calibrate_run(run, data)
    config = run / "config.toml"
    config.write_text(config.read_text().replace("epochs = 4", "epochs = 5"))
    with pytest.raises(InputError, match="another model"):
        Calibrators.load(run / "calibration.json", RunFolder(run).fingerprint())


def test_only_images_early_stopping_did_not_see_are_used(run: Path, data: Path) -> None:
    model = load(run)
    everything, notes = calibration_split(model, data)
    assert len(everything) == 60 and "on all images" in notes[0]
    config = replace(model.config, data=replace(model.config.data, dev_images=25))
    partly = Model(model.folder, config, model.network)
    rest, notes = calibration_split(partly, data)
    assert rest.truth.image_ids == everything.truth.image_ids[25:]
    assert "first 25" in notes[0]
    other, notes = calibration_split(partly, data, "test")
    assert len(other) == 60 and notes == []


def test_the_same_seed_gives_the_same_file(run: Path, data: Path) -> None:
    files = []
    for _ in range(2):
        calibrate_run(run, data, seed=3)
        files.append((run / "calibration.json").read_text())
    assert files[0] == files[1]
    json.loads(files[0], parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_what_is_judged_is_what_the_model_scores(run: Path, data: Path) -> None:
    model = load(run)
    dataset = model.open_dataset(data, "dev")
    near = near_matches(dataset, "cider", 0.1)
    expected = caption_relevance(dataset.captions, dataset.image_of, metric="cider") >= 0.1
    np.testing.assert_array_equal(near, expected)
    judged = judge(model, dataset, near)
    scores = model.scores(dataset)
    np.testing.assert_array_equal(judged["i2t"].scores, scores)
    np.testing.assert_array_equal(judged["t2i"].scores, scores.T)
    np.testing.assert_array_equal(judged["t2i"].matches, dataset.truth.positives("t2i"))
    np.testing.assert_array_equal(judged["t2i"].plausible, expected.T)
    assert judged["t2i"].uncertainty is not None and len(judged["t2i"].uncertainty) == 180


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["model.head='pcme'", "loss.soft_contrastive.weight=1"], "distance"),
        (["model.head='pcmepp'", "loss.csd.weight=1"], "CSD"),
        (["loss.sigmoid.weight=1"], "score"),
        (["loss.infonce.weight=1", "loss.infonce.temperature=0.5"], "temperature 0.5"),
        (["model.head='sgr'"], "which is in 0…1"),
    ],
)
def test_the_uncalibrated_probability_follows_the_loss(tmp_path: Path, settings: list[str], words: str) -> None:
    (tmp_path / "toy.toml").write_text(RECIPE)
    description, function = uncalibrated_probability(
        read_recipe(tmp_path / "toy.toml", ["loss.infonce.weight=0", *settings]), {}
    )
    assert words in description and "the run learnt" not in description
    p = function(np.array([[-0.1, -0.5, -2.0], [0.0, -1.0, -9.0]], dtype=np.float32))
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p, axis=1) <= 0).all()


SAID = {
    "soft_contrastive": (
        ["model.head='pcme'"],
        {"scale": 2.5, "shift": 1.25},
        lambda s: 1 / (1 + math.exp(2.5 * math.sqrt(-s) - 1.25)),
        "σ(1.25 − 2.5·distance)",
    ),
    "csd": (
        ["model.head='pcmepp'"],
        {"scale": 2.5, "shift": 1.25},
        lambda s: 1 / (1 + math.exp(-2.5 * s - 1.25)),
        "σ(1.25 − 2.5·CSD)",
    ),
    "sigmoid": ([], {"scale": 4.0, "shift": -1.5}, lambda s: 1 / (1 + math.exp(1.5 - 4 * s)), "σ(4·score − 1.5)"),
    "infonce": (
        [],
        {"temperature": 0.2},
        lambda s: math.exp(s / 0.2) / sum(math.exp(x / 0.2) for x in (-0.1, -0.5, -2.0)),
        "temperature 0.2",
    ),
}


@pytest.mark.parametrize("term", SAID)
def test_the_uncalibrated_probability_uses_the_scale_the_run_learnt(tmp_path: Path, term: str) -> None:
    settings, learnt, expected, words = SAID[term]
    (tmp_path / "toy.toml").write_text(RECIPE)
    recipe = read_recipe(tmp_path / "toy.toml", ["loss.infonce.weight=0", *settings, f"loss.{term}.weight=1"])
    description, function = uncalibrated_probability(recipe, {term: learnt})
    assert words in description and "the run learnt" in description
    scores = [-0.1, -0.5, -2.0]
    np.testing.assert_allclose(function(np.array([scores])), [[expected(score) for score in scores]], rtol=1e-6)
    assert "the recipe's first" in uncalibrated_probability(recipe, {})[0]


def test_calibrating_says_whether_before_is_at_what_was_learnt(
    run: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learnt = load(run).learnt["csd"]
    assert halation("calibrate", run, "--data", data) == 0
    kept = capsys.readouterr().out
    assert f"before: σ({learnt['shift']:.4g} − {learnt['scale']:.4g}·CSD)" in kept and "the run learnt" in kept
    save_tensors(run / "model.safetensors", load_tensors(run / "model.safetensors"))  # a run of before they were kept
    assert halation("calibrate", run, "--data", data) == 0
    first = capsys.readouterr().out
    assert "before: σ(5 − 5·CSD)" in first and "at the recipe's first scale and shift" in first


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--split", "train"], "was trained on"),
        (["--relevance", "bleu4"], "unknown relevance"),
        (["--split", "nowhere"], "nowhere"),
        (["--alpha", "0"], "alpha is 0"),
        (["--precision", "2"], "precision is 2"),
        (["--top", "0"], "top is 0"),
    ],
)
def test_mistakes_are_named_in_a_line(
    run: Path, data: Path, capsys: pytest.CaptureFixture[str], options: list[str], problem: str
) -> None:
    assert halation("calibrate", run, "--data", data, *options) == 2
    message = capsys.readouterr().err.strip()
    assert problem in message and len(message.splitlines()) == 1
    assert not (run / "calibration.json").exists()


def test_too_few_images_are_named(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = write_world(tmp_path, {"train": 20, "dev": 8, "test": 8})
    assert halation("calibrate", run, "--data", few) == 2
    assert "8 images are too few to calibrate on" in capsys.readouterr().err


def test_the_study_measures_both_worlds_and_keeps_no_caption(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenes = tmp_path / "scenes"
    draw_scenes(scenes, train=80, dev=40, test=60)
    settings = ["train.epochs=1", "image.size=16", "image.dim=16", "text.hidden=16", "text.dim=16", "model.dim=16"]
    settings += ["data.dev_images=15"]
    train(read_recipe("scenes_pcme", settings), scenes, tmp_path / "run")
    study = trust_study(scenes, tmp_path / "run", data, model, splits=4, relevances=("cider",))
    files = study.write(tmp_path / "out")
    assert [path.name for path in files][:2] == ["trust.md", "trust.json"]
    assert all(path.stat().st_size for path in files)
    page = files[0].read_text()
    assert not any(caption in page for caption in read_scenes(scenes, "test").captions)
    assert "fitted on 25 dev images" in page  # early stopping looked at the others
    document = json.loads(files[1].read_text())
    assert [(one["world"], one["direction"]) for one in document["measured"]] == [
        ("scenes", "t2i"), ("scenes", "i2t"), ("Flickr8k", "t2i"), ("Flickr8k", "i2t"),
    ]  # fmt: skip
    for one in document["measured"]:
        measured = read_recipe((tmp_path / "run" if one["world"] == "scenes" else model) / "config.toml")
        assert (one["recipe"], one["seed"], one["digest"]) == (measured.name, 0, digest(measured))
        assert all(0.75 < row["coverage"] <= 1 for row in one["sets"])
        assert sum(row["chosen"] for row in one["abstention"]) == len(one["thresholds"]) / 2
    assert document["measured"][2]["galleries"][-1]["gallery"] == sum(SIZES.values())
    with pytest.raises(SystemExit, match="2"):
        studies_main(["trust", "--scenes", str(scenes), "--out", str(tmp_path)])
    assert "studies: give --scenes with --scenes-run" in capsys.readouterr().err
