"""The trust study: its measures on small numbers, a run of it on toy data, and that its page is of today's recipes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from halation import InputError
from halation.calibration import Abstention, Calibrator, JudgedScores
from halation.data import Judgements, Truth, draw_scenes, read_scenes
from halation.search import calibrate_run
from halation.semantics import MiniLM
from halation.training import read_recipe, train
from layouts import write_features, write_flickr8k, write_judgements
from studies import TrustStudy, trust
from studies.__main__ import main
from studies.jobs import digest
from studies.trust_measure import reliable, steps, three_answers
from worlds import RECIPE

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
IMAGES = 30


@pytest.fixture
def test_scores() -> JudgedScores:
    """Two captions of each of 30 images; by people, a caption fits its own image and the next one half."""
    image_of = np.repeat(np.arange(IMAGES), 2)
    truth = np.eye(IMAGES)[image_of] + 0.5 * np.roll(np.eye(IMAGES), 1, axis=1)[image_of]
    scores = truth + 0.01 * np.random.default_rng(0).random(truth.shape)
    return JudgedScores(scores, truth, image_of, np.arange(IMAGES))


def judgements(pairs: list[tuple[int, int]], scores: list[list[float]]) -> Judgements:
    base = Truth.from_captions([f"caption {k}" for k in range(2 * IMAGES)], np.repeat(np.arange(IMAGES), 2))
    return Judgements(base, np.array(pairs), np.array(scores), 0, 1)


def reads(function: Any) -> Calibrator:
    """A calibrator whose probability is a function of the score."""
    probability = lambda scores, gallery=None, uncertainty=None: function(scores)  # noqa: E731
    return cast(Calibrator, SimpleNamespace(probability=probability))


class TestReliability:
    def test_the_gap_is_between_predicted_and_answered(self, test_scores: JudgedScores) -> None:
        calibrator = reads(lambda scores: np.where(scores > 0.9, 0.8, 0.3))
        judged = judgements([(0, 0), (1, 0), (1, 2), (2, 2)], [[1.0], [0.6], [1.0], [0.4]])
        answers = judged.scores[:, 0]
        everything, alone = (
            reliable(calibrator, test_scores, judged, answers, part) for part in ("all", "unannotated")
        )
        assert everything is not None and alone is not None
        assert (everything["pairs"], alone["pairs"]) == (4, 2)
        assert everything["predicted"] == pytest.approx(0.55) and everything["answered"] == pytest.approx(0.75)
        assert alone["gap"] == pytest.approx((0.3 + 0.1) / 2)

    def test_own_captions_weigh_as_they_occur_among_candidates(self, test_scores: JudgedScores) -> None:
        judged = judgements([(0, 0), (1, 2), (1, 0)], [[1.0], [1.0], [0.0]])
        row = reliable(reads(lambda scores: 0 * scores), test_scores, judged, judged.scores[:, 0], "natural")
        assert row is not None and row["natural"] == pytest.approx(1 / 24)
        assert row["answered"] == pytest.approx(1 / 24)

    def test_bins_that_fall_are_counted(self, test_scores: JudgedScores) -> None:
        pairs = [(image, 2 * image) for image in range(20)]
        ranks = {round(float(test_scores.scores[2 * k, k]), 9): k for k in range(20)}
        order = np.argsort(np.argsort(list(ranks)))
        for answers, falls in ((order / 20, 0), (1 - order / 20, 9)):
            row = reliable(reads(lambda scores: scores - 0.9), test_scores, judgements(pairs, [[1.0]] * 20), answers)
            assert row is not None and row["out_of_order"] == falls

    def test_a_pair_that_is_no_candidate_does_not_count(self, test_scores: JudgedScores) -> None:
        last = int(np.argmin(test_scores.scores[0]))
        judged = judgements([(last, 0)], [[1.0]])
        assert reliable(reads(lambda scores: scores), test_scores, judged, judged.scores[:, 0]) is None


def test_the_steps_from_prediction_to_experts_are_of_the_same_pairs(test_scores: JudgedScores) -> None:
    crowd = judgements([(1, 0), (2, 2), (0, 0)], [[0.5], [0.0], [1.0]])
    expert = judgements([(1, 0), (3, 4), (0, 0)], [[4, 3, 3], [4, 4, 4], [4, 4, 4]])
    everywhere, asked, both = steps(reads(lambda scores: np.full_like(scores, 0.2)), test_scores, crowd, expert)
    assert everywhere["pairs"] == 2 * IMAGES * 23 and everywhere["predicted"] == pytest.approx(0.2)
    assert (asked["pairs"], asked["crowd"], asked["people"]) == (2, 0.25, 0.5)
    assert (both["pairs"], both["crowd"], both["experts"]) == (1, 0.5, 1.0)


def test_an_answer_is_right_as_often_as_half_of_the_queries_with_a_match_allow(test_scores: JudgedScores) -> None:
    rule = Abstention("best score", 1, {"best": 1.0, "size": 0.0, "one": 0.0}, 0.9, 0.3, 0.9)
    row = three_answers(cast(Calibrator, SimpleNamespace(abstention=rule)), test_scores)
    assert row["shares"]["matches"][0] == 1 and row["shares"]["nothing"][2:] == [1, 1]
    assert row["precision"] == {"matches": 1.0, "nothing": 1.0}
    never = Abstention("best score", 1, {"best": 1.0, "size": 0.0, "one": 0.0}, None, 2.0, 0.9)
    row = three_answers(cast(Calibrator, SimpleNamespace(abstention=never)), test_scores)
    assert row["precision"] == {"matches": None, "nothing": 0.5}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Drawn scenes, and a run on them."""
    folder = tmp_path_factory.mktemp("scenes")
    draw_scenes(folder / "data", train=80, dev=40, test=60)
    settings = ["train.epochs=1", "image.size=16", "image.dim=16", "text.hidden=16", "text.dim=16", "model.dim=16"]
    train(read_recipe("scenes_pcme", [*settings, "data.dev_images=15"]), folder / "data", folder / "run")
    return folder / "data", folder / "run"


@pytest.mark.skipif(not MiniLM.is_installed(), reason="people reads MiniLM's embeddings")
def test_the_study_judges_a_run_by_people_and_keeps_no_caption(tmp_path: Path, scenes: tuple[Path, Path]) -> None:
    data = write_features(write_judgements(write_flickr8k(tmp_path / "flickr8k", {"train": 60, "dev": 40, "test": 40})))
    (tmp_path / "toy.toml").write_text(RECIPE.replace('"features"', '"features/efflite0"'))
    recipe = read_recipe(tmp_path / "toy.toml", ["model.head='pcmepp'", "loss.csd.weight=1", "train.epochs=2"])
    train(recipe, data, tmp_path / "run")
    study = trust(data, [tmp_path / "run"], scenes=scenes[0], scenes_run=scenes[1])
    (run,) = study.runs
    assert (run["recipe"], run["seed"], run["digest"]) == ("toy", 0, digest(recipe))
    judges = {(row["judge"], row["by"]) for row in run["reliability"]}
    assert judges == {
        (judge, by) for judge in ("people", "people-loose", "annotations") for by in ("crowdflower", "expert")
    }
    assert {row["direction"] for row in run["reliability"]} == {"t2i"}  # too few judged candidates the other way
    assert [row["items"] for row in run["galleries"]] == [40, 20, 200, 100]
    assert run["skill"]["t2i"]["with"] is not None and len(study.scenes) == 2
    assert not (tmp_path / "run" / "calibration.json").exists()
    files = study.write(tmp_path / "out")
    assert [path.name for path in files] == ["trust.md", "trust.json", "trust.png"]
    page = files[0].read_text(encoding="utf-8")
    assert TrustStudy.read(files[1]).to_markdown() == page
    assert not any(caption in page for caption in read_scenes(scenes[0], "test").captions)


def test_natural_queries_need_a_calibrated_run(tmp_path: Path, scenes: tuple[Path, Path]) -> None:
    data, run = scenes
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps({"yes": ["a red circle", "a blue square"], "no": ["a submarine in space"]}))
    with pytest.raises(InputError, match="has no calibration") as error:
        trust(natural_runs=[run], photos=data / "images", queries=queries)
    assert "halation calibrate" in str(error.value)
    calibrate_run(run, data)
    study = trust(natural_runs=[run], photos=data / "images", queries=queries)
    assert [sum(study.natural[0][kind].values()) for kind in ("yes", "no")] == [2, 1]
    assert "Natural queries" in str(study) and "of 2" in study.to_markdown()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no photographs"):
        trust(natural_runs=[run], photos=tmp_path / "empty", queries=queries)


def test_half_a_pair_of_options_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, message in (
        (["--data", tmp_path], "give --data with --run"),
        (["--natural", tmp_path], "give --photos with --natural"),
        (["--scenes", tmp_path], "give --scenes with --scenes-run"),
        ([], "nothing to measure; give --data with --run"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["trust", *map(str, options), "--out", str(tmp_path)])
        assert message in capsys.readouterr().err


def test_what_is_kept_is_of_todays_recipes() -> None:
    study = TrustStudy.read(STUDIES / "trust.json")
    assert study.runs
    for one in [*study.runs, *study.scenes]:
        today = digest(read_recipe(one["recipe"], [f"train.seed={one['seed']}"]))
        assert one["digest"] == today, f"trust.json: of an earlier {one['recipe']}; run python -m studies trust again"
