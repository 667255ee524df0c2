"""Comparing two reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation.data import Truth
from halation.evaluation import compare, evaluate
from worlds import sample_scores

World = tuple[np.ndarray, Truth]


def test_a_clearly_better_system_differs_in_every_metric(world: World) -> None:
    _, truth = world
    names = ["R@10", "MedR", "R-P", "ASP"]
    worse, better = (evaluate(sample_scores(truth, noise, 5), truth, names, resamples=0) for noise in (2.0, 0.3))
    result = compare(worse, better, resamples=500)
    for rows in (result.i2t, result.t2i):
        assert set(rows) == {"R@10", "MedR", "R-P", "ASP(tfidf)"}
        for name, row in rows.items():
            assert row.p < 0.01
            assert row.difference == pytest.approx(row.b - row.a)
            assert row.low <= row.difference <= row.high
            assert (row.low > 0) if name != "MedR" else (row.high < 0)


def test_a_system_does_not_differ_from_itself(world: World) -> None:
    report = evaluate(*world, ["R@1", "MedR", "ASP"], resamples=0)
    for row in compare(report, report, resamples=200).t2i.values():
        assert (row.difference, row.low, row.high, row.p) == (0, 0, 0, 1)


def test_swapping_the_systems_swaps_the_sign(world: World) -> None:
    _, truth = world
    a, b = (evaluate(sample_scores(truth, 0.5, seed), truth, ["R@5", "R-P"], resamples=0) for seed in (1, 2))
    forward, back = compare(a, b, resamples=300), compare(b, a, resamples=300)
    for name, row in forward.i2t.items():
        mirror = back.i2t[name]
        assert (row.difference, row.low, row.high) == pytest.approx((-mirror.difference, -mirror.high, -mirror.low))
        assert row.p == mirror.p


def test_the_result_prints_and_exports(world: World, tmp_path: Path) -> None:
    report = evaluate(*world, ["R@1"], resamples=0)
    result = compare(report, report, resamples=50)
    assert "image → text  R@1" in str(result)
    assert result.to_markdown().startswith("|")
    assert r"\bottomrule" in result.to_latex()
    assert json.loads(result.to_json(tmp_path / "c.json")) == json.loads((tmp_path / "c.json").read_text())


def test_reports_that_measured_different_things_are_refused(world: World) -> None:
    scores, truth = world
    report = evaluate(scores, truth, ["R@1", "ASP"], resamples=0)
    with pytest.raises(InputError, match="differ in folds"):
        compare(report, evaluate(scores, truth, ["R@1"], folds=2, resamples=0))
    other = truth.subset(np.arange(30))
    with pytest.raises(InputError, match="differ in fingerprint"):
        compare(report, evaluate(scores[:30, :150], other, ["R@1"], resamples=0))
    with pytest.raises(InputError, match="no metric in common"):
        compare(report, evaluate(scores, truth, ["R@2"], resamples=0))
    with pytest.raises(InputError, match=r"ASP\(tfidf\) was measured against different relevances"):
        compare(report, evaluate(scores, truth, ["ASP"], tokenizer="whitespace", resamples=0))
    with pytest.raises(InputError, match="resamples"):
        compare(report, report, resamples=0)


def test_reports_against_other_texts_classes_or_relevances_are_refused(world: World, rng: np.random.Generator) -> None:
    scores, truth = world
    report = evaluate(scores, truth, ["ASP"], resamples=0)
    texts = truth.replace(captions=tuple(reversed(truth.captions)))
    with pytest.raises(InputError, match="fingerprint"):
        compare(report, evaluate(scores, texts, ["ASP"], resamples=0))
    classes = truth.replace(classes=truth.classes[::-1], annotated=None)
    with pytest.raises(InputError, match="fingerprint"):
        compare(report, evaluate(scores, classes, ["PMRP"], resamples=0))
    mine = [evaluate(scores, truth, ["ASP(mine)"], relevance={"mine": sign * scores}, resamples=0) for sign in (1, -1)]
    with pytest.raises(InputError, match=r"ASP\(mine\) was measured against different relevances"):
        compare(*mine)


def test_seed_and_draws_are_checked(world: World) -> None:
    report = evaluate(*world, ["R@1"], resamples=0)
    with pytest.raises(InputError, match="seed"):
        compare(report, report, seed=-1)
