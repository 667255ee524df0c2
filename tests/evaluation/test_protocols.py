"""The field's protocols on real COCO ids, against the eccv-caption package for the same rankings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halation
from halation._errors import InputError
from halation.data import Truth, open_dataset, read_eccv
from halation.evaluation import PROTOCOLS, evaluate


@pytest.fixture(scope="module")
def coco(shared_data: Path) -> Truth:
    return open_dataset(shared_data / "coco_eval").truth


@pytest.fixture(scope="module")
def scores(coco: Truth) -> np.ndarray:
    """Seeded whole-number scores without ties in any row or column, so that a ranking is one whoever sorts it.

    A shuffled table read at (x_image + y_caption) mod a prime never repeats within a row or a column; a third of the
    images' own captions are lifted to the top.
    """
    generator = np.random.default_rng(7)
    prime = 30_011
    table = generator.permutation(prime).astype(np.uint16)
    x = generator.choice(prime, coco.n_images, replace=False)
    y = generator.choice(prime, coco.n_captions, replace=False)
    matrix = table[(x[:, None] + y[None, :]) % prime]
    assert coco.image_of is not None
    lifted = np.flatnonzero(generator.random(coco.n_captions) < 0.3)
    matrix[coco.image_of[lifted], lifted] = 40_000 + lifted % 5000
    return matrix


class Ranked(dict[int, Any]):
    """Whole rankings by id, best first; a ranking exists only while it is looked at (all of them would take 9 GB)."""

    def __init__(self, queries: np.ndarray, items: np.ndarray, scores: np.ndarray) -> None:
        super().__init__((int(name), None) for name in queries)
        self.place = {int(name): row for row, name in enumerate(queries)}
        self.items_by_index = items
        self.order = np.stack([np.argsort(np.uint16(65_535) - row, kind="stable").astype(np.uint16) for row in scores])

    def __getitem__(self, query: int) -> Any:
        return self.items_by_index[self.order[self.place[query]]]


class Lists(Ranked):
    """The same as Python lists, which are faster to walk."""

    def __getitem__(self, query: int) -> Any:
        return super().__getitem__(query).tolist()


@pytest.fixture(scope="module")
def package(coco: Truth, scores: np.ndarray) -> dict[str, Any]:
    """What eccv-caption says of the whole rankings."""
    metrics = pytest.importorskip("eccv_caption").Metrics()
    images, captions = np.array(coco.image_ids), np.array(coco.caption_ids)
    ranked = [Ranked(images, captions, scores), Ranked(captions, images, scores.T)]
    wanted = ("eccv_r1", "eccv_map_at_r", "eccv_rprecision", "coco_5k_recalls", "cxc_recalls")
    measured = metrics.compute_all_metrics(*ranked, target_metrics=wanted, Ks=(1, 5, 10))
    for each in ranked:
        each.__class__ = Lists
    lists = dict(zip(("i2t", "t2i"), ranked, strict=True))
    return measured | {f"coco_1k_r{k}": metrics.coco_1k_recalls(lists, "all", K=k) for k in (1, 5, 10)}


def check(report: halation.Report, expected: dict[str, Any], names: dict[str, str]) -> None:
    for ours, theirs in names.items():
        for direction in ("i2t", "t2i"):
            assert report.results(direction)[ours] == pytest.approx(100 * expected[theirs][direction], abs=1e-6), (
                ours,
                direction,
            )


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
    assert any("not queries" in note for note in report.notes())


def test_eccv_equals_eccv_caption(scores: np.ndarray, coco: Truth, package: dict[str, Any]) -> None:
    report = evaluate(scores, coco, protocol="eccv", resamples=0)
    check(report, package, {"R@1": "eccv_r1", "R-P": "eccv_rprecision", "mAP@R": "eccv_map_at_r"})
    assert (len(report.queries["i2t"]), len(report.queries["t2i"])) == (1261, 1332)


def test_extended_positives_may_come_from_files_of_ones_own(scores: np.ndarray, coco: Truth, shared_data: Path) -> None:
    from_disk = read_eccv(coco, shared_data / "coco_eval")
    from_files, from_package = (evaluate(scores, truth, protocol="eccv", resamples=0) for truth in (from_disk, coco))
    assert dict(from_files.i2t) == dict(from_package.i2t)


def test_coco_protocols_refuse_another_size() -> None:
    truth = Truth.from_captions(["a dog", "a bus"], [0, 1])
    with pytest.raises(InputError, match="5,000 test images"):
        evaluate(np.eye(2), truth, protocol="coco-1k")


def test_cub_counts_the_same_class_as_relevant() -> None:
    truth = Truth.from_captions(["a wren", "a small wren", "a gull"], [0, 1, 2], classes=[["wren"], ["wren"], ["gull"]])
    scores = [[0.1, 0.9, 0.2], [0.9, 0.1, 0.2], [0.3, 0.2, 0.1]]
    report = evaluate(scores, truth, protocol="cub", resamples=0)
    assert report.i2t["R@1"] == pytest.approx(200 / 3)
    assert report.i2t["R-P"] == pytest.approx(100 * (1 / 2 + 1 / 2 + 0) / 3)
    by_label = Truth.from_classes(["wren", "wren", "gull"], image_of=[0, 1, 2])  # as read_cub makes it
    assert dict(evaluate(scores, by_label, protocol="cub", resamples=0).t2i) == dict(report.t2i)


def test_a_name_alone_makes_no_protocol() -> None:
    truth = Truth.from_captions(["a wren", "a gull"], [0, 1], name="cxc")
    with pytest.raises(InputError, match="COCO's ids"):
        evaluate(np.eye(2), truth, protocol="cxc")
    with pytest.raises(InputError, match="needs the class of every image"):
        evaluate(np.eye(2), truth, protocol="cub")


def test_cub_refuses_images_of_several_classes() -> None:
    truth = Truth.from_captions(["a wren", "a gull"], [0, 1], classes=[["wren", "gull"], ["gull"]])
    with pytest.raises(InputError, match="exactly one class per image"):
        evaluate(np.eye(2), truth, protocol="cub")


def test_an_unknown_protocol_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'coco-5k'"):
        evaluate(np.eye(2), Truth.from_captions(["a dog", "a bus"], [0, 1]), protocol="coco5k")


def test_every_protocol_says_what_it_measures() -> None:
    assert set(PROTOCOLS) == {"coco-5k", "coco-1k", "cxc", "eccv", "flickr", "cub"}
    assert all(protocol.description for protocol in PROTOCOLS.values())
