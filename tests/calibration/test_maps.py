"""Platt and isotonic against scikit-learn and against loops that spell the definitions out."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from halation import InputError
from halation.calibration import Isotonic, Platt
from halation.calibration._logistic import fit_logistic


def noisy(rng: np.random.Generator, n: int = 400, digits: int = 9) -> tuple[np.ndarray, np.ndarray]:
    scores = rng.normal(size=n).round(digits)
    return scores, rng.random(n) < 1 / (1 + np.exp(-(2 * scores - 1)))


def platt_loss(slope: float, offset: float, scores: np.ndarray, labels: np.ndarray) -> float:
    """Platt's objective, term by term."""
    yes = int(labels.sum())
    no = len(labels) - yes
    total = 0.0
    for s, y in zip(scores.tolist(), labels.tolist(), strict=True):
        target = (yes + 1) / (yes + 2) if y else 1 / (no + 2)
        p = 1 / (1 + math.exp(-(slope * s + offset)))
        total -= target * math.log(p) + (1 - target) * math.log(1 - p)
    return total


def isotonic_value(scores: np.ndarray, labels: np.ndarray, at: float) -> float:
    """max over a ≤ at of min over b ≥ at of the share of matches with a ≤ score ≤ b."""
    levels = sorted(set(scores.tolist()))
    return max(min(labels[(scores >= a) & (scores <= b)].mean() for b in levels if b >= at) for a in levels if a <= at)


def test_platt_is_scikit_learns_sigmoid(rng: np.random.Generator) -> None:
    scores, labels = noisy(rng)
    slope, offset = _sigmoid_calibration(scores, labels)
    platt = Platt.fit(scores, labels)
    assert (platt.slope, platt.offset) == pytest.approx((-slope, -offset), abs=1e-3)


def test_platt_minimises_the_smoothed_likelihood(rng: np.random.Generator) -> None:
    scores, labels = noisy(rng, 80)
    platt = Platt.fit(scores, labels)
    found = minimize(lambda w: platt_loss(*w, scores, labels), np.zeros(2), tol=1e-12)
    assert platt_loss(platt.slope, platt.offset, scores, labels) <= found.fun + 1e-9
    assert (platt.slope, platt.offset) == pytest.approx(found.x, abs=1e-4)


def test_perfectly_separated_scores_give_finite_probabilities() -> None:
    p = Platt.fit([1e6, 2e6, 3e6, 4e6], [0, 0, 1, 1])([0.0, 5e6])
    assert 0 < p[0] < 0.2 < 0.8 < p[1] < 1


def test_scores_that_are_wrong_way_round_get_the_base_rate(rng: np.random.Generator) -> None:
    scores, labels = noisy(rng)
    platt = Platt.fit(-scores, labels)
    assert platt.slope == 0
    assert platt([-5.0, 5.0]) == pytest.approx(labels.mean(), abs=0.01)


@pytest.mark.parametrize("digits", [9, 1])
def test_isotonic_is_scikit_learns(rng: np.random.Generator, digits: int) -> None:
    scores, labels = noisy(rng, digits=digits)
    least = 1 / (len(scores) + 2)
    theirs = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(scores, labels)
    at = np.concatenate([scores, np.linspace(-5, 5, 101)])
    np.testing.assert_allclose(Isotonic.fit(scores, labels)(at), theirs.predict(at), atol=1e-9)


def test_isotonic_is_the_min_max_of_shares(rng: np.random.Generator) -> None:
    scores, labels = noisy(rng, 60, digits=1)
    expected = np.clip([isotonic_value(scores, labels, s) for s in scores], 1 / 62, 61 / 62)
    np.testing.assert_allclose(Isotonic.fit(scores, labels)(scores), expected, atol=1e-12)


def test_logistic_regression_of_several_features_is_scikit_learns(rng: np.random.Generator) -> None:
    x = rng.normal(size=(500, 3)) * [1, 100, 0.01] + [0, 5, 3]
    y = rng.random(500) < 1 / (1 + np.exp(-(x @ [1.0, -0.02, 50.0] - 150)))
    theirs = LogisticRegression(C=1e12, max_iter=10_000, tol=1e-10).fit((x - x.mean(0)) / x.std(0), y)
    ours = fit_logistic(x, y.astype(float))
    np.testing.assert_allclose(ours[:3] * x.std(0), theirs.coef_[0], rtol=1e-3)


def test_a_feature_that_never_changes_has_no_weight(rng: np.random.Generator) -> None:
    scores, labels = noisy(rng)
    weights = fit_logistic(np.column_stack([scores, np.full(len(scores), 7.0)]), labels.astype(float))
    assert weights[1] == 0
    assert weights[[0, 2]] == pytest.approx(fit_logistic(scores[:, None], labels.astype(float)), rel=1e-6)


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.booleans()), min_size=4, max_size=60).filter(
        lambda pairs: len({y for _, y in pairs}) == 2
    ),
    st.lists(st.floats(-2e6, 2e6), min_size=2, max_size=20),
)
def test_a_bigger_score_never_gets_a_smaller_probability(pairs: list[tuple[float, bool]], asked: list[float]) -> None:
    scores, labels = zip(*pairs, strict=True)
    for kind in (Platt, Isotonic):
        fitted = kind.fit(scores, labels)
        p = fitted(np.sort(asked))
        assert (np.diff(p) >= 0).all()
        assert ((p >= 0) & (p <= 1)).all()
        again = kind.from_json(json.loads(json.dumps(fitted.to_json())))
        np.testing.assert_array_equal(again(asked), fitted(asked))


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ([1.0, 2.0], [True, True], "not a single non-match"),
        ([1.0, 2.0], [False, False], "not a single match"),
        ([1.0, np.nan], [True, False], r"scores\[1\] is nan"),
        ([1.0, 2.0, 3.0], [True, False], "two lists of one length"),
        ([1.0, 2.0], [2, 0], "true or false"),
    ],
)
def test_what_cannot_be_fitted_is_named(scores: list[float], labels: list[int], said: str) -> None:
    for kind in (Platt, Isotonic):
        with pytest.raises(InputError, match=said):
            kind.fit(scores, labels)
