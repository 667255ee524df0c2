"""Hubs in a search: the order is corrected, scores and probabilities are not, and a note says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halation import Gaussian, InputError
from halation.calibration import Calibrators, fit_calibrator
from halation.encoders import load
from halation.search import Search, embed, make_index, open_search
from halation.search._verdict import judge_hits
from halation.similarity import l2
from judged_worlds import points
from runs import halation as cli

QUERIES = ("a red dog on the grass", "two cats", "a blue bus on the street", "the green bird", "a horse by the sea")


@pytest.fixture(scope="module")
def embedded(run: Path, flickr: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hubs")
    embed(run, flickr, folder / "emb", split="test")
    embed(run, flickr, folder / "queries", split="train")
    embed(run, flickr, folder / "pictures", split="test", side="images")
    return folder


@pytest.fixture(scope="module")
def corrected(embedded: Path) -> Search:
    make_index(embedded / "emb", embedded / "idx", hubness="csls", queries=embedded / "queries")
    return open_search(embedded / "idx")


def by_hand(run: Path, flickr: Path, query: str) -> dict[str, tuple[float, float]]:
    """Score, and the score less half the mean of the ten best of the training captions, by image."""
    model = load(run)
    pictures, asking = model.open_dataset(flickr, "test"), model.open_dataset(flickr, "train")
    images, bank = model.encode_dataset(pictures)[0], model.encode_dataset(asking)[1]
    question = model.network.captions(model.network.text.backbone.tokenize([query]))  # type: ignore[union-attr, operator]
    assert isinstance(images, Gaussian) and isinstance(bank, Gaussian) and isinstance(question, Gaussian)
    hub = np.sort(l2(bank, images).numpy(), axis=0)[-10:].mean(axis=0) / 2
    scores = l2(question, images).detach().numpy()[0]
    return {str(name): (scores[k], scores[k] - hub[k]) for k, name in enumerate(pictures.truth.image_ids)}


@pytest.mark.parametrize("query", QUERIES)
def test_the_order_is_corrected_and_the_scores_are_the_models_own(
    corrected: Search, run: Path, flickr: Path, query: str
) -> None:
    wanted = by_hand(run, flickr, query)
    answer = corrected.text(query, k=4)
    assert [hit.id for hit in answer.hits] == sorted(wanted, key=lambda name: -wanted[name][1])
    assert [hit.score for hit in answer.hits] == pytest.approx([wanted[hit.id][0] for hit in answer.hits], abs=1e-4)
    falls = all(a.score >= b.score for a, b in zip(answer.hits, answer.hits[1:], strict=False))
    assert any("the order is corrected for hubs, the scores are not" in note for note in answer.notes) != falls


def test_some_order_is_another_than_without(corrected: Search, embedded: Path) -> None:
    plain = open_search(make_index(embedded / "emb", embedded / "plain"))
    assert plain.about["sides"]["images"]["hubness"] is None
    assert corrected.about["sides"]["images"]["hubness"] == "csls" == corrected.indexes["images"].hubness
    answers = [[[hit.id for hit in one.text(query).hits] for query in QUERIES] for one in (plain, corrected)]
    assert answers[0] != answers[1]
    # between pictures nothing was measured: they stay in the order of their scores
    for name in plain.items[:4]:
        alike = [[hit.id for hit in one.like(name, want="images").hits] for one in (plain, corrected)]
        assert alike[0] == alike[1] and alike[0][0] == name


def test_what_was_fitted_on_scores_judges_them_as_they_are(corrected: Search) -> None:
    fitted = fit_calibrator(points(np.random.default_rng(0), images=40)).calibrator
    trusted = replace(corrected, calibrators=Calibrators(fitted, fitted, "mark"))
    answer = trusted.text(QUERIES[0], k=4)
    scores = [hit.score for hit in answer.hits]
    assert [hit.probability for hit in answer.hits] == pytest.approx(fitted.probability(scores, 4).tolist())
    assert answer.verdict == fitted.verdict(sorted(scores, reverse=True), 4, answer.uncertainty)
    hub_notes = [note for note in answer.notes if "the order is corrected for hubs: probabilities" in note]
    assert answer.within is None and len(hub_notes) == (answer.verdict != "nothing")


def test_an_order_that_does_not_fall_is_judged_by_the_best_wherever_it_stands() -> None:
    calibrator = fit_calibrator(points(np.random.default_rng(0), images=40)).calibrator
    scores = np.linspace(-20.0, -60.0, 30)
    turned = [*scores[3:], *scores[:3]]
    fell = judge_hits(calibrator, scores.tolist(), 40, 0.3, 10)
    stood = judge_hits(calibrator, turned, 40, 0.3, 10, reordered=True)
    assert stood.verdict == fell.verdict and stood.within is None
    assert stood.probabilities[:21] == pytest.approx(fell.probabilities[3:24], abs=1e-12)


def test_the_command_corrects_hubs_and_names_mistakes(embedded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def halation(*arguments: Any) -> str:
        cli(*arguments)
        return capsys.readouterr().err

    out = embedded / "by_command"
    assert not halation("index", embedded / "emb", "-o", out, "--hubness", "dual-softmax")
    assert json.loads((out / "search.json").read_text())["sides"]["captions"]["hubness"] == "dual_softmax"
    alone = halation("index", embedded / "pictures", "-o", embedded / "none", "--hubness", "csls")
    assert "hubness is measured on captions;" in alone and "--queries" in alone
    assert not halation(
        "index", embedded / "pictures", "-o", out, "--hubness", "csls", "--queries", embedded / "queries"
    )
    assert "did you mean 'csls'?" in halation("index", embedded / "emb", "-o", out, "--hubness", "clss")


def test_queries_of_another_model_are_refused(embedded: Path, other_run: Path, flickr: Path) -> None:
    embed(other_run, flickr, embedded / "others", split="train", side="captions")
    with pytest.raises(InputError, match="was made by another model than"):
        make_index(embedded / "emb", embedded / "none", hubness="csls", queries=embedded / "others")
    assert not (embedded / "none").exists()
