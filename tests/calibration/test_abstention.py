"""Is anything there at all? Trials against a loop, thresholds on fresh queries, galleries of other sizes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from halation import InputError
from halation.calibration import Abstention, AbstentionTrials, JudgedScores, auroc, choose_abstention, fit_abstention
from judged_worlds import lottery, points


def test_a_trial_takes_out_all_that_matches_or_comes_near(rng: np.random.Generator) -> None:
    judged = points(rng, images=15)
    truth = np.where(judged.matches, 1.0, np.where(rng.random(judged.scores.shape) < 0.3, 0.3, 0.1))
    truth[rng.random(truth.shape) < 0.5] *= 0.2  # 0.02 to 0.2: some do not even come near
    truth[judged.matches] = 1.0
    judged = JudgedScores(judged.scores, truth, judged.query_image, judged.item_image)
    trials = AbstentionTrials.of(judged, depth=4)
    rows = [row for row in range(len(judged)) if (truth[row] < 0.05).sum() >= 4]
    assert len(rows) > 0
    for number, row in enumerate(rows):
        scores, own = judged.scores[row].tolist(), judged.query_image[row]
        almost = [s for s, p in zip(scores, truth[row], strict=True) if p < 0.2]
        far = [s for s, p in zip(scores, truth[row], strict=True) if p < 0.05]
        for kind, expected in enumerate([scores, [*far, scores[own]], almost, far]):
            got = trials.scores[kind * len(rows) + number]
            np.testing.assert_array_equal(got, sorted(expected, reverse=True)[:4])
            assert trials.query[kind * len(rows) + number] == row
    assert trials.has_match.sum() == 2 * len(rows) == len(trials.has_match) / 2
    assert trials.single.sum() == len(rows)


def test_one_match_of_several_is_left_alone(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(40, 30))
    matches = rng.random((40, 30)) < 0.4
    matches[:, 0] = True
    judged = JudgedScores(scores, matches, np.arange(40), np.arange(30))
    found = AbstentionTrials.of(judged, depth=12)
    for position, row in zip(np.flatnonzero(found.single), found.query[found.single], strict=True):
        there = np.isin(scores[row], found.scores[position]) & matches[row]
        lowest = found.scores[position][-1]
        assert there.sum() <= 1  # none where the one that was left is not among the best
        assert (np.sort(scores[row][~matches[row]])[::-1][: 12 - there.sum()] >= lowest).all()


def test_a_single_perfect_answer_is_not_called_nothing(rng: np.random.Generator) -> None:
    """Queries with similar items everywhere when they have a match: counting what is near would fail single ones."""
    base = points(rng, images=200, captions=2, dim=3, noise=0.1)
    truth = np.where(base.matches, 1.0, np.where(base.scores > -2.0, 0.3, 0.0))
    judged = JudgedScores(base.scores, truth, base.query_image, base.item_image)
    chosen, _ = choose_abstention(judged)
    trials = AbstentionTrials.of(judged)
    alone = trials.single | ~trials.has_match
    evidence = chosen.evidence(trials.scores, trials.gallery, trials.uncertainty)
    assert auroc(evidence[alone], trials.has_match[alone]) > 0.97


def test_the_best_score_alone_ranks_queries_as_the_best_score_does(rng: np.random.Generator) -> None:
    judged = points(rng)
    fitted = fit_abstention(judged, depth=1)
    asked = AbstentionTrials.of(judged, 1)
    evidence = fitted.evidence(asked.scores, asked.gallery)
    assert auroc(evidence, asked.has_match) == pytest.approx(auroc(asked.scores[:, 0], asked.has_match))


def test_both_answers_keep_their_precision_on_fresh_queries(rng: np.random.Generator) -> None:
    fitted, _ = choose_abstention(lottery(rng, 3000, 100, gap=3.7), precision=0.9)
    trials = AbstentionTrials.of(lottery(rng, 3000, 100, gap=3.7))
    assert fitted.matches_from is not None and fitted.nothing_below is not None
    assert fitted.nothing_below < fitted.matches_from  # there is room for doubt
    verdicts = np.array(fitted.verdicts(fitted.evidence(trials.scores, trials.gallery)))
    assert trials.has_match[verdicts == "matches"].mean() == pytest.approx(0.9, abs=0.025)
    assert trials.has_match[verdicts == "nothing"].mean() == pytest.approx(0.1, abs=0.025)
    assert 0.2 < trials.has_match[verdicts == "unsure"].mean() < 0.8
    assert (verdicts[trials.has_match] == "matches").mean() == pytest.approx(fitted.answered, abs=0.04)
    assert (verdicts[~trials.has_match] == "nothing").mean() == pytest.approx(fitted.refused, abs=0.04)


def test_where_nothing_is_in_doubt_the_thresholds_meet(rng: np.random.Generator) -> None:
    fitted = fit_abstention(lottery(rng, 1000, 100, gap=12.0))
    assert fitted.matches_from == fitted.nothing_below
    trials = AbstentionTrials.of(lottery(rng, 500, 100, gap=12.0))
    assert "unsure" not in fitted.verdicts(fitted.evidence(trials.scores, trials.gallery))


def test_in_a_bigger_gallery_the_same_score_says_less(rng: np.random.Generator) -> None:
    fitted = fit_abstention(lottery(rng, 4000, 800, gap=5.0), depth=1)
    assert fitted.weights["size"] < 0
    assert fitted.matches_from is not None
    for gallery in (150, 3000):
        asked = AbstentionTrials.of(lottery(rng, 1500, gallery, gap=5.0), 1)
        answered = fitted.evidence(asked.scores, asked.gallery) >= fitted.matches_from
        assert asked.has_match[answered].mean() > 0.85, gallery
    blind = fitted.evidence(asked.scores, 800) >= fitted.matches_from  # as if the gallery had stayed small
    assert asked.has_match[blind].mean() < asked.has_match[answered].mean()


def test_uncertainty_is_used_where_it_tells(rng: np.random.Generator) -> None:
    judged = points(rng, images=250, spread=0.5)
    chosen, areas = choose_abstention(judged)
    assert areas["best, mean, last and σ"] > areas["best score"]
    assert "sigma" in fit_abstention(judged, "best, mean, last and σ").weights
    assert areas[chosen.statistic] >= max(areas.values()) - 0.005 * len(areas)
    without = JudgedScores(judged.scores, judged.matches, judged.query_image, judged.item_image)
    assert not any("σ" in name for name in choose_abstention(without)[1])


def test_scores_that_say_nothing_never_say_nothing_matches(rng: np.random.Generator) -> None:
    fitted = fit_abstention(lottery(rng, 1000, 50, gap=0.0))
    assert fitted.matches_from is None is fitted.nothing_below
    assert fitted.verdict(np.full(10, -100.0), 50) == "unsure" == fitted.verdict(np.full(10, 100.0), 50)


def test_what_the_evidence_needs_is_asked_for(rng: np.random.Generator) -> None:
    fitted = fit_abstention(points(rng, spread=0.5), "best, mean, last and σ")
    with pytest.raises(InputError, match="10 best scores of a query; you passed 3"):
        fitted.evidence([[3.0, 2.0, 1.0]], 100, [0.1])
    with pytest.raises(InputError, match="uncertainty"):
        fitted.evidence([np.arange(10.0)], 100)
    assert fitted.evidence([[3.0, 2.0, 1.0]], 3, [0.1]).shape == (1,)  # a gallery that has no more


def test_abstention_survives_json(rng: np.random.Generator) -> None:
    fitted = fit_abstention(points(rng))
    assert Abstention.from_json(json.loads(json.dumps(fitted.to_json()))) == fitted


def test_a_gallery_of_matches_alone_cannot_be_tried() -> None:
    own = np.arange(3)
    with pytest.raises(InputError, match="nothing left to search"):
        AbstentionTrials.of(JudgedScores(np.eye(3), np.ones((3, 3), dtype=np.bool_), own, own))
