"""Counting recovered correspondences, against loops over every pair."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from halation import InputError, caption_relevance
from halation.data import Truth
from layouts import write_judged_coco
from studies import positives
from studies.positives import ZETAS, Curve


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as COCO's: captions with categories, and made-up extended positives."""
    return write_judged_coco(tmp_path_factory.mktemp("coco"))


def extended(folder: Path) -> list[tuple[int, int]]:
    i2t = json.loads((folder / "cxc_image_to_caption.json").read_text())
    return [
        (int(image), caption) for image, captions in i2t.items() for caption in captions if caption // 5 != int(image)
    ]


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "karpathy_test5k.jsonl").read_text().splitlines()]


def test_every_point_of_a_curve_is_a_count_over_all_pairs(folder: Path) -> None:
    study = positives(folder, relevances=["tfidf", "rouge-l"])
    found = extended(folder)
    captions = [caption for row in rows(folder) for caption in row["captions"]]
    assert study.correspondences == len(found)
    assert study.pairs == 40 * 200
    for curve in study.semantics:
        relevance = caption_relevance(captions, np.repeat(np.arange(40), 5), metric=curve.name)
        scores = sorted((relevance[pair] for pair in found), reverse=True)
        assert curve.recovered[-1] == len(found)
        for called, recovered in zip(curve.called, curve.recovered, strict=True):
            weakest = np.array(scores[recovered - 1], dtype=np.float32)  # that this threshold lets in
            threshold = (weakest.view(np.uint32) >> 12 << 12).view(np.float32)  # thresholds have 20 bits
            assert called == (relevance >= threshold).sum()
            assert recovered == sum(score >= threshold for score in scores)


def test_class_vectors_are_counted_over_annotated_images(folder: Path) -> None:
    study = positives(folder, relevances=["tfidf"])
    classes = [set(row["categories"]) for row in rows(folder)]
    for zeta, called, recovered in zip(ZETAS, study.classes.called, study.classes.recovered, strict=True):
        near = {
            (a, b)
            for a in range(40)
            for b in range(40)
            if classes[a] and classes[b] and len(classes[a] ^ classes[b]) <= zeta
        }
        assert called == 5 * len(near)
        assert recovered == sum((image, caption // 5) in near for image, caption in extended(folder))


def test_the_share_of_low_scoring_annotated_captions(folder: Path) -> None:
    study = positives(folder, relevances=["tfidf"])
    captions = [caption for row in rows(folder) for caption in row["captions"]]
    relevance = caption_relevance(captions, np.repeat(np.arange(40), 5))
    assert study.low_share == np.mean([relevance[k // 5, k] < 0.3 for k in range(200)])


def test_a_price_is_the_fewest_pairs_that_recover_enough() -> None:
    curve = Curve("x", [10, 20, 90], [1, 3, 5])
    assert [curve.price(n) for n in (1, 2, 3, 4, 5, 6)] == [10, 20, 20, 90, 90, None]


def test_table_numbers_and_plot_are_written(folder: Path, tmp_path: Path) -> None:
    paths = positives(folder, relevances=["tfidf"]).write(tmp_path / "out")
    assert [path.name for path in paths] == ["positives.md", "positives.json", "positives.png"]
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert "tfidf" in paths[0].read_text()
    assert json.loads(paths[1].read_text())["correspondences"] == len(extended(folder))
    assert "photographed" not in paths[0].read_text() + paths[1].read_text()  # numbers only, no caption


def test_a_truth_without_classes_is_refused() -> None:
    with pytest.raises(InputError, match="classes"):
        positives(Truth.from_captions(["a dog", "a bus"], [0, 1]))


def test_the_papers_counts_are_reproduced_on_the_real_annotations(shared_data: Path) -> None:
    study = positives(shared_data / "coco_eval", relevances=["tfidf"])
    assert study.pairs == 125_000_000
    assert study.classes.called[2] == pytest.approx(11.8e6, rel=0.005)
    assert study.classes.recovered[2] == pytest.approx(7039, rel=0.01)
    price = study.semantics[0].price(7039)
    assert price is not None
    assert price == pytest.approx(1.5e6, rel=0.05)
    assert study.low_share == pytest.approx(0.15, abs=0.005)
