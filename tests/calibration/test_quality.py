"""Calibration error, Brier, AUROC and coverage against scikit-learn and against loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, precision_recall_curve, roc_auc_score

from halation import InputError
from halation.calibration import (
    auroc,
    brier,
    brier_skill,
    coverage_at_precision,
    ece,
    reliability,
)
from halation.calibration._judged_scores import best_first

LABELLED = st.lists(st.tuples(st.integers(-20, 20).map(float), st.booleans()), min_size=4, max_size=80).filter(
    lambda pairs: len({y for _, y in pairs}) == 2
)


def test_ece_of_chunks_of_equal_mass(rng: np.random.Generator) -> None:
    p, y = rng.random(150), rng.random(150) < 0.3
    order = sorted(range(150), key=lambda k: p[k])
    total = 0.0
    for start in range(0, 150, 10):
        chunk = order[start : start + 10]
        total += abs(sum(p[k] for k in chunk) - sum(y[k] for k in chunk)) / 150
    assert ece(p, y, bins=15) == pytest.approx(total)


def test_bins_are_scikit_learns_quantile_bins(rng: np.random.Generator) -> None:
    p, y = rng.random(1500), rng.random(1500) < 0.3
    was, said = calibration_curve(y, p, n_bins=15, strategy="quantile")
    bins = reliability(p, y, bins=15)
    np.testing.assert_allclose(bins.predicted, said, atol=1e-3)
    np.testing.assert_allclose(bins.observed, was, atol=0.011)  # an item at a border
    assert (bins.size == 100).all()


def test_equal_probabilities_stay_together_in_any_order(rng: np.random.Generator) -> None:
    p, y = rng.integers(0, 7, 500) / 7, rng.random(500) < 0.4
    drawn = rng.permutation(500)
    assert ece(p, y) == pytest.approx(ece(p[drawn], y[drawn]), abs=1e-15)
    bins = reliability(p, y)
    assert len(bins.size) == 7 and bins.size.sum() == 500


def test_a_few_left_between_many_equal_ones_make_no_bin_of_their_own(rng: np.random.Generator) -> None:
    p = np.concatenate([np.full(500, 0.2), [0.3], np.full(499, 0.4)])
    assert reliability(p, rng.random(1000) < 0.3).size.min() >= 1000 // 15


def test_saying_the_base_rate_is_calibrated_and_has_no_skill(rng: np.random.Generator) -> None:
    y = rng.random(300) < 0.2
    p = np.full(300, y.mean())
    assert ece(p, y) == pytest.approx(0, abs=1e-12)
    assert brier_skill(p, y) == pytest.approx(0, abs=1e-12)
    assert brier_skill(y.astype(float), y) == 1


def test_brier_is_scikit_learns_and_the_mean_square(rng: np.random.Generator) -> None:
    p, y = rng.random(100), rng.random(100) < 0.3
    assert brier(p, y) == pytest.approx(brier_score_loss(y, p))
    assert brier(p, y) == pytest.approx(sum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / 100)


@pytest.mark.parametrize("digits", [9, 1])
def test_auroc_is_scikit_learns_and_counts_pairs(rng: np.random.Generator, digits: int) -> None:
    y = rng.random(120) < 0.4
    x = (rng.normal(size=120) + y).round(digits)
    won = sum((a > b) + 0.5 * (a == b) for a in x[y] for b in x[~y])
    assert auroc(x, y) == pytest.approx(won / (y.sum() * (~y).sum()))
    assert auroc(x, y) == pytest.approx(roc_auc_score(y, x))


@given(LABELLED)
def test_auroc_knows_only_the_order(pairs: list[tuple[float, bool]]) -> None:
    x, y = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    assert auroc(np.arctan(x) * 3 + 1, y) == pytest.approx(auroc(x, y))
    assert auroc(-x, y) == pytest.approx(1 - auroc(x, y))
    assert auroc(x, ~y) == pytest.approx(1 - auroc(x, y))
    assert auroc(np.zeros_like(x), y) == 0.5


@given(LABELLED, st.sampled_from([0.3, 0.5, 0.75, 0.9, 1.0]))
def test_coverage_is_that_of_the_lowest_threshold_that_is_precise_enough(
    pairs: list[tuple[float, bool]], precision: float
) -> None:
    x, y = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    good = [t for t in sorted(set(x.tolist())) if y[x >= t].mean() >= precision]
    found = coverage_at_precision(x, y, precision)
    if not good:
        assert found.threshold is None and found.answered == 0
        return
    assert found.threshold == good[0]
    assert found.answered == pytest.approx((x >= good[0]).mean())
    assert found.recall == pytest.approx(y[x >= good[0]].sum() / y.sum())
    precisions, recalls, _ = precision_recall_curve(y, x)
    assert found.recall == pytest.approx(recalls[:-1][precisions[:-1] >= precision].max())


@given(st.integers(1, 6), st.integers(1, 7), st.integers(1, 9), st.integers(0, 10**6))
def test_candidates_are_the_best_of_a_sorted_list(q: int, n: int, top: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, matches = rng.integers(0, 4, (q, n)).astype(float), rng.random((q, n)) < 0.5
    order = best_first(scores, top, matches)
    best = np.take_along_axis(scores, order, axis=1), np.take_along_axis(matches, order, axis=1)
    expected = []
    for row in range(q):  # ties never help: among equal scores what does not match comes first
        ranked = sorted(range(n), key=lambda k: (-scores[row, k], bool(matches[row, k])))
        expected += [(scores[row, k], bool(matches[row, k])) for k in ranked[:top]]
    assert list(zip(best[0].ravel().tolist(), best[1].ravel().tolist(), strict=True)) == expected


def test_wrong_numbers_are_named() -> None:
    with pytest.raises(InputError, match=r"from 0\.5 to 1\.5"):
        ece([0.5, 1.5], [0, 1])
    with pytest.raises(InputError, match="no skill"):
        brier_skill([0.5, 0.4], [1, 1])
    with pytest.raises(InputError, match=r"precision is 1\.5"):
        coverage_at_precision([0.1, 0.2], [0, 1], 1.5)
    with pytest.raises(InputError, match="top is 0"):
        best_first(np.array([[1.0]]), 0)
    with pytest.raises(InputError, match="bins is 0"):
        ece([0.5], [1], bins=0)
