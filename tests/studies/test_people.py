"""The study behind `people`: what ships is what it fits, and it holds on ratings it never saw."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from halation.calibration import auroc
from halation.data import open_dataset, read_cxc_ratings, read_flickr8k_judgements
from halation.semantics import Semantics
from studies import PeopleStudy
from studies.people import LEVELS, _by_words, _draw, _fit, _not_own

DOCS = Path(__file__).parents[2] / "docs" / "studies"
WEIGHTS = json.loads(files("halation.semantics").joinpath("people.json").read_text(encoding="utf-8"))


def test_the_page_and_the_package_have_the_same_weights() -> None:
    study = PeopleStudy.read(DOCS / "people.json")
    assert {row.level: row.weights for row in study.levels} == {
        name: level["weights"] for name, level in WEIGHTS["levels"].items()
    }
    assert study.to_markdown() == (DOCS / "people.md").read_text(encoding="utf-8")


def test_the_page_meets_its_bars() -> None:
    level = PeopleStudy.read(DOCS / "people.json").levels[0]
    assert level.level == "people"
    assert level.auc["5"] >= 0.91 and level.ece["5"] <= 0.01
    assert level.cxc_rank["5"] >= 0.71 and level.cxc_auc["5"] >= 0.85 and level.cxc_ece["5"] <= 0.05
    figures = [level.cxc_rank[n] for n in "12345"]
    assert figures == sorted(figures)  # more captions, better judgement


def test_the_map_by_words_is_what_the_judgements_give(shared_data: Path) -> None:
    """Fitted again from the judgements: the weights that ship. (By words, which needs no encoder.)"""
    judged = _not_own(read_flickr8k_judgements(shared_data / "flickr8k", "crowdflower"))
    level = LEVELS[3]
    assert level.name == "people-words"
    features = {}
    for n in range(1, 6):
        drawn = _draw(judged, n, 0)
        assert drawn.shape == (1000, n)
        features[str(n)] = _by_words(judged, drawn, ("cider",))
    few = {n: {name: values[:10] for name, values in each.items()} for n, each in features.items()}
    ten = replace(judged, pairs=judged.pairs[:10], scores=np.linspace(0, 5, 10)[:, None])  # stand in for CxC's ratings
    fitted = _fit(level, judged, features, ten, few)
    assert fitted.weights == pytest.approx(WEIGHTS["levels"]["people-words"]["weights"], abs=1e-4)


def test_people_rank_pairs_as_other_people_rate_them(shared_data: Path) -> None:
    """A sample of CxC's ratings, through the public function."""
    pytest.importorskip("transformers")
    folder = shared_data / "coco_eval"
    truth = open_dataset(folder).truth
    ratings = read_cxc_ratings(truth, folder / "cxc" / "sits_test.csv")
    assert len(ratings) == 44_833 and int((~ratings.own_caption).sum()) == 19_833
    assert truth.captions is not None and truth.image_of is not None
    some = np.flatnonzero(~ratings.own_caption)[:300]
    images, captions = ratings.pairs[some].T
    sets = [[truth.captions[k] for k in np.flatnonzero(truth.image_of == image)] for image in images]
    texts = [truth.captions[k] for k in captions]
    relevance = np.diag(Semantics.fit(texts, None, "people", references=sets).corpus().matrix())
    assert auroc(relevance, ratings.scores[some, 0] >= 3) > 0.8
