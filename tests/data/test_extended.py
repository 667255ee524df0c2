"""CxC and ECCV Caption: extended positives, declared queries, positives outside the gallery."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from halation import InputError, MissingExtra
from halation.data import Truth, open_dataset, read_cxc, read_eccv


def base() -> Truth:
    captions = ["a dog", "a cat", "the cat", "a bus"]
    return Truth.from_captions(
        captions, [0, 1, 1, 2], image_ids=[100, 200, 300], caption_ids=[1, 2, 3, 4], classes=[["dog"], ["cat"], ["bus"]]
    )


def ground_truth(folder: Path, name: str, i2t: dict[str, list[int]], t2i: dict[str, list[int]]) -> Path:
    (folder / f"{name}_image_to_caption.json").write_text(json.dumps(i2t))
    (folder / f"{name}_caption_to_image.json").write_text(json.dumps(t2i))
    return folder


def test_extended_positives_replace_the_base_and_declare_their_queries(tmp_path: Path) -> None:
    source = ground_truth(tmp_path, "cxc", {"300": [4, 1], "100": [1]}, {"4": [300], "1": [100, 300], "2": [200]})
    truth = read_cxc(base(), source)
    assert truth.positives("i2t").tolist() == [[True, False, False, False], [False] * 4, [True, False, False, True]]
    assert truth.positives("t2i").tolist() == [
        [True, False, True], [False, True, False], [False] * 3, [False, False, True]
    ]  # fmt: skip
    assert truth.queries("i2t").tolist() == [0, 2]
    assert truth.queries("t2i").tolist() == [0, 1, 3]
    assert truth.name == "cxc"
    assert truth.notes == truth.query_notes == ()


def test_texts_and_classes_of_the_base_are_carried_along(tmp_path: Path) -> None:
    truth = read_eccv(base(), ground_truth(tmp_path, "eccv", {"100": [1]}, {"1": [100]}))
    assert truth.captions == base().captions
    assert truth.class_names == ("bus", "cat", "dog")
    assert truth.image_of is not None
    assert truth.image_of.tolist() == [0, 1, 1, 2]


def test_a_positive_outside_the_whole_gallery_is_noted_and_counts_as_lost(tmp_path: Path) -> None:
    truth = read_eccv(base(), ground_truth(tmp_path, "eccv", {"100": [1, 77, 78], "200": [2]}, {"1": [100]}))
    assert truth.n_positives("i2t").tolist() == [1, 1, 0]
    assert truth.lost("i2t").tolist() == [2, 0, 0]
    assert truth.query_notes == ("i2t: 2 positives of the source are outside the gallery",)


def test_in_a_part_of_the_gallery_absent_positives_are_not_lost_but_left_out(tmp_path: Path) -> None:
    source = ground_truth(tmp_path, "eccv", {"100": [1, 77], "900": [77]}, {"1": [100], "77": [900], "2": [900]})
    truth = read_eccv(base(), source)
    assert truth.lost("i2t").tolist() == [0, 0, 0]
    assert truth.queries("i2t").tolist() == [0]
    assert truth.queries("t2i").tolist() == [0]  # caption 2 is in the gallery, its only answer is not
    assert truth.query_notes == (
        "i2t: 1 queries of the source are not in the gallery",
        "i2t: 1 positives of the source are outside the gallery",
        "t2i: 1 queries of the source are not in the gallery",
        "t2i: 1 positives of the source are outside the gallery",
    )


def test_a_truth_without_cocos_ids_is_refused(tmp_path: Path) -> None:
    source = ground_truth(tmp_path, "cxc", {"100": [1]}, {"1": [100]})
    named = Truth.from_captions(["a dog"], [0], image_ids=["dog.jpg"])
    with pytest.raises(InputError, match=r"no query of cxc has an answer .*'dog.jpg'.*COCO's ids"):
        read_cxc(named, source)


@pytest.mark.parametrize("content", ["[1, 2]", '{"100": 1}', "{}"])
def test_a_file_that_is_no_ground_truth_is_refused(tmp_path: Path, content: str) -> None:
    source = ground_truth(tmp_path, "cxc", {"100": [1]}, {"1": [100]})
    (source / "cxc_caption_to_image.json").write_text(content)
    with pytest.raises(InputError, match=r"cxc_caption_to_image\.json is not a ground truth"):
        read_cxc(base(), source)


def test_a_half_written_or_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cxc_image_to_caption\.json does not exist"):
        read_cxc(base(), tmp_path)
    ground_truth(tmp_path, "cxc", {"100": [1]}, {"1": [100]})
    (tmp_path / "cxc_image_to_caption.json").write_text('{"100": [1')
    with pytest.raises(InputError, match=r"cxc_image_to_caption\.json line 1 column 11: not valid JSON"):
        read_cxc(base(), tmp_path)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"halation\[coco\]"):
        read_eccv(base())


def test_the_packages_files_are_read_without_running_its_code() -> None:
    if importlib.util.find_spec("eccv_caption") is None:
        pytest.skip("needs the extra coco")
    before = set(sys.modules)
    coco = Truth.from_captions(["a", "b"], [0, 1], image_ids=[373119, 42201], caption_ids=[560256, 79200])
    truth = read_eccv(coco)
    assert truth.positives("i2t").tolist() == [[True, False], [False, True]]
    assert not {name for name in set(sys.modules) - before if name.startswith("eccv_caption")}


def test_an_extended_truth_says_of_which_kind_it_is(tmp_path: Path) -> None:
    for name, reader in (("cxc", read_cxc), ("eccv", read_eccv)):
        truth = reader(base(), ground_truth(tmp_path, name, {"100": [1]}, {"1": [100]}))
        assert truth.kind == truth.replace(name="mine").kind == truth.subset([0]).kind == name


def test_reading_again_repeats_no_note_and_keeps_none_of_the_other_source(tmp_path: Path) -> None:
    source = ground_truth(tmp_path, "cxc", {"100": [1, 77], "900": [77]}, {"1": [100], "4": [300]})
    ground_truth(tmp_path, "eccv", {"100": [1, 77, 78]}, {"1": [100]})
    first = read_cxc(base().replace(notes=("photographs of pets",)), source)
    assert first.notes == ("photographs of pets",)
    assert first.query_notes == (
        "i2t: 1 queries of the source are not in the gallery",
        "i2t: 1 positives of the source are outside the gallery",
    )
    for again in (read_cxc(first, source), read_cxc(read_cxc(first, source), source)):
        assert (again.notes, again.query_notes) == (first.notes, first.query_notes)
    answerable = first.replace(image_queries=[0, 1]).answerable()
    assert answerable.query_notes[-1] == "1 i2t queries without a positive are left out"
    other = read_eccv(answerable, source)
    assert other.notes == ("photographs of pets",)
    assert other.query_notes == ("i2t: 2 positives of the source are outside the gallery",)


@pytest.mark.parametrize("item", [None, 1.5, True, [1], {"id": 1}])
def test_an_item_that_is_not_an_id_is_named_with_its_query(tmp_path: Path, item: object) -> None:
    source = ground_truth(tmp_path, "cxc", {"100": [1, item]}, {"1": [100]})  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"cxc_image_to_caption\.json query '100': .* is not an id"):
        read_cxc(base(), source)


def test_file_names_in_place_of_cocos_ids_get_the_remedy(tmp_path: Path) -> None:
    """A JSONL whose lines name the picture alone; with "image_id" and "caption_ids" beside it, the same file works."""
    source = ground_truth(tmp_path, "cxc", {"300": [4, 1]}, {"4": [300], "1": [300]})
    file = tmp_path / "captions.jsonl"
    file.write_text(json.dumps({"image": "000300.jpg", "captions": ["a dog", "a cat"]}))
    with pytest.raises(InputError, match=r"such as '000300\.jpg'") as refused:
        read_cxc(open_dataset(file).truth, source)
    remedy = refused.value.remedy
    assert remedy is not None and '"image_id" beside "image"' in remedy and '"caption_ids" beside "captions"' in remedy
    row = {"image": "000300.jpg", "image_id": 300, "captions": ["a dog", "a cat"], "caption_ids": [4, 1]}
    file.write_text(json.dumps(row))
    (tmp_path / "images").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "images" / "000300.jpg")
    data = open_dataset(file)
    assert data.photos is not None and data.photos.paths[0].name == "000300.jpg"
    assert read_cxc(data.truth, source).n_positives("i2t").tolist() == [2]
