"""Conformal sets: the quantile counted by hand, coverage where queries are exchangeable, sets that follow σ."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import QuantileRegressor

from halation import InputError
from halation.calibration import Conformal, JudgedScores, Nonconformity
from halation.calibration._conformal import _slope
from judged_worlds import points


def reach_by_counting(judged: JudgedScores, shape: Nonconformity, alpha: float) -> float:
    """Lee, Barber and Willett, 2023: the quantile of all images' misfits, each image 1/(K + 1), one image at ∞."""
    images = sorted(set(judged.query_image.tolist()))
    mass = []
    for image in images:
        queries = [q for q in range(len(judged)) if judged.query_image[q] == image]
        for q in queries:
            matches = [k for k in range(judged.gallery) if judged.matches[q, k]]
            for k in matches:
                misfit = shape.best_weight * max(judged.scores[q]) - judged.scores[q, k]
                mass.append((misfit, 1 / (len(images) + 1) / len(queries) / len(matches)))
    total = 0.0
    for misfit, weight in sorted(mass):
        total += weight
        if total >= 1 - alpha - 1e-12:
            return misfit
    return math.inf


def shuffled(judged: JudgedScores, rng: np.random.Generator) -> tuple[JudgedScores, JudgedScores]:
    drawn = rng.permutation(judged.images)
    half = len(drawn) // 2
    return judged.queries_of(drawn[:half]), judged.queries_of(drawn[half:])


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.37])
def test_with_one_query_and_one_match_an_image_the_reach_is_the_textbooks(
    rng: np.random.Generator, alpha: float
) -> None:
    judged = points(rng, images=60, captions=1)
    misfits = np.sort(judged.scores.max(axis=1) - judged.scores[np.arange(60), np.arange(60)])
    place = math.ceil(61 * (1 - alpha))
    assert Conformal.fit(judged, Nonconformity(), alpha).quantile == pytest.approx(misfits[place - 1])


@pytest.mark.parametrize("lean", [0.0, 0.5, 1.0])
def test_the_reach_counts_images_alike_then_queries_then_matches(rng: np.random.Generator, lean: float) -> None:
    images = rng.integers(12, size=40)
    matches = rng.random((40, 30)) < 0.15
    matches[:, 0] = True
    judged = JudgedScores(rng.normal(size=(40, 30)), matches, images, np.arange(30))
    for alpha in (0.1, 0.2, 0.5):
        shape = Nonconformity(lean)
        assert Conformal.fit(judged, shape, alpha).quantile == pytest.approx(reach_by_counting(judged, shape, alpha))


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_coverage_is_as_promised_where_images_are_exchangeable(rng: np.random.Generator, alpha: float) -> None:
    covered = []
    for _ in range(300):  # fresh images every time; 3 captions of one are not independent
        judged = points(rng, images=80, captions=3, dim=3)
        fitted_on, measured_on = shuffled(judged, rng)
        conformal = Conformal.fit(fitted_on, Nonconformity(0.7), alpha)
        one = measured_on.query_image == measured_on.images[0]  # one unseen image a round: independent trials
        covered.append(rng.choice(conformal.coverage(measured_on)[one]))
    hits = int(np.sum(covered))
    low, high = binom.ppf([1e-4, 1 - 1e-4], 300, [1 - alpha, min(1.0, 1 - alpha + 2 / 41)])
    assert low <= hits <= high


def test_coverage_over_splits_is_within_a_point_with_many_matches(rng: np.random.Generator) -> None:
    base = points(rng, images=300, captions=2)
    matches = base.matches | (base.scores + rng.normal(size=base.scores.shape) > -3.5)
    many = JudgedScores(base.scores, matches, base.query_image, base.item_image)
    rounds = []
    for _ in range(30):
        fitted_on, measured_on = shuffled(many, rng)
        rounds.append(Conformal.fit(fitted_on, Nonconformity(0.5), 0.1).coverage(measured_on).mean())
    assert np.mean(rounds) == pytest.approx(0.9, abs=0.01)


def test_sets_follow_the_uncertainty_and_cover_alike(rng: np.random.Generator) -> None:
    teach, asked = points(rng, images=300, spread=0.6), points(rng, images=300, spread=0.6)
    shape = Nonconformity.fit(teach, 0.1)
    fitted_on, measured_on = shuffled(asked, rng)
    assert measured_on.uncertainty is not None
    certain = measured_on.uncertainty < np.median(measured_on.uncertainty)
    conformal = Conformal.fit(fitted_on, shape, 0.1)
    sizes, covered = conformal.sizes(measured_on), conformal.coverage(measured_on)
    assert shape.slope > 0
    assert sizes[certain].mean() < 0.7 * sizes[~certain].mean()
    fixed = Conformal.fit(fitted_on, Nonconformity(shape.best_weight), 0.1).coverage(measured_on)
    apart = abs(covered[certain].mean() - covered[~certain].mean())
    assert apart < 0.06 < abs(fixed[certain].mean() - fixed[~certain].mean())


def test_the_slope_is_that_of_quantile_regression(rng: np.random.Generator) -> None:
    x = rng.normal(size=400)
    values = 0.7 * x + (1 + 0.3 * np.abs(x)) * rng.normal(size=400)
    theirs = QuantileRegressor(quantile=0.8, alpha=0, solver="highs").fit(x[:, None], values)
    assert _slope(x, values, np.ones(400), 0.8) == pytest.approx(theirs.coef_[0], abs=0.02)


def test_a_set_is_the_head_of_the_ranking(rng: np.random.Generator) -> None:
    judged = points(rng, images=50, spread=0.4)
    conformal = Conformal.fit(judged, Nonconformity.fit(judged), 0.2)
    sizes = conformal.sizes(judged)
    assert judged.uncertainty is not None
    for q in range(0, len(judged), 7):
        rows = conformal.prediction_set(judged.scores[q], float(judged.uncertainty[q]))
        assert len(rows) == sizes[q]
        np.testing.assert_array_equal(rows, np.argsort(-judged.scores[q], kind="stable")[: len(rows)])


def test_more_confidence_never_takes_an_item_away(rng: np.random.Generator) -> None:
    judged = points(rng)
    sizes = [Conformal.fit(judged, Nonconformity(), alpha).sizes(judged) for alpha in (0.5, 0.2, 0.1, 0.02)]
    assert (np.diff(sizes, axis=0) >= 0).all()


def test_with_too_few_images_the_set_is_everything(rng: np.random.Generator) -> None:
    judged = points(rng, images=8)
    conformal = Conformal.fit(judged, Nonconformity(), 0.05)  # 9 · 0.95 > 8
    assert conformal.quantile == math.inf
    assert (conformal.sizes(judged) == 8).all()
    again = Conformal.from_json(json.loads(json.dumps(conformal.to_json(), allow_nan=False)))
    assert again == conformal


def test_wrong_requests_are_named(rng: np.random.Generator) -> None:
    judged = points(rng, images=30, spread=0.5)
    with pytest.raises(InputError, match="alpha is 1"):
        Conformal.fit(judged, Nonconformity(), 1.0)
    conformal = Conformal.fit(judged, Nonconformity(1.0, 0.3), 0.1)
    with pytest.raises(InputError, match="uncertainty"):
        conformal.prediction_set(judged.scores[0])
    with pytest.raises(InputError, match="one query"):
        conformal.prediction_set(judged.scores, 0.1)
