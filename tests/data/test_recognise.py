"""One recogniser for all folders and files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from halation import InputError
from halation.data import Truth, open_dataset, read_karpathy


def read(path: str | Path, split: str | None = None, captions_per_image: int | None = None) -> Truth:
    return open_dataset(path, split, captions_per_image=captions_per_image).truth


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
    with pytest.raises(InputError, match=r"captions_val\.json \(captions_val\) has no split 'val'; it has all"):
        read(tmp_path / "captions_val.json", split="val")


def test_flickr8k_is_recognised_by_its_token_file(tmp_path: Path) -> None:
    (tmp_path / "Flickr8k.token.txt").write_text("a.jpg#0\tx\nb.jpg#0\ty\n")
    (tmp_path / "Flickr_8k.testImages.txt").write_text("b.jpg\n")
    assert read(tmp_path).image_ids == ("b.jpg",)
    assert read(tmp_path, split="all").image_ids == ("a.jpg", "b.jpg")
    with pytest.raises(InputError, match=r"token\.txt is not recognised; name its folder"):
        read(tmp_path / "Flickr8k.token.txt")


def test_the_error_of_an_unknown_layout_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b")
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"notes\.csv is not recognised; halation knows"):
        read(tmp_path / "notes.csv")
    with pytest.raises(InputError, match=r"other\.json is neither Karpathy's nor COCO's"):
        read(tmp_path / "other.json")
    with pytest.raises(InputError, match=r"not recognised \(it holds notes\.csv, other\.json\)"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"absent does not exist"):
        read(tmp_path / "absent")
    with pytest.raises(InputError, match=r"absent\.jsonl does not exist"):
        read(tmp_path / "absent.jsonl")
    with pytest.raises(InputError, match=r"pictures\.jsonl \(pictures\) has no split 'train'; it has all"):
        read(line(tmp_path / "pictures.jsonl"), split="train")


def test_a_folder_of_several_data_sets_is_not_guessed(tmp_path: Path) -> None:
    for name in ("flickr8k", "coco"):
        content = {"images": [{"filename": f"{name}.jpg", "split": "test", "sentences": [{"raw": "x"}]}]}
        (tmp_path / f"dataset_{name}.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"holds dataset_coco\.json, dataset_flickr8k\.json; name the file"):
        read(tmp_path)
    (tmp_path / "dataset_coco.json").unlink()
    assert read(tmp_path).image_ids == ("flickr8k.jpg",)


@pytest.mark.parametrize(
    ("stem", "split"),
    [
        ("karpathy_test5k", "test"),
        ("karpathy_test5k", "test5k"),
        ("flickr30k-val", "val"),
        ("Test", "test"),
        ("train+restval", "restval"),
        ("train+restval", "train+restval"),
    ],
)
def test_a_file_may_be_named_after_its_split(tmp_path: Path, stem: str, split: str) -> None:
    assert read(line(tmp_path / f"{stem}.jsonl"), split=split).image_ids == ("a.jpg",)


@pytest.mark.parametrize(
    ("stem", "split"), [("karpathy_test5k", "est"), ("karpathy_test5k", "k"), ("restval", "val"), ("latest", "test")]
)
def test_a_piece_of_a_word_is_no_split(tmp_path: Path, stem: str, split: str) -> None:
    with pytest.raises(InputError, match=f"has no split '{split}'; it has all"):
        read(line(tmp_path / f"{stem}.jsonl"), split=split)
    with pytest.raises(InputError, match="has no split ''; it has all"):
        read(tmp_path / f"{stem}.jsonl", split="")


def test_the_first_captions_of_each_image_are_kept_whatever_the_format(tmp_path: Path) -> None:
    sentences = [{"raw": f"text {k}", "sentid": k} for k in range(9)]
    images = [
        {"filename": "a.jpg", "split": "test", "sentences": sentences[:7]},
        {"filename": "b.jpg", "split": "test", "sentences": sentences[7:]},
    ]
    path = tmp_path / "dataset_coco.json"
    path.write_text(json.dumps({"images": images}))
    assert read(path).n_positives("i2t").tolist() == [7, 2]
    cut = read(path, captions_per_image=5)
    assert cut.caption_ids == (0, 1, 2, 3, 4, 7, 8)
    assert cut.fingerprint() == read_karpathy(path, captions_per_image=5).fingerprint()
    assert (cut.name, cut.kind, cut.notes) == ("coco-test", "captions", ())
    assert read(tmp_path, captions_per_image=1).captions == ("text 0", "text 7")
    owner = [20, 10, 20, 10, 20]  # captions of an image stand apart in COCO's own files
    notes = [{"id": k, "image_id": image, "caption": f"text {k}"} for k, image in enumerate(owner)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": [{"id": 10}, {"id": 20}], "annotations": notes}))
    assert read(tmp_path / "captions.json", captions_per_image=2).caption_ids == (1, 3, 0, 2)
    with pytest.raises(InputError, match="captions_per_image is 0; it must be 1 or more"):
        read(path, captions_per_image=0)


def marked(folder: Path) -> Path:
    """captions.jsonl with a "split" in its lines: a and b to train on, c to test on."""
    folder.mkdir(exist_ok=True)
    rows = [{"image": f"{name}.jpg", "captions": [name], "split": "test" if name == "c" else "train"} for name in "abc"]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "captions.jsonl"


def test_a_file_is_read_as_its_folder_is(tmp_path: Path) -> None:
    file = marked(tmp_path)
    for path in (file, tmp_path):
        assert read(path).image_ids == read(path, "test").image_ids == ("c.jpg",)
        assert read(path, "all").n_images == read(path, "train+test").n_images == 3


def test_without_a_split_the_usual_test_part_is_read(tmp_path: Path, scenes_folder: Path) -> None:
    assert read(scenes_folder).image_ids == read(scenes_folder, "test").image_ids
    (tmp_path / "train.jsonl").write_text(json.dumps({"image": "a.jpg", "captions": ["x"]}))
    with pytest.raises(InputError, match=r"has no split 'test'; name one of train"):
        read(tmp_path)


def test_captions_are_measured_whatever_became_of_the_pictures(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "other.jpg").touch()
    line(tmp_path / "captions.jsonl", "/data/a.jpg")
    with pytest.raises(InputError, match="leaves the dataset's folder"):
        open_dataset(tmp_path)
    assert open_dataset(tmp_path, pictures=False).truth.image_ids == ("/data/a.jpg",)
    line(tmp_path / "captions.jsonl")
    with pytest.raises(InputError, match="images lacks 1 of the 1 pictures"):
        open_dataset(tmp_path)
    assert open_dataset(tmp_path / "captions.jsonl", pictures=False).photos is None


def test_coco_pictures_are_found_beside_the_annotations(tmp_path: Path) -> None:
    coco = {
        "images": [{"id": 5, "file_name": "000005.jpg"}],
        "annotations": [{"id": 1, "image_id": 5, "caption": "x"}],
    }
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "captions_val2017.json").write_text(json.dumps(coco))
    assert open_dataset(tmp_path / "annotations" / "captions_val2017.json").photos is None
    (tmp_path / "val2017").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "val2017" / "000005.jpg")
    data = open_dataset(tmp_path / "annotations" / "captions_val2017.json")
    assert data.photos is not None and data.photos[0].size == (4, 4)


def test_reading_captions_does_not_load_torch(tmp_path: Path) -> None:
    code = (
        f"import sys\nfrom halation.data import open_dataset\nopen_dataset({str(marked(tmp_path))!r}, 'all')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
