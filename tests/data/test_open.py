"""Each layout is recognised by the contents of its folder, and errors name the problem."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from halation import InputError
from halation.data import open_dataset


def draw(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (24, 16), (200, 30, 30)).save(path)


def test_flickr8k_is_read_with_its_pictures(flickr8k: Path) -> None:
    data = open_dataset(flickr8k, "train")
    assert (len(data), data.n_captions, data.name) == (4, 20, "flickr8k-train")
    assert data.photos is not None and data.photos[2].size == (24, 16)
    assert open_dataset(flickr8k, "val").truth.image_ids == open_dataset(flickr8k, "dev").truth.image_ids
    assert len(open_dataset(flickr8k, "all")) == 8


def test_fewer_captions_an_image_are_its_first(flickr8k: Path) -> None:
    data = open_dataset(flickr8k, "train", captions_per_image=2)
    assert data.n_captions == 8 and data.captions[:2] == ("caption 0 of picture 0 .", "caption 1 of picture 0 .")
    assert data.first_captions(9) is data
    with pytest.raises(InputError, match="1 or more"):
        data.first_captions(0)


def test_missing_pictures_are_counted_and_named_unless_features_stand_in(flickr8k: Path) -> None:
    (flickr8k / "images" / "p1.jpg").unlink()
    with pytest.raises(InputError, match=r"images lacks 1 of the 4 pictures of flickr8k-train \(p1\.jpg\)"):
        open_dataset(flickr8k, "train")
    np.save(flickr8k / "f.npy", np.zeros((4, 3), dtype=np.float32))
    data = open_dataset(flickr8k, "train", features="f.npy")
    assert data.photos is None and data.features is not None


def test_wrong_annotations_are_refused_with_their_line(flickr8k: Path) -> None:
    lists = flickr8k / "Flickr_8k.trainImages.txt"
    lists.write_text("p0.jpg\np1.jpg\np0.jpg\n")
    with pytest.raises(InputError, match=r"trainImages\.txt line 3: .*p0\.jpg.* was used already"):
        open_dataset(flickr8k, "train")
    lists.write_text("")
    with pytest.raises(InputError, match=r"trainImages\.txt lists no image"):
        open_dataset(flickr8k, "train")
    (flickr8k / "Flickr8k.token.txt").write_bytes("p0.jpg#0\tein Mädchen".encode("latin-1"))
    with pytest.raises(InputError, match="line 1: not UTF-8"):
        open_dataset(flickr8k, "dev")
    with pytest.raises(InputError, match="no split 'tset'; it has train, dev, test, all"):
        open_dataset(flickr8k, "tset")


def karpathy(root: Path, dataset: str, files: list[tuple[str | None, str, str]]) -> Path:
    images = []
    for k, (folder, name, split) in enumerate(files):
        sentences = [{"raw": f"caption {c} of {k}", "sentid": 10 * k + c} for c in range(5 + (k == 0))]
        image = {"filename": name, "split": split, "sentences": sentences, "imgid": k}
        images.append(image | ({"filepath": folder, "cocoid": 100 + k} if folder else {}))
    root.mkdir(parents=True, exist_ok=True)
    (root / f"dataset_{dataset}.json").write_text(json.dumps({"dataset": dataset, "images": images}))
    return root


@pytest.mark.parametrize("below", ["", "images", "flat"])
def test_coco_pictures_are_found_in_the_folders_of_their_year(tmp_path: Path, below: str) -> None:
    files = [("train2014", "a.jpg", "train"), ("val2014", "b.jpg", "restval"), ("val2014", "c.jpg", "val")]
    root = karpathy(tmp_path / "coco", "coco", list(files))
    for folder, name, _ in files:
        draw(root / "images" / name if below == "flat" else root / below / folder / name)
    assert len(open_dataset(root, "train")) == 1
    both = open_dataset(root, "train+restval")
    assert both.truth.image_ids == (100, 101) and both.n_captions == 11
    assert both.photos is not None and [path.name for path in both.photos.paths] == ["a.jpg", "b.jpg"]
    assert open_dataset(root, "train+restval", captions_per_image=5).n_captions == 10
    assert open_dataset(root, "dev").name == "coco-val"


def test_flickr30k_with_its_own_folder_of_pictures(tmp_path: Path) -> None:
    root = karpathy(tmp_path / "f30k", "flickr30k", [(None, "1.jpg", "train"), (None, "2.jpg", "test")])
    draw(root / "flickr30k-images" / "1.jpg")
    draw(root / "flickr30k-images" / "2.jpg")
    data = open_dataset(root, "test")
    assert data.photos is not None and data.truth.image_ids == ("2.jpg",)


def cub(root: Path) -> Path:
    for number in range(1, 201):
        name = f"{number:03d}.Bird"
        for k in range(2):
            text = root / "text_c10" / name / f"b{number}_{k}.txt"
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text("\n".join(f"bird {number} {k} {c}" for c in range(10)))
            if number <= 2:
                draw(root / "images" / name / f"b{number}_{k}.jpg")
    return root


def test_cub_has_classes_and_splits_by_class(tmp_path: Path) -> None:
    root = cub(tmp_path / "cub")
    (root / "trainclasses.txt").write_text("001.Bird\n002.Bird\n")
    train = open_dataset(root, "train")
    assert train.labels is not None and train.labels.tolist() == [1, 1, 2, 2]
    assert train.photos is not None and train.truth.kind == "classes"
    for path in (root / "images").rglob("*.jpg"):
        path.unlink()
    for path in (root / "images").iterdir():
        path.rmdir()
    (root / "images").rmdir()
    assert (len(open_dataset(root, "unseen")), len(open_dataset(root, "test"))) == (100, 100)
    assert len(open_dataset(root, "seen")) == 300


def jsonl(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_json_lines_with_a_split_in_each_line_or_a_file_for_each(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"image": f"{k}.png", "captions": ["a thing"], "split": "train" if k < 2 else "val"} for k in range(3)
    ]
    jsonl(tmp_path / "one" / "captions.jsonl", rows)
    jsonl(tmp_path / "many" / "train.jsonl", rows[:2])
    jsonl(tmp_path / "many" / "dev.jsonl", rows[2:])
    for root in (tmp_path / "one", tmp_path / "many"):
        for k in range(3):
            draw(root / "images" / f"{k}.png")
        assert open_dataset(root, "train").truth.image_ids == ("0.png", "1.png")
        dev = open_dataset(root, "dev")
        assert dev.photos is not None and dev.photos.paths[0].name == "2.png"
    assert len(open_dataset(tmp_path / "one", "train+dev")) == 3


@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", "a/../../b.png", "C:/x.png", "..\\x.png"])
def test_no_file_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    jsonl(tmp_path / "captions.jsonl", [{"image": name, "captions": ["a thing"]}])
    with pytest.raises(InputError, match=r"captions\.jsonl line 1: .* leaves the dataset's folder"):
        open_dataset(tmp_path, "all")


def test_a_captions_file_without_splits_is_one_split(shared_data: Path) -> None:
    data = open_dataset(shared_data / "coco_mini", "all")
    assert (len(data), data.n_captions) == (239, 1195)
    assert data.photos is not None and data.photos[0].mode == "RGB" and data.truth.classes is not None
    with pytest.raises(InputError, match="no split 'train'; it has all"):
        open_dataset(shared_data / "coco_mini", "train")


def test_captions_alone_are_a_dataset_too(shared_data: Path) -> None:
    data = open_dataset(shared_data / "flickr30k_captions", "dev")
    assert (len(data), data.photos, data.features) == (1014, None, None)


def test_a_folder_that_is_not_a_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello")
    with pytest.raises(InputError, match=r"not recognised \(it holds notes\.md\)"):
        open_dataset(tmp_path, "train")
    with pytest.raises(InputError, match="nowhere does not exist; name the folder or file that holds the dataset"):
        open_dataset(tmp_path / "nowhere", "train")


@pytest.mark.parametrize("repeated", [True, False])
@pytest.mark.parametrize("cells", [(), (3,)])
def test_precomp_folders_hold_each_image_once_or_five_times(
    tmp_path: Path, rng: np.random.Generator, repeated: bool, cells: tuple[int, ...]
) -> None:
    images = rng.normal(size=(4, *cells, 6)).astype(np.float32)
    np.save(tmp_path / "dev_ims.npy", np.repeat(images, 5, axis=0) if repeated else images)
    (tmp_path / "dev_caps.txt").write_text("\n".join(f"caption {k}" for k in range(20)))
    data = open_dataset(tmp_path, "val")
    assert (len(data), data.n_captions, data.image_of.tolist()) == (4, 20, np.repeat(np.arange(4), 5).tolist())
    assert data.features is not None and data.features.cells == sum(cells)
    seen = data.features.rows([3, 1])
    assert np.array_equal((seen.local if cells else seen.pooled).numpy(), images[[3, 1]])  # type: ignore[union-attr]


def test_precomp_folders_that_do_not_add_up_are_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    np.save(tmp_path / "test_ims.npy", rng.normal(size=(10, 2)))
    (tmp_path / "test_caps.txt").write_text("\n".join(f"caption {k}" for k in range(10)))
    assert open_dataset(tmp_path, "test").n_captions == len(open_dataset(tmp_path, "test")) == 10  # one caption each
    (tmp_path / "test_caps.txt").write_text("\n".join(f"caption {k}" for k in range(13)))
    with pytest.raises(InputError, match=r"10 rows but .* 13 captions"):
        open_dataset(tmp_path, "test")
    (tmp_path / "test_caps.txt").write_text("a dog\n\na cat\n")
    with pytest.raises(InputError, match="line 2: blank"):
        open_dataset(tmp_path, "test")
