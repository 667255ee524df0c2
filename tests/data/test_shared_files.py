"""Every reader on the real files: counts that the data's authors publish."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from halation.data import (
    Truth,
    _coco,
    open_dataset,
    read_coco,
    read_cxc,
    read_eccv,
    read_flickr8k,
    read_flickr8k_judgements,
    read_flickr30k,
)
from halation.evaluation import write_qrels


@pytest.fixture(scope="module")
def coco(shared_data: Path) -> Truth:
    return open_dataset(shared_data / "coco_eval").truth


def as_lists(truth: Truth, direction: str) -> dict[int, set[int]]:
    """Query id → ids of its positives, for the queries."""
    queries, items = truth.image_ids, truth.caption_ids
    if direction == "t2i":
        queries, items = items, queries
    lists: dict[int, set[int]] = {int(queries[q]): set() for q in truth.queries(direction)}  # type: ignore[arg-type]
    for query, item in truth.pairs(direction):  # type: ignore[arg-type]
        lists[int(queries[query])].add(int(items[item]))
    return lists


def test_the_coco_test_split_has_5000_images_25000_captions_and_48_images_without_categories(coco: Truth) -> None:
    assert (coco.n_images, coco.n_captions) == (5000, 25000)
    assert set(coco.n_positives("i2t")) == {5}
    assert coco.annotated is not None
    assert int((~coco.annotated).sum()) == 48
    assert coco.class_names is not None
    assert len(coco.class_names) == 80


def test_the_coco_test_split_stands_in_the_usual_order(coco: Truth, shared_data: Path) -> None:
    assert np.array_equal(coco.caption_ids, np.load(shared_data / "coco_eval" / "coco_test_ids.npy"))


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_the_annotated_pairs_are_the_published_original_ones(coco: Truth, shared_data: Path, direction: str) -> None:
    name = {"i2t": "image_to_caption", "t2i": "caption_to_image"}[direction]
    published = json.loads((shared_data / "coco_eval" / f"original_{name}.json").read_text())
    assert as_lists(coco, direction) == {int(query): set(items) for query, items in published.items()}


def test_cxc_has_35585_positives_and_asks_24972_captions(coco: Truth) -> None:
    cxc = read_cxc(coco)
    assert cxc.n_positives("i2t").sum() == cxc.n_positives("t2i").sum() == 35585
    assert (len(cxc.queries("i2t")), len(cxc.queries("t2i"))) == (5000, 24972)
    assert np.array_equal(cxc.positives("i2t", [0, 1, 2]), cxc.positives("t2i").T[:3])
    assert cxc.lost("i2t").sum() == 0


def test_eccv_caption_asks_1261_images_and_1332_captions_and_two_positives_lie_outside(coco: Truth) -> None:
    eccv = read_eccv(coco)
    assert (len(eccv.queries("i2t")), len(eccv.queries("t2i"))) == (1261, 1332)
    assert (eccv.n_positives("i2t").sum(), eccv.n_positives("t2i").sum()) == (22548, 11279)
    assert {eccv.image_ids[k] for k in np.flatnonzero(eccv.lost("i2t"))} == {575916, 421999}
    assert eccv.lost("t2i").sum() == 0
    assert eccv.query_notes == ("i2t: 2 positives of the source are outside the gallery",)


def test_the_packages_files_and_the_folders_are_one_truth(coco: Truth, shared_data: Path) -> None:
    for reader in (read_cxc, read_eccv):
        assert reader(coco).fingerprint() == reader(coco, shared_data / "coco_eval").fingerprint()


def test_extended_positives_are_those_of_the_published_package(coco: Truth) -> None:
    package = pytest.importorskip("eccv_caption").Metrics()
    inside = {"i2t": set(coco.caption_ids), "t2i": set(coco.image_ids)}
    for truth, published in ((read_cxc(coco), package.cxc_gts), (read_eccv(coco), package.eccv_gts)):
        for direction in ("i2t", "t2i"):
            expected = {query: set(items) & inside[direction] for query, items in published[direction].items()}
            assert as_lists(truth, direction) == expected
            total = truth.n_positives(direction) + truth.lost(direction)
            assert sorted(total[truth.queries(direction)]) == sorted(
                len(items) for items in published[direction].values()
            )


def test_five_folds_of_the_test_split_share_no_caption(coco: Truth) -> None:
    folds = [coco.subset(range(start, start + 1000)) for start in range(0, 5000, 1000)]
    assert [fold.n_captions for fold in folds] == [5000] * 5
    assert sum((fold.caption_ids for fold in folds), ()) == coco.caption_ids


def test_an_official_coco_file_keeps_all_its_captions(shared_data: Path) -> None:
    path = shared_data / "coco_eval" / "captions_val2017.json"
    truth = open_dataset(path).truth
    assert (truth.n_images, truth.n_captions) == (5000, 25014)
    assert np.bincount(truth.n_positives("i2t")).tolist() == [0, 0, 0, 0, 0, 4987, 12, 1]
    document = json.loads(path.read_text())
    own = defaultdict(set)
    for row in document["annotations"]:
        own[row["image_id"]].add(row["id"])
    assert as_lists(truth, "i2t") == own


def test_categories_from_the_table_are_those_of_the_lines(coco: Truth, shared_data: Path) -> None:
    folder = shared_data / "coco_eval"
    images = [{"id": image} for image in coco.image_ids]
    assert coco.captions is not None
    assert coco.image_of is not None
    annotations = [
        {"id": caption, "image_id": coco.image_ids[image], "caption": text}
        for caption, image, text in zip(coco.caption_ids, coco.image_of, coco.captions, strict=True)
    ]
    document = ({"images": images, "annotations": annotations}, "test split")
    truth = _coco.coco_truth([document], np.load(folder / "coco_test_ids.npy"), [folder / "val2014_categories.tsv"])
    assert truth.fingerprint() == coco.fingerprint()
    assert truth.class_names is not None
    assert coco.class_names is not None
    assert truth.classes is not None
    order = [truth.class_names.index(name) for name in coco.class_names]
    assert np.array_equal(truth.classes[:, order], coco.classes)


def test_coco_mini_is_a_truth_with_cocos_ids(shared_data: Path) -> None:
    truth = open_dataset(shared_data / "coco_mini").truth
    assert (truth.n_images, truth.n_captions) == (239, 1195)
    assert truth.image_ids[0] == 790


def test_ids_that_the_file_lacks_are_refused(shared_data: Path) -> None:
    folder = shared_data / "coco_eval"
    with pytest.raises(ValueError, match=r"captions_val2017\.json: no caption has the id \d+, which the split lists"):
        read_coco(folder / "captions_val2017.json", ids=folder / "coco_test_ids.npy")


def test_flickr8k_has_8091_images_in_three_splits_and_91_unused(shared_data: Path) -> None:
    folder = shared_data / "flickr8k"
    splits = {name: read_flickr8k(folder, name) for name in ("train", "dev", "test", "all")}
    assert {name: truth.n_images for name, truth in splits.items()} == {
        "train": 6000,
        "dev": 1000,
        "test": 1000,
        "all": 8091,
    }
    assert all(set(truth.n_positives("i2t")) == {5} for truth in splits.values())
    used = set().union(*(splits[name].image_ids for name in ("train", "dev", "test")))
    assert len(used) == 8000
    assert used < set(splits["all"].image_ids)


def test_experts_judged_5822_pairs_of_which_158_are_an_images_own(shared_data: Path) -> None:
    judged = read_flickr8k_judgements(shared_data / "flickr8k", "expert")
    assert judged.scores.shape == (5822, 3)
    assert int(judged.own_caption.sum()) == 158
    assert int((~judged.own_caption).sum()) == 5664
    raw = np.loadtxt(shared_data / "flickr8k" / "ExpertAnnotations.txt", dtype=str, delimiter="\t", comments=None)
    assert np.array_equal(judged.scores, raw[:, 2:].astype(float))
    assert [judged.base.image_ids[k] for k in judged.pairs[:, 0]] == raw[:, 0].tolist()
    assert [judged.base.caption_ids[k] for k in judged.pairs[:, 1]] == raw[:, 1].tolist()


def test_the_crowd_judged_47288_pairs(shared_data: Path) -> None:
    judged = read_flickr8k_judgements(shared_data / "flickr8k", "crowdflower")
    assert judged.scores.shape == (47288, 1)
    raw = np.loadtxt(shared_data / "flickr8k" / "CrowdFlowerAnnotations.txt", dtype=str, delimiter="\t", comments=None)
    assert judged.gains == pytest.approx(raw[:, 2].astype(float), abs=1e-9)
    truth = judged.truth(own_captions=False)
    assert int(truth.n_positives("i2t").sum()) == int((raw[:, 2].astype(float) >= 0.5).sum())


@pytest.mark.parametrize(("split", "images"), [("test", 1000), ("val", 1014), ("train", 29000)])
def test_flickr30k_splits_have_karpathys_sizes(shared_data: Path, split: str, images: int) -> None:
    truth = read_flickr30k(shared_data / "flickr30k_captions", split)
    assert (truth.n_images, truth.n_captions) == (images, 5 * images)
    assert (
        truth.fingerprint() == open_dataset(shared_data / "flickr30k_captions" / f"{split}.jsonl").truth.fingerprint()
    )


def test_qrels_of_the_extended_truth_hold_every_positive(coco: Truth, tmp_path: Path) -> None:
    eccv = read_eccv(coco)
    write_qrels(eccv, tmp_path / "eccv.qrels", "t2i")
    rows = [line.split() for line in (tmp_path / "eccv.qrels").read_text().splitlines()]
    lists: dict[int, set[int]] = defaultdict(set)
    for query, _, item, grade in rows:
        assert grade == "1"
        lists[int(query)].add(int(item))
    assert lists == as_lists(eccv, "t2i")
