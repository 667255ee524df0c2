"""One door for all files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halation import InputError
from halation.relevance import read


def line(path: Path, image: str = "a.jpg") -> Path:
    path.write_text(json.dumps({"image": image, "captions": ["x"]}))
    return path


def test_lines_are_recognised_alone_and_in_a_folder(tmp_path: Path) -> None:
    assert read(line(tmp_path / "captions.jsonl")).image_ids == ("a.jpg",)
    assert read(tmp_path).image_ids == ("a.jpg",)
    line(tmp_path / "test.jsonl", "t.jpg")
    line(tmp_path / "val.jsonl", "v.jpg")
    assert read(tmp_path).image_ids == ("t.jpg",)
    assert read(str(tmp_path), split="val").image_ids == ("v.jpg",)


def test_karpathy_and_coco_json_are_told_apart(tmp_path: Path) -> None:
    karpathy = {"images": [{"filename": "k.jpg", "split": "test", "sentences": [{"raw": "x"}]}]}
    (tmp_path / "dataset_flickr8k.json").write_text(json.dumps(karpathy))
    coco = {"images": [{"id": 5}], "annotations": [{"id": 1, "image_id": 5, "caption": "x"}]}
    (tmp_path / "captions_val.json").write_text(json.dumps(coco))
    assert read(tmp_path / "dataset_flickr8k.json").image_ids == ("k.jpg",)
    assert read(tmp_path).image_ids == ("k.jpg",)
    assert read(tmp_path / "captions_val.json").image_ids == (5,)
    with pytest.raises(InputError, match="has no split 'val'; it has test"):
        read(tmp_path / "dataset_flickr8k.json", split="val")
    with pytest.raises(InputError, match=r"captions_val\.json has no splits"):
        read(tmp_path / "captions_val.json", split="val")


def test_flickr8k_is_recognised_by_its_token_file(tmp_path: Path) -> None:
    (tmp_path / "Flickr8k.token.txt").write_text("a.jpg#0\tx\nb.jpg#0\ty\n")
    (tmp_path / "Flickr_8k.testImages.txt").write_text("b.jpg\n")
    assert read(tmp_path).image_ids == ("b.jpg",)
    assert read(tmp_path, split="all").image_ids == ("a.jpg", "b.jpg")
    with pytest.raises(InputError, match=r"token\.txt is not recognised; name its folder"):
        read(tmp_path / "Flickr8k.token.txt")


def test_what_is_not_recognised_is_said_with_what_would_be(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b")
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"notes\.csv is not recognised; halation reads"):
        read(tmp_path / "notes.csv")
    with pytest.raises(InputError, match=r"other\.json is neither Karpathy's nor COCO's"):
        read(tmp_path / "other.json")
    with pytest.raises(InputError, match=r"not recognised \(it holds notes\.csv, other\.json\)"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"absent does not exist"):
        read(tmp_path / "absent")
    with pytest.raises(InputError, match=r"absent\.jsonl does not exist"):
        read(tmp_path / "absent.jsonl")
    with pytest.raises(InputError, match="has no splits"):
        read(line(tmp_path / "pictures.jsonl"), split="train")
