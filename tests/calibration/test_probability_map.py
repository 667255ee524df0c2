"""Probabilities in worlds whose posterior is known, in the gallery of the fit and in others."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halation import InputError
from halation.calibration import Isotonic, JudgedScores, Platt, ProbabilityMap, brier, ece
from halation.calibration._fit import choose_map
from judged_worlds import lottery, points

GAP = 2.0


def posterior(scores: np.ndarray, prior: float, gap: float = GAP) -> np.ndarray:
    """P(match | score) where matches are N(gap, 1) and others N(0, 1), by Bayes' rule."""
    yes, no = prior * np.exp(-((scores - gap) ** 2) / 2), (1 - prior) * np.exp(-(scores**2) / 2)
    return yes / (yes + no)


@pytest.mark.parametrize("prior", [0.001, 0.02, 0.3, 0.6])
def test_another_base_rate_shifts_the_log_odds_exactly(prior: float) -> None:
    gallery, positives = 50, 2.5
    known = positives / gallery
    truth = Platt(GAP, -(GAP**2) / 2 + np.log(known / (1 - known)))
    calibration = ProbabilityMap(truth, "t2i", gallery, positives, top=10)
    scores = np.linspace(-4, 6, 41)
    np.testing.assert_allclose(calibration(scores), posterior(scores, known), atol=1e-12)
    np.testing.assert_allclose(calibration(scores, base_rate=prior), posterior(scores, prior), atol=1e-12)


def test_a_bigger_gallery_is_the_smaller_prior_where_matches_stay_as_many() -> None:
    truth = Platt(GAP, -(GAP**2) / 2 + np.log(1 / 999))
    calibration = ProbabilityMap(truth, "t2i", 1000, 1.0, top=10)
    scores = np.linspace(-4, 6, 41)
    np.testing.assert_allclose(calibration(scores, 50_000), posterior(scores, 1 / 50_000), rtol=2e-3)


def test_the_response_is_one_where_matches_stay_and_less_where_they_grow(rng: np.random.Generator) -> None:
    stay = ProbabilityMap.fit(lottery(rng, 2000, 480, gap=3.0), top=12)
    grow = ProbabilityMap.fit(lottery(rng, 1000, 480, rate=0.02, gap=3.0), top=12)
    assert stay.gallery_exponent == pytest.approx(1, abs=0.12)
    assert grow.gallery_exponent < 0.7
    for gallery in (120, 1920):
        scores, matches = lottery(rng, 600, gallery, rate=0.02, gap=3.0).candidates(12)
        with_it, without = (ece(grow(scores, size).ravel(), matches.ravel()) for size in (gallery, None))
        assert with_it < 0.75 * without


def test_a_fit_finds_the_posterior_and_carries_it_to_other_galleries(rng: np.random.Generator) -> None:
    fitted = ProbabilityMap.fit(lottery(rng, 4000, 200, gap=3.0), top=10)
    for gallery in (60, 200, 800):
        scores, matches = lottery(rng, 3000, gallery, gap=3.0).candidates(10)
        said = fitted(scores, gallery).ravel()
        assert ece(said, matches.ravel()) < 0.02, gallery
    uncorrected = fitted(scores).ravel()
    assert ece(uncorrected, matches.ravel()) > 3 * ece(said, matches.ravel())


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1), st.integers(1, 10**6))
def test_no_calibration_changes_the_order_within_a_query(seed: int, best: float, exponent: float, gallery: int) -> None:
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=(5, 12)).round(1), axis=1)
    for found in (Platt(2.0, -1.0), Isotonic((-1.0, 0.0, 0.5), (0.1, 0.1, 0.9))):
        p = ProbabilityMap(found, "t2i", 100, 1.0, 10, {"best": -best, "mean": 0.1}, exponent)(scores, gallery)
        assert (np.diff(p, axis=1) <= 1e-15).all()
        assert (p[scores == np.roll(scores, 1, axis=1)] >= 0).all()
        assert ((p > 0) & (p < 1)).all()


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_known_share_of_queries_without_a_match_is_corrected_exactly(rng: np.random.Generator, kind: str) -> None:
    fitted = ProbabilityMap.fit(lottery(rng, 4000, 200, gap=3.0), kind, top=10)  # type: ignore[arg-type]
    assert fitted.base_rate == pytest.approx(0.5 / 200, rel=0.01)
    asked = lottery(rng, 4000, 200, gap=3.0)
    scores, matches = asked.top(10)  # here every query has one
    assert ece(fitted(scores, base_rate=1 / 200).ravel(), matches.ravel()) < 0.02
    assert ece(fitted(scores).ravel(), matches.ravel()) > 0.02


@pytest.mark.parametrize("variant", ["platt", "isotonic", "chosen"])
def test_the_best_is_believed_less_where_nothing_matches(rng: np.random.Generator, variant: str) -> None:
    taught, asked = points(rng, images=200, noise=0.15), points(rng, images=200, noise=0.15)
    chosen = variant == "chosen"
    fitted = (
        choose_map(taught).probability_map if chosen else ProbabilityMap.fit(taught, variant, context=("best", "mean"))
    )  # type: ignore[arg-type]
    scores, matches = asked.candidates(10)
    said = fitted(scores, asked.gallery)
    there, none = said[: len(asked), 0], said[len(asked) :, 0]
    assert there.mean() > 0.75 and none.mean() < 0.2
    assert there.std() > 0.01
    assert ece(said.ravel(), matches.ravel()) < 0.03


def test_known_matches_are_taken_out_the_second_time() -> None:
    own = np.arange(3)
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    judged = JudgedScores(scores, np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1]], dtype=bool), own, own)
    best, truth = judged.candidates(2)
    assert best[3:].tolist() == [[1.0, -np.inf], [3.0, 1.0], [-np.inf, -np.inf]]
    assert truth[:3].tolist() == [[1, 1], [0, 1], [1, 1]] and not truth[3:].any()
    assert judged.base_rate == pytest.approx(6 / (9 + 3))


def test_what_people_judge_stays_in_the_gallery(rng: np.random.Generator) -> None:
    judged = points(rng, images=30)
    graded = JudgedScores(judged.scores, judged.truth.astype(np.float32), judged.query_image, judged.item_image)
    scores, truth = graded.candidates(5)
    for got, expected in zip((scores, truth), judged.top(5), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert graded.base_rate == pytest.approx(1 / 30) and graded.candidate_uncertainty is None


def test_graded_judgements_are_predicted_as_they_are(rng: np.random.Generator) -> None:
    """Every pair matches with a probability that only its score decides: the map finds it, whatever the gallery."""
    scores = rng.normal(size=(2000, 80))
    own = rng.integers(80, size=2000)
    truth = 1 / (1 + np.exp(3.0 - 2.0 * scores))
    truth[np.arange(2000), own] = np.maximum(truth[np.arange(2000), own], 0.5)
    judged = JudgedScores(scores, truth.astype(np.float32), own, np.arange(80))
    fitted = choose_map(judged).probability_map
    assert fitted.gallery_exponent == 0 and not fitted.context
    for gallery in (80, 8000):
        np.testing.assert_allclose(
            fitted([1.5, 2.5], gallery), 1 / (1 + np.exp(3.0 - 2.0 * np.array([1.5, 2.5]))), atol=0.03
        )


def test_sigma_joins_where_it_helps(rng: np.random.Generator) -> None:
    """Scores of uncertain queries are worth less: the map learns it, and asks for σ."""
    sigma = np.exp(rng.normal(size=3000))
    scores = rng.normal(size=(3000, 60))
    own = rng.integers(60, size=3000)
    truth = 1 / (1 + np.exp(2.0 - 2.0 * scores + 1.5 * np.log(sigma)[:, None]))
    truth[np.arange(3000), own] = np.maximum(truth[np.arange(3000), own], 0.5)
    choice = choose_map(JudgedScores(scores, truth.astype(np.float32), own, np.arange(60), sigma))
    assert choice.name == "score and σ"
    fitted = choice.probability_map
    assert fitted.context["sigma"] == pytest.approx(-0.75, abs=0.1)
    assert fitted([2.0], uncertainty=0.5)[0] > fitted([2.0], uncertainty=2.0)[0]
    with pytest.raises(InputError, match="pass uncertainty="):
        fitted([2.0])


def test_the_best_score_helps_where_queries_differ(rng: np.random.Generator) -> None:
    plain = lottery(rng, 2000, 100, gap=4.0)
    level = 3 * rng.normal(size=(2000, 1))  # what raises all scores of a query says nothing about its matches
    moved = JudgedScores(plain.scores + level, plain.matches, plain.query_image, plain.item_image)
    relative = ProbabilityMap.fit(moved, context=("best", "mean"))
    scores, truth = moved.candidates(10)
    labels = truth.ravel()
    assert sum(relative.context.values()) < -0.8
    assert brier(relative(scores).ravel(), labels) < 0.9 * brier(ProbabilityMap.fit(moved)(scores).ravel(), labels)
    assert choose_map(moved).probability_map.context
    assert choose_map(plain).qualities[0].skill > 0


def test_what_is_chosen_has_the_smallest_held_out_brier(rng: np.random.Generator) -> None:
    choice = choose_map(points(rng), before=lambda scores: np.clip(1 + scores / 40, 0, 1))
    figures = {row.name: row for row in choice.qualities}
    assert figures["before"].ece > figures[choice.name].ece
    least = min(row.brier for row in choice.qualities)
    spread = choice.observed.mean() * (1 - choice.observed.mean())
    assert figures[choice.name].brier <= least + 3 * 0.001 * spread
    for name, said in choice.predicted.items():
        assert figures[name].brier == pytest.approx(brier(said, choice.observed))


def test_places_without_a_candidate_have_no_probability() -> None:
    calibration = ProbabilityMap(Platt(1.0, 0.0), "t2i", 10, 1.0, 10, {"best": -0.5})
    p = calibration([[0.5, -np.inf, np.nan], [0.5, 0.2, -np.inf]])
    assert (p[0] > 0).tolist() == [True, False, False]
    assert p[1, 0] == p[0, 0] == calibration(0.5) == calibration([0.5])[0]
    assert calibration(np.zeros((2, 0))).shape == (2, 0)
    assert (calibration([[-np.inf, -np.inf]]) == 0).all()


def test_a_tiny_gallery_makes_nothing_certain() -> None:
    calibration = ProbabilityMap(Platt(10.0, -5.0), "t2i", 1000, 1.0, 10)
    assert calibration([0.1], 1) == calibration([0.1], 10) < 0.7


def test_far_from_the_gallery_of_the_fit_there_is_a_note() -> None:
    calibration = ProbabilityMap(Platt(1.0, 0.0), "t2i", 1000, 1.0, 10)
    assert calibration.note(1000) is None is calibration.note(8000)
    assert "1,000" in str(calibration.note(50_000)) and "50,000" in str(calibration.note(50_000))
    with pytest.raises(InputError, match="gallery of 0"):
        calibration([0.5], 0)
    with pytest.raises(InputError, match="base_rate is 1"):
        calibration([0.5], base_rate=1.0)


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_calibration_survives_json(rng: np.random.Generator, kind: str) -> None:
    fitted = ProbabilityMap.fit(points(rng), kind, context=("best", "mean"))  # type: ignore[arg-type]
    again = ProbabilityMap.from_json(json.loads(json.dumps(fitted.to_json())))
    scores = rng.normal(size=(3, 10))
    np.testing.assert_array_equal(again(scores, 77), fitted(scores, 77))
    assert again.kind == kind and again.base_rate == fitted.base_rate
