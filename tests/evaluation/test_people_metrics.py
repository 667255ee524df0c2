"""Metrics by people's judgement, against loops in plain Python; and a selection by them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import halation
from halation.data import Truth
from halation.evaluation import evaluate, people_metrics
from halation.semantics import MiniLM, Semantics


class Encoder:
    name = MiniLM.name

    def __call__(self, sentences: list[str]) -> np.ndarray:
        return np.array([np.random.default_rng(list(text.encode())).normal(size=5) for text in sentences])


@pytest.fixture
def relevance(monkeypatch: pytest.MonkeyPatch) -> tuple[Truth, np.ndarray]:
    """Twelve images with one to three captions, and their `people` relevance by a stand-in for MiniLM."""
    image_of = np.sort(np.concatenate([np.arange(12), np.random.default_rng(1).integers(0, 12, 14)]))
    captions = [f"caption {k}" for k in range(len(image_of))]
    monkeypatch.setattr("halation.semantics._semantics.sentence_encoder", lambda progress=None: Encoder())
    matrix = Semantics.fit(captions, image_of, "people", encoder=Encoder()).corpus().matrix()
    return Truth.from_captions(captions, image_of), matrix


def by_hand(scores: np.ndarray, probability: np.ndarray) -> dict[str, float]:
    """R-P, mAP@R and nDCG@10 of one query, in percent."""
    order = sorted(range(len(scores)), key=lambda item: -scores[item])
    total = int((probability >= 0.5).sum())
    hits = [bool(probability[item] >= 0.5) for item in order]
    precision = [sum(hits[: rank + 1]) / (rank + 1) if hits[rank] else 0.0 for rank in range(total)]
    ideal = sorted(probability.tolist(), reverse=True)
    discounted = [sum(g / math.log2(rank + 2) for rank, g in enumerate(gains[:10]))
                  for gains in ([float(probability[item]) for item in order], ideal)]  # fmt: skip
    return {
        "R-P(people)": 100 * sum(hits[:total]) / total,
        "mAP@R(people)": 100 * sum(precision) / total,
        "nDCG@10(people)": 100 * discounted[0] / discounted[1],
    }


def test_every_number_is_that_of_a_loop(relevance: tuple[Truth, np.ndarray]) -> None:
    truth, matrix = relevance
    scores = np.random.default_rng(2).normal(size=matrix.shape)
    report = evaluate(scores, truth, people_metrics(), resamples=0)
    for direction, rows, target in (("i2t", scores, matrix), ("t2i", scores.T, matrix.T)):
        loops = [by_hand(*pair) for pair in zip(rows, target, strict=True)]
        for name in ("R-P(people)", "mAP@R(people)", "nDCG@10(people)"):
            mean = np.mean([loop[name] for loop in loops])
            assert report.results(direction)[name] == pytest.approx(mean, rel=1e-5)


def test_the_relevance_itself_ranks_perfectly(relevance: tuple[Truth, np.ndarray]) -> None:
    truth, matrix = relevance
    report = evaluate(matrix, truth, people_metrics(), resamples=0)
    for name in ("R-P(people)", "mAP@R(people)", "nDCG@10(people)"):
        assert report.i2t[name] == pytest.approx(100) and report.t2i[name] == pytest.approx(100)


def test_own_captions_alone_are_enough_to_ask_every_query(relevance: tuple[Truth, np.ndarray]) -> None:
    truth, matrix = relevance
    report = evaluate(matrix, truth, ["R-P(people)"], folds=3, resamples=50)
    assert report.i2t["R-P(people)"] == pytest.approx(100)
    assert "people (a person says yes" in " ".join(report.about["notes"])


def test_only_probabilities_have_a_half(relevance: tuple[Truth, np.ndarray]) -> None:
    with pytest.raises(halation.InputError, match=r"probability for R-P.*cider"):
        evaluate(relevance[1], relevance[0], ["R-P(cider)"])
