"""Readers of JSON: plain lines, Karpathy's splits, COCO's annotations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halation import InputError
from halation.data import Truth, read_coco, read_flickr30k, read_jsonl, read_karpathy


def lines(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def document(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_lines_of_images_and_captions_are_a_truth(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "pets.jsonl",
        {"image": "dog.jpg", "captions": ["a dog", "ein Hund läuft\u2028"], "classes": ["dog"]},
        "",
        {"image": "cat.jpg", "captions": ["a cat"]},
    )
    truth = read_jsonl(path)
    assert truth.name == "pets"
    assert truth.image_ids == ("dog.jpg", "cat.jpg")
    assert truth.caption_ids == ("dog.jpg#0", "dog.jpg#1", "cat.jpg#0")
    assert truth.captions == ("a dog", "ein Hund läuft\u2028", "a cat")
    assert truth.image_of is not None
    assert truth.image_of.tolist() == [0, 0, 1]
    assert truth.annotated is not None
    assert truth.annotated.tolist() == [True, False]


def test_lines_may_use_cocos_words(tmp_path: Path) -> None:
    row = {
        "image_id": 42,
        "file": "42.jpg",
        "caption_ids": [7, 9],
        "captions": ["a", "b"],
        "categories": ["bus", "car"],
    }
    truth = read_jsonl(lines(tmp_path / "coco.jsonl", row))
    assert truth.image_ids == (42,)
    assert truth.caption_ids == (7, 9)
    assert truth.class_names == ("bus", "car")
    assert read_jsonl(lines(tmp_path / "plain.jsonl", {"image": "a", "captions": ["x"]})).classes is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"image": "b.jpg", "captions": []},
            "line 2: \"captions\" of 'b.jpg' is empty; every image needs at least one",
        ),
        ({"image": "b.jpg"}, 'line 2: no "captions"'),
        ({"captions": ["x"]}, 'line 2: no "image"'),
        ({"image": "b.jpg", "captions": "x"}, 'line 2: "captions" is a str; it must be a list'),
        ({"image": "b.jpg", "captions": ["x", 3]}, "line 2: a caption of 'b.jpg' is a int"),
        ({"image": "a.jpg", "captions": ["x"]}, r"line 2: the image id 'a.jpg' was used already \(.* line 1\)"),
        ({"image": "b", "captions": ["x"], "caption_ids": [1, 2]}, "line 2: 2 caption ids for the 1 captions"),
        (
            {"image": "b", "captions": ["x"], "caption_ids": ["a.jpg#0"]},
            r"line 2: the caption id .* used already .* line 1",
        ),
        ({"image": "b", "captions": ["x", "y"], "caption_ids": [1, 1]}, "line 2: the caption id 1 was used already"),
        ({"image": ["b"], "captions": ["x"]}, r"line 2: \['b'\] is not a valid image id"),
        ({"image": "b.jpg", "captions": ["x"], "classes": "dog"}, 'line 2: "classes" is a str'),
        ({"image": "b.jpg", "captions": ["x"], "classes": [None]}, "line 2: None is not a class"),
        ('{"image": "b.jpg", "captions": ["x"', "line 2 column 36: not valid JSON"),
        ("[1, 2]", "line 2: expected an object"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, row: object, message: str) -> None:
    path = lines(tmp_path / "captions.jsonl", {"image": "a.jpg", "captions": ["first"]}, row)
    with pytest.raises(InputError, match=message):
        read_jsonl(path)


def test_an_empty_file_and_a_wrong_encoding_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl holds no image"):
        read_jsonl(lines(tmp_path / "none.jsonl", ""))
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes('{"image": "a", "captions": ["x"]}\n{"image": "caf\xe9", "captions": ["x"]}'.encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.jsonl line 2: not UTF-8"):
        read_jsonl(latin)
    with pytest.raises(InputError, match="does not exist"):
        read_jsonl(tmp_path / "absent.jsonl")


def karpathy(path: Path, *, coco: bool = False) -> Path:
    images: list[dict[str, Any]] = []
    for number, split in enumerate(["train", "test", "restval", "test", "val"]):
        sentences = [
            {"raw": f"picture {number} text {k}", "sentid": 100 + 10 * number + k} for k in range(5 + number % 3)
        ]
        image = {"filename": f"{number}.jpg", "split": split, "sentences": sentences}
        image["sentids"] = [sentence["sentid"] for sentence in sentences]
        images.append(image | ({"cocoid": 1000 + number} if coco else {}))
    return document(path, {"images": images, "dataset": "coco" if coco else "flickr30k"})


def test_a_karpathy_split_is_its_images_in_file_order(tmp_path: Path) -> None:
    truth = read_karpathy(karpathy(tmp_path / "dataset_flickr30k.json"), "test")
    assert truth.image_ids == ("1.jpg", "3.jpg")
    assert truth.name == "flickr30k-test"
    assert truth.n_positives("i2t").tolist() == [6, 5]
    assert truth.captions is not None
    assert truth.captions[:2] == ("picture 1 text 0", "picture 1 text 1")
    assert truth.caption_ids[:2] == (110, 111)


def test_karpathy_splits_join_coco_ids_win_and_captions_are_cut_to_five(tmp_path: Path) -> None:
    path = karpathy(tmp_path / "dataset_coco.json", coco=True)
    assert read_karpathy(path, "train+restval").image_ids == (1000, 1002)
    assert read_karpathy(path, "train").image_ids == (1000,)
    assert read_karpathy(path, "test", captions_per_image=5).n_positives("i2t").tolist() == [5, 5]


def test_karpathy_files_name_what_is_wrong(tmp_path: Path) -> None:
    path = karpathy(tmp_path / "dataset.json")
    with pytest.raises(InputError, match="has no split 'tset'; it has restval, test, train, val"):
        read_karpathy(path, "tset")
    with pytest.raises(InputError, match="captions_per_image is 0"):
        read_karpathy(path, "test", captions_per_image=0)
    content = json.loads(path.read_text())
    content["images"][3]["sentences"] = []
    with pytest.raises(InputError, match=r"images\[3\]: \"captions\" of '3.jpg' is empty"):
        read_karpathy(document(path, content), "test")
    content["images"][3]["sentences"] = [{"tokens": ["a"]}]
    with pytest.raises(InputError, match=r'images\[3\]: a sentence without "raw"'):
        read_karpathy(document(path, content), "test")
    del content["images"][3]["filename"]
    with pytest.raises(InputError, match=r'images\[3\]: neither "cocoid" nor "filename"'):
        read_karpathy(document(path, content), "test")
    with pytest.raises(InputError, match='no list of objects "images"'):
        read_karpathy(document(path, [1]), "test")
    path.write_text(json.dumps(content)[:-30])
    with pytest.raises(InputError, match=r"dataset\.json line 1 column \d+: not valid JSON"):
        read_karpathy(path, "test")


def test_flickr30k_comes_as_karpathy_json_as_lines_or_as_a_folder(tmp_path: Path) -> None:
    by_json = read_flickr30k(karpathy(tmp_path / "dataset_flickr30k.json"), "val")
    assert by_json.image_ids == ("4.jpg",)
    assert read_flickr30k(tmp_path, "val").fingerprint() == by_json.fingerprint()
    folder = tmp_path / "lines"
    folder.mkdir()
    path = lines(folder / "test.jsonl", {"image": "a.jpg", "captions": ["x"]})
    assert read_flickr30k(folder).image_ids == read_flickr30k(path).image_ids == ("a.jpg",)
    with pytest.raises(InputError, match="is the split 'test', not 'train'"):
        read_flickr30k(path, "train")
    with pytest.raises(InputError, match=r"holds neither dataset_flickr30k.json nor val.jsonl"):
        read_flickr30k(folder, "val")


def coco(path: Path, first: int = 0) -> Path:
    """Three images whose captions stand mixed up, as in the official files: 2, 1 and 3 of them."""
    owner = [2, 0, 2, 1, 0, 2]
    return document(
        path,
        {
            "images": [{"id": first + 10 * k, "file_name": f"{k}.jpg"} for k in range(3)],
            "annotations": [
                {"id": first + 500 + k, "image_id": first + 10 * image, "caption": f"text {first + k}"}
                for k, image in enumerate(owner)
            ],
        },
    )


def instances(path: Path) -> Path:
    categories = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}, {"id": 90, "name": "toothbrush"}]
    instances = [(0, 18), (0, 1), (0, 18), (20, 90), (7777, 1)]
    annotations = [{"image_id": image, "category_id": category} for image, category in instances]
    return document(path, {"categories": categories, "annotations": annotations})


def test_coco_captions_are_gathered_by_image_in_file_order(tmp_path: Path) -> None:
    truth = read_coco(coco(tmp_path / "captions.json"))
    assert truth.image_ids == (0, 10, 20)
    assert truth.caption_ids == (501, 504, 503, 500, 502, 505)
    assert truth.captions == ("text 1", "text 4", "text 3", "text 0", "text 2", "text 5")
    assert truth.n_positives("i2t").tolist() == [2, 1, 3]


def test_coco_instances_give_classes_from_json_and_from_lines(tmp_path: Path) -> None:
    truth = read_coco(coco(tmp_path / "captions.json"), instances=instances(tmp_path / "instances.json"))
    assert truth.class_names == ("person", "dog", "toothbrush")
    assert truth.classes is not None
    assert truth.classes.tolist() == [[True, True, False], [False, False, False], [False, False, True]]
    assert truth.annotated is not None
    assert truth.annotated.tolist() == [True, False, True]
    tsv = lines(tmp_path / "classes.tsv", "0\tdog,person", "20\ttoothbrush", "7777\tperson")
    by_lines = read_coco(tmp_path / "captions.json", instances=tsv)
    assert by_lines.classes is not None
    order = [("dog", "person", "toothbrush").index(name) for name in truth.class_names]
    assert by_lines.class_names == ("dog", "person", "toothbrush")
    assert np.array_equal(by_lines.classes[:, order], truth.classes)


def test_caption_ids_choose_captions_and_their_order(tmp_path: Path) -> None:
    path, ids = coco(tmp_path / "captions.json"), np.array([502, 505, 501])
    np.save(tmp_path / "ids.npy", ids)
    truth = read_coco(path, ids=tmp_path / "ids.npy")
    assert truth.image_ids == (20, 0)
    assert truth.caption_ids == (502, 505, 501)
    assert read_coco(path, ids=ids).fingerprint() == truth.fingerprint()


def test_a_karpathy_file_chooses_from_several_coco_files(tmp_path: Path) -> None:
    files = [coco(tmp_path / "val.json"), coco(tmp_path / "train.json", first=10000)]
    split = {"images": [
        {"cocoid": 10010, "split": "test", "sentids": [10503]},
        {"cocoid": 0, "split": "train", "sentids": [501, 504]},
        {"cocoid": 20, "split": "test", "sentids": [500, 502]},
    ]}  # fmt: skip
    karpathy = document(tmp_path / "dataset_coco.json", split)
    truth = read_coco(files, karpathy=karpathy, split="test")
    assert truth.image_ids == (10010, 20)
    assert truth.captions == ("text 10003", "text 0", "text 2")
    with pytest.raises(
        InputError, match=r"val\.json: no caption has the id 10503, which the split lists; name every captions file"
    ):
        read_coco(files[0], karpathy=karpathy)
    with pytest.raises(InputError, match="karpathy and ids both choose captions"):
        read_coco(files, karpathy=karpathy, ids=[500])


def test_coco_files_name_what_is_wrong(tmp_path: Path) -> None:
    path = coco(tmp_path / "captions.json")
    good = json.loads(path.read_text())

    def broken(**changes: object) -> Path:
        return document(path, good | changes)

    notes = good["annotations"]
    cases = {
        r"annotations\[6\]: caption id 500 occurs twice": {"annotations": [*notes, notes[0]]},
        r'annotations\[6\]: image 99 is not among "images"': {
            "annotations": [*notes, {**notes[0], "id": 1, "image_id": 99}]
        },
        r'annotations\[6\]: no "caption"': {"annotations": [*notes, {"id": 1, "image_id": 0}]},
        r'annotations\[6\]: "id" is None': {"annotations": [*notes, {"image_id": 0, "caption": "x"}]},
        r"images\[3\]: image 0 is listed twice": {"images": [*good["images"], {"id": 0}]},
        r'images\[3\]: "captions" of 30 is empty; every image needs at least one': {
            "images": [*good["images"], {"id": 30}]
        },
        'no list of objects "annotations"': {"annotations": None},
    }
    for message, changes in cases.items():
        with pytest.raises(InputError, match=message):
            read_coco(broken(**changes))
    bad = document(tmp_path / "instances.json", {"categories": [], "annotations": [{"image_id": 0, "category_id": 5}]})
    with pytest.raises(InputError, match=r"annotations\[0\]: category 5 is not among"):
        read_coco(broken(), instances=bad)
    with pytest.raises(InputError, match=r"classes.tsv line 1: 'dog' is not an image with its classes"):
        read_coco(path, instances=lines(tmp_path / "classes.tsv", "dog"))
    with pytest.raises(InputError, match="caption id 500 was used already"):
        read_coco(path, ids=[500, 500])


def test_a_pickled_id_file_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="refused"):
        read_coco(coco(tmp_path / "captions.json"), ids=tmp_path / "ids.npy")


def test_every_reader_gives_the_same_truth_for_the_same_captions(tmp_path: Path) -> None:
    split = json.loads(karpathy(tmp_path / "dataset_coco.json", coco=True).read_text())["images"]
    test = [image for image in split if image["split"] == "test"]
    texts = {image["cocoid"]: [sentence["raw"] for sentence in image["sentences"]] for image in split}
    rows = [{"image_id": i["cocoid"], "caption_ids": i["sentids"], "captions": texts[i["cocoid"]]} for i in test]
    plain = lines(tmp_path / "test.jsonl", *rows)
    annotations = [
        {"id": number, "image_id": image["cocoid"], "caption": text}
        for image in split
        for number, text in zip(image["sentids"], texts[image["cocoid"]], strict=True)
    ]
    images = [{"id": image["cocoid"]} for image in split]
    official = document(tmp_path / "captions.json", {"images": images, "annotations": annotations})
    truths: list[Truth] = [
        read_jsonl(plain),
        read_karpathy(tmp_path / "dataset_coco.json", "test"),
        read_coco(official, karpathy=tmp_path / "dataset_coco.json", split="test"),
    ]
    assert len({truth.fingerprint() for truth in truths}) == 1
    assert len({truth.captions for truth in truths}) == 1


@pytest.mark.parametrize("wrong", [None, [], {}, "1", 1.5, True])
def test_a_field_of_the_wrong_type_is_named_with_its_place(tmp_path: Path, wrong: object) -> None:
    captions = coco(tmp_path / "captions.json")
    good = json.loads(instances(tmp_path / "instances.json").read_text())
    for part, key in (("categories", "id"), ("annotations", "category_id"), ("annotations", "image_id")):
        rows = [dict(row) for row in good[part]]
        rows[1][key] = wrong
        path = document(tmp_path / "instances.json", good | {part: rows})
        with pytest.raises(
            InputError, match=rf'instances\.json {part}\[1\]: "{key}" is .*; COCO ids are whole numbers'
        ):
            read_coco(captions, instances=path)
    for sentids in (wrong, [500, wrong]):
        if sentids != []:  # an image may lend no caption
            split = document(tmp_path / "k.json", {"images": [{"cocoid": 0, "split": "test", "sentids": sentids}]})
            with pytest.raises(InputError, match=r'k\.json images\[0\]: "sentids" is .*a list of whole numbers'):
                read_coco(captions, karpathy=split)


@pytest.mark.parametrize("wrong", [None, [], {}, 1, True])
def test_a_name_that_is_no_text_is_named_with_its_place(tmp_path: Path, wrong: object) -> None:
    content = json.loads(karpathy(tmp_path / "dataset.json").read_text())
    content["images"][3]["split"] = wrong
    with pytest.raises(InputError, match=r'dataset\.json images\[3\]: "split" is '):
        read_karpathy(document(tmp_path / "dataset.json", content))
    categories = {"categories": [{"id": 1, "name": wrong}], "annotations": []}
    path = document(tmp_path / "instances.json", categories)
    with pytest.raises(InputError, match=r'instances\.json categories\[0\]: "name" is '):
        read_coco(coco(tmp_path / "captions.json"), instances=path)


WRONG = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=2), st.just([]), st.just({}), st.just([[]])
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(position for key, child in inner for position in places(child, (*path, key)))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data(), WRONG)
def test_a_wrong_value_anywhere_in_a_file_is_either_read_or_refused(
    tmp_path: Path, data: st.DataObject, wrong: object
) -> None:
    captions, split = coco(tmp_path / "captions.json"), karpathy(tmp_path / "dataset.json", coco=True)
    names = instances(tmp_path / "instances.json")
    readers: dict[Path, Callable[[], Truth]] = {
        captions: lambda: read_coco(captions, instances=names),
        names: lambda: read_coco(captions, instances=names),
        split: lambda: read_karpathy(split, captions_per_image=5),
    }
    damaged = data.draw(st.sampled_from(list(readers)))
    content = {"whole": json.loads(damaged.read_text())}
    *way, last = ("whole", *data.draw(st.sampled_from(places(content["whole"]))))
    holder: Any = content
    for key in way:
        holder = holder[key]
    holder[last] = wrong
    document(damaged, content["whole"])
    try:
        outcome = repr(readers[damaged]())
    except InputError as error:
        outcome = str(error)
    assert outcome.startswith("Truth(") or str(tmp_path) in outcome
