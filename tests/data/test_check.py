"""`check` lists every problem of a folder with its remedy."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from halation.data import check


def test_a_sound_folder_has_nothing_to_mend(flickr8k: Path) -> None:
    checked = check(flickr8k)
    assert checked.ok and checked.layout == "flickr8k"
    assert [(split.name, split.images, split.captions, split.fewest, split.most) for split in checked.splits] == [
        ("train", 4, 20, 5, 5),
        ("dev", 2, 10, 5, 5),
        ("test", 2, 10, 5, 5),
    ]
    assert "nothing to mend" in str(checked) and "no features yet" in str(checked)


def test_missing_broken_and_empty_things_are_listed(flickr8k: Path) -> None:
    (flickr8k / "images" / "p0.jpg").unlink()
    (flickr8k / "images" / "p5.jpg").write_bytes((flickr8k / "images" / "p5.jpg").read_bytes()[:300])
    tokens = flickr8k / "Flickr8k.token.txt"
    tokens.write_text(tokens.read_text().replace("caption 2 of picture 6 .", " "))
    checked = check(flickr8k)
    train, dev, test = checked.splits
    assert train.missing == ("p0.jpg",) and "p5.jpg" in dev.unreadable[0] and test.empty == ("p6.jpg#2",)
    assert len(checked.problems) == 3 and all(";" in problem for problem in checked.problems)
    assert not check(flickr8k, decode=False).splits[1].unreadable


def test_the_same_picture_in_two_splits_is_a_leak(flickr8k: Path) -> None:
    shutil.copy(flickr8k / "images" / "p0.jpg", flickr8k / "images" / "p7.jpg")
    shutil.copy(flickr8k / "images" / "p1.jpg", flickr8k / "images" / "p2.jpg")
    checked = check(flickr8k)
    assert checked.leaks == ((("train", "p0.jpg"), ("test", "p7.jpg")),)
    assert checked.repeats == (("p1.jpg", "p2.jpg"),)
    with (flickr8k / "Flickr_8k.devImages.txt").open("a") as lists:
        lists.write("\np3.jpg")
    assert (("train", "p3.jpg"), ("dev", "p3.jpg")) in check(flickr8k).leaks


def test_features_are_found_and_their_rows_compared(flickr8k: Path) -> None:
    folder = flickr8k / "features"
    folder.mkdir()
    np.save(folder / "pool.npy", np.zeros((6, 3), dtype=np.float16))
    (folder / "images.txt").write_text("\n".join(f"p{k}.jpg" for k in range(6)))
    checked = check(flickr8k)
    assert checked.features[0].lacking == {"test": 0} and "no row for some images of test" in checked.problems[0]
    (folder / "images.txt").write_text("p0.jpg")
    assert "6 rows of features but 1 names" in check(flickr8k).problems[0]


def test_a_folder_without_pictures_or_sense_is_described(tmp_path: Path, flickr8k: Path) -> None:
    shutil.rmtree(flickr8k / "images")
    assert "train: no pictures; put them into" in check(flickr8k).problems[0]
    (flickr8k / "Flickr_8k.testImages.txt").write_text("p99.jpg")
    assert any("p99.jpg has no caption" in problem for problem in check(flickr8k).problems)
    Image.new("RGB", (4, 4)).save(tmp_path / "lonely.png")
    checked = check(tmp_path)
    assert checked.layout is None and "not recognised" in str(checked)


def test_the_real_coco_photographs_are_sound(shared_data: Path) -> None:
    checked = check(shared_data / "coco_mini")
    assert checked.ok and checked.splits[0].pictures == 239
