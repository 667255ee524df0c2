"""The field's protocols on real COCO ids, against the eccv-caption package for the same rankings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halation
from halation._errors import InputError
from halation.evaluation import PROTOCOLS, Rankings, evaluate
from halation.relevance import Truth, read


@pytest.fixture(scope="module")
def coco(shared_data: Path) -> Truth:
    return read(shared_data / "coco_eval")


@pytest.fixture(scope="module")
def scores(coco: Truth) -> np.ndarray:
    """Seeded scores that find some positives: random, lifted where the caption belongs to the image."""
    generator = np.random.default_rng(7)
    matrix = generator.standard_normal((coco.n_images, coco.n_captions), dtype=np.float32)
    assert coco.image_of is not None
    matrix[coco.image_of, np.arange(coco.n_captions)] += 3.5
    return matrix


class Ranked(dict[int, list[int]]):
    """Whole rankings by id, best first; a list exists only while it is looked at (all of them would take 9 GB)."""

    def __init__(self, queries: np.ndarray, items: np.ndarray, scores: np.ndarray) -> None:
        super().__init__((int(name), []) for name in queries)
        self.place = {int(name): row for row, name in enumerate(queries)}
        self.items_by_index = items
        self.order = np.stack([np.argsort(-row, kind="stable").astype(np.uint16) for row in scores])

    def __getitem__(self, query: int) -> list[int]:
        return self.items_by_index[self.order[self.place[query]]].tolist()


@pytest.fixture(scope="module")
def rankings(coco: Truth, scores: np.ndarray) -> dict[str, Ranked]:
    """Whole rankings as eccv-caption takes them, made with NumPy's own sort."""
    images, captions = np.array(coco.image_ids), np.array(coco.caption_ids)
    return {"i2t": Ranked(images, captions, scores), "t2i": Ranked(captions, images, scores.T)}


@pytest.fixture(scope="module")
def package(rankings: dict[str, Ranked]) -> dict[str, Any]:
    eccv_caption = pytest.importorskip("eccv_caption")
    wanted = ("eccv_r1", "eccv_map_at_r", "eccv_rprecision", "coco_1k_recalls", "coco_5k_recalls", "cxc_recalls")
    return eccv_caption.Metrics().compute_all_metrics(rankings["i2t"], rankings["t2i"], target_metrics=wanted, Ks=(1, 5, 10))


def check(report: halation.Report, expected: dict[str, Any], names: dict[str, str]) -> None:
    for ours, theirs in names.items():
        for direction in ("i2t", "t2i"):
            assert report.results(direction)[ours] == pytest.approx(100 * expected[theirs][direction], abs=1e-6), (ours, direction)


def test_coco_5k_equals_eccv_caption(scores: np.ndarray, coco: Truth, package: dict[str, Any]) -> None:
    report = evaluate(scores, coco, ["R@1", "R@5", "R@10"], protocol="coco-5k", resamples=0)
    check(report, package, {f"R@{k}": f"coco_5k_r{k}" for k in (1, 5, 10)})


def test_coco_1k_equals_eccv_caption(scores: np.ndarray, coco: Truth, package: dict[str, Any]) -> None:
    report = evaluate(scores, coco, ["R@1", "R@5", "R@10"], protocol="coco-1k", resamples=0)
    check(report, package, {f"R@{k}": f"coco_1k_r{k}" for k in (1, 5, 10)})
    assert report.about["folds"] == 5


def test_cxc_equals_eccv_caption(scores: np.ndarray, coco: Truth, package: dict[str, Any]) -> None:
    report = evaluate(scores, coco, protocol="cxc", resamples=0)
    check(report, package, {f"R@{k}": f"cxc_r{k}" for k in (1, 5, 10)})
    assert len(report.queries["t2i"]) == 24_972
    assert any("not asked" in note for note in report.notes())


def test_eccv_equals_eccv_caption(scores: np.ndarray, coco: Truth, package: dict[str, Any]) -> None:
    report = evaluate(scores, coco, protocol="eccv", resamples=0)
    check(report, package, {"R@1": "eccv_r1", "R-P": "eccv_rprecision", "mAP@R": "eccv_map_at_r"})
    assert (len(report.queries["i2t"]), len(report.queries["t2i"])) == (1261, 1332)


def test_whole_rankings_measure_as_the_scores_they_came_from(
    scores: np.ndarray, coco: Truth, rankings: dict[str, Ranked]
) -> None:
    from_lists = evaluate(Rankings.from_ids(rankings["i2t"], rankings["t2i"], coco), coco, protocol="eccv", resamples=0)
    from_scores = evaluate(scores, coco, protocol="eccv", resamples=0)
    for direction in ("i2t", "t2i"):
        assert dict(from_lists.results(direction)) == dict(from_scores.results(direction))


def test_coco_protocols_refuse_another_size() -> None:
    truth = Truth.from_captions(["a dog", "a bus"], [0, 1])
    with pytest.raises(InputError, match="5,000 test images"):
        evaluate(np.eye(2), truth, protocol="coco-1k")


def test_cub_counts_the_same_class_as_relevant() -> None:
    classes = np.array([[1, 0], [1, 0], [0, 1]], dtype=bool)
    truth = Truth.from_captions(["a wren", "a small wren", "a gull"], [0, 1, 2], classes=classes)
    report = evaluate([[0.1, 0.9, 0.2], [0.9, 0.1, 0.2], [0.3, 0.2, 0.1]], truth, protocol="cub", resamples=0)
    assert report.i2t["R@1"] == pytest.approx(200 / 3)
    assert report.i2t["R-P"] == pytest.approx(100 * (0.5 + 0.5 + 0) / 3, abs=40)


def test_an_unknown_protocol_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'coco-5k'"):
        evaluate(np.eye(2), Truth.from_captions(["a dog", "a bus"], [0, 1]), protocol="coco5k")


def test_every_protocol_says_what_it_measures() -> None:
    assert set(PROTOCOLS) == {"coco-5k", "coco-1k", "cxc", "eccv", "flickr", "cub"}
    assert all(protocol.what for protocol in PROTOCOLS.values())
