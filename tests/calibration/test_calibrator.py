"""The bundle: fitted, kept as a file, read back, refused where it does not belong; and words for σ."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation.calibration import Ambiguity, CalibratorFit, Calibrators, JudgedScores, fit_calibrator, reliability_plot
from judged_worlds import points

GOLDEN = Path(__file__).parents[1] / "golden" / "calibration"


@pytest.fixture(scope="module")
def fitted() -> CalibratorFit:
    return fit_calibrator(points(np.random.default_rng(3), images=150, spread=0.5, noise=0.25))


@pytest.fixture(scope="module")
def calibrators(fitted: CalibratorFit) -> Calibrators:
    return Calibrators(fitted.calibrator, fitted.calibrator, "abc", "150 images", ("a note",))


def test_what_was_saved_says_the_same(calibrators: Calibrators, tmp_path: Path, rng: np.random.Generator) -> None:
    calibrators.save(tmp_path / "calibration.json")
    again = Calibrators.load(tmp_path / "calibration.json", "abc")
    assert again == calibrators
    scores = -np.sort(-rng.normal(size=12) - 3)
    for one, other in ((calibrators["t2i"], again["t2i"]), (calibrators["i2t"], again["i2t"])):
        np.testing.assert_array_equal(one.probability(scores, 9999, 0.3), other.probability(scores, 9999, 0.3))
        assert one.verdict(scores, 500, 0.3) == other.verdict(scores, 500, 0.3)


def test_an_old_file_is_refused_with_the_command_that_renews_it() -> None:
    with pytest.raises(InputError, match="version 2, not 3; run halation calibrate again"):
        Calibrators.load(GOLDEN / "calibration_0.1.json", "abc")


def test_a_verdict_takes_what_the_caller_has(calibrators: Calibrators) -> None:
    calibrator = calibrators.t2i
    assert calibrator.top == calibrator.depth == 24 and calibrator.abstention.depth == 10
    good, bad = np.linspace(-0.05, -3, 10), np.linspace(-60, -70, 10)
    assert calibrator.verdict(good, 150, 0.6) == calibrator.verdict(-0.05, 150) == "matches"
    for scores in (bad, -60.0):
        assert calibrator.verdict(scores, 150, 0.6) == calibrator.verdict(scores, 150) == "nothing"
    assert calibrator.verdict(-60.0) == calibrator.verdict([], 150) == calibrator.verdict([], 0) == "nothing"
    assert calibrator.verdict(good[:3], 3, 0.6) == "matches"


def test_the_first_few_hold_a_match_as_often_as_promised(fitted: CalibratorFit) -> None:
    calibrator = fitted.calibrator
    asked = points(np.random.default_rng(4), images=150, spread=0.5, noise=0.25)
    assert asked.uncertainty is not None
    held = []
    for scores, matches, sigma in zip(asked.scores, asked.matches, asked.uncertainty, strict=True):
        order = np.argsort(-scores)
        within = calibrator.match_within(scores[order], asked.gallery, sigma)
        assert within is not None and within == len(calibrator.conformal.prediction_set(scores, sigma))
        held.append(matches[order[:within]].any())
    assert np.mean(held) > 0.85
    assert calibrator.match_within(scores[order][:within], asked.gallery, sigma) is None  # it may go on
    assert calibrator.match_within([], asked.gallery, sigma) is None
    leaning = replace(
        calibrator,
        conformal=replace(
            calibrator.conformal, nonconformity=replace(calibrator.conformal.nonconformity, best_weight=1.0)
        ),
    )
    assert leaning.match_within(scores[order], 151, sigma) is None is leaning.match_within(scores[order], 150)
    assert "fitted among 150 items, and it does not hold among 151" in str(leaning.no_guarantee(151))
    assert leaning.no_guarantee(150) is None
    flat = replace(
        calibrator,
        conformal=replace(
            calibrator.conformal, nonconformity=replace(calibrator.conformal.nonconformity, best_weight=0.0)
        ),
    )
    assert flat.no_guarantee(151) is None
    assert flat.match_within(scores[order], 151, sigma) is not None


def test_a_calibrator_knows_whether_it_can_say_nothing(calibrators: Calibrators) -> None:
    calibrator = calibrators.t2i
    assert calibrator.can_say_nothing() and calibrator.can_say_nothing(3) and calibrator.can_say_nothing(10, 0.3)
    blunt = replace(calibrator, abstention=replace(calibrator.abstention, nothing_below=None))
    assert not blunt.can_say_nothing() and not blunt.can_say_nothing(10, 0.3)
    assert blunt.can_say_nothing(3)  # by the best alone
    assert blunt.verdict(np.linspace(-60, -70, 10), 150, 0.6) == "unsure"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {**d, "version": 7}, "version 7"),
        (lambda d: [d], "version None"),
        (lambda d: {k: v for k, v in d.items() if k != "t2i"}, "not a calibration as halation writes it"),
        (lambda d: {**d, "t2i": {**d["t2i"], "calibration": 5}}, "not a calibration as halation writes it"),
        (lambda d: {**d, "i2t": {**d["i2t"], "areas": None}}, "not a calibration as halation writes it"),
        (lambda d: {**d, "fingerprint": "other"}, "another model"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    calibrators: Calibrators, tmp_path: Path, change: object, message: str
) -> None:
    path = tmp_path / "calibration.json"
    calibrators.save(path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))  # type: ignore[operator]
    with pytest.raises(InputError, match=message):
        Calibrators.load(path, "abc")


def test_half_a_file_is_refused(calibrators: Calibrators, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    calibrators.save(path)
    path.write_text(path.read_text()[:200])
    with pytest.raises(InputError, match="not valid JSON"):
        Calibrators.load(path)


def test_too_few_images_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(InputError, match="12 images are too few to calibrate on"):
        fit_calibrator(points(rng, images=12))


def test_a_query_without_a_match_is_refused(rng: np.random.Generator) -> None:
    judged = points(rng, images=30)
    with pytest.raises(InputError, match="every query needs a match"):
        replace(judged, truth=np.zeros_like(judged.truth))
    with pytest.raises(InputError, match=r"truth has shape \(90, 29\), which does not fit"):
        JudgedScores(judged.scores, judged.truth[:, 1:], judged.query_image, judged.item_image)


def test_the_words_are_those_of_the_quartiles(rng: np.random.Generator) -> None:
    sigma = rng.random(1000)
    ambiguity = Ambiguity.fit(sigma)
    assert ambiguity is not None
    words = [ambiguity(float(s)) for s in sigma]
    assert [words.count(word) for word in ("specific", "ordinary", "broad")] == [250, 500, 250]
    assert sigma[[w == "specific" for w in words]].max() < sigma[[w == "broad" for w in words]].min()


def test_the_words_turn_round_where_sigma_does(rng: np.random.Generator) -> None:
    sigma = rng.random(500)
    ambiguity = Ambiguity.fit(sigma, breadth=np.round(10 * (1 - sigma)))
    assert ambiguity is not None and ambiguity.correlation is not None and ambiguity.correlation < -0.9
    assert (ambiguity(0.01), ambiguity(0.5), ambiguity(0.99)) == ("broad", "ordinary", "specific")


def test_there_is_no_word_where_sigma_says_nothing(rng: np.random.Generator) -> None:
    ambiguity = Ambiguity.fit(rng.random(5000), breadth=rng.integers(1, 50, 5000))
    assert ambiguity is not None and ambiguity(0.5) is None is ambiguity(0.01)
    assert Ambiguity.fit(np.full(10, 0.2)) is None
    assert Ambiguity(0.1, 0.2)(None) is None
    with pytest.raises(InputError, match="finite numbers"):
        Ambiguity.fit([0.1, np.nan])


def test_the_reliability_plot_is_a_picture(fitted: CalibratorFit, tmp_path: Path) -> None:
    choice = fitted.choice
    path = tmp_path / "reliability.png"
    reliability_plot([("one", [(choice.name, choice.predicted[choice.name], choice.observed)])], path)
    assert path.read_bytes().startswith(b"\x89PNG")
