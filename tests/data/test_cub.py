"""CUB Captions in miniature: two photographs of each bird, captions relevant to the whole kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation.data import open_dataset, read_cub
from halation.data._cub import UNSEEN


@pytest.fixture(scope="module")
def cub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cub") / "text_c10"
    for number in range(1, 201):
        folder = root / f"{number:03d}.Bird_{number}"
        folder.mkdir(parents=True)
        for photo in range(2):
            text = "".join(f"bird {number} photo {photo} line {k}\n" for k in range(10 - photo))
            (folder / f"Bird_{photo}.txt").write_text(text)
    (root / "readme.txt").write_text("not a class")
    return root


def test_the_unseen_classes_are_fifty_of_two_hundred() -> None:
    assert len(set(UNSEEN)) == 50
    assert set(UNSEEN) <= set(range(1, 201))


def test_unseen_and_seen_classes_share_nothing_and_are_all(cub: Path) -> None:
    unseen, seen, everything = (read_cub(cub, split) for split in ("unseen", "seen", "all"))
    assert (unseen.n_images, seen.n_images, everything.n_images) == (100, 300, 400)
    assert set(unseen.image_ids) | set(seen.image_ids) == set(everything.image_ids)
    assert unseen.image_ids[:2] == ("004.Bird_4/Bird_0.jpg", "004.Bird_4/Bird_1.jpg")
    assert unseen.name == "cub-unseen"


def test_an_image_is_relevant_to_every_caption_of_its_class(cub: Path) -> None:
    truth = read_cub(cub)
    assert truth.kind == "classes"
    kind = np.array([str(name).split("/")[0] for name in truth.image_ids])
    kind_of_caption = np.array([str(name).split("/")[0] for name in truth.caption_ids])
    assert np.array_equal(truth.positives("i2t"), kind[:, None] == kind_of_caption[None, :])
    assert set(truth.n_positives("i2t")) == {19}
    assert set(truth.n_positives("t2i")) == {2}
    assert truth.image_of is not None
    assert np.bincount(truth.image_of)[:2].tolist() == [10, 9]
    assert truth.captions is not None
    assert truth.captions[0] == "bird 4 photo 0 line 0"


def test_classes_and_images_may_be_listed(cub: Path, tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("007.Bird_7\n002.Bird_2\n")
    (tmp_path / "images.txt").write_text("007.Bird_7/Bird_1.jpg\n002.Bird_2/Bird_0.jpg\n")
    by_file = read_cub(cub, classes=tmp_path / "classes.txt")
    assert by_file.fingerprint() == read_cub(cub, classes=[2, "007.Bird_7"]).fingerprint()
    assert by_file.n_images == 4
    listed = read_cub(cub, "seen", images=tmp_path / "images.txt")
    assert listed.image_ids == ("002.Bird_2/Bird_0.jpg", "007.Bird_7/Bird_1.jpg")


def test_the_folder_above_is_recognised_too(cub: Path) -> None:
    assert (
        open_dataset(cub.parent).truth.fingerprint()
        == open_dataset(cub, split="unseen").truth.fingerprint()
        == read_cub(cub).fingerprint()
    )


def test_a_folder_that_is_not_whole_is_refused(cub: Path, tmp_path: Path) -> None:
    (tmp_path / "004.Bird_4").mkdir()
    with pytest.raises(InputError, match=r"lacks 49 of the 50 classes \(012 first\); unpack it again"):
        read_cub(tmp_path)
    with pytest.raises(InputError, match="holds no image"):
        read_cub(tmp_path, "all")
    (tmp_path / "004.Bird_4" / "Bird_0.txt").write_text("\n\n")
    with pytest.raises(InputError, match=r"Bird_0.txt: .* is empty; every image needs at least one"):
        read_cub(tmp_path, "all")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="holds no class folder such as"):
        read_cub(tmp_path / "none")
    with pytest.raises(InputError, match="is not a folder"):
        read_cub(tmp_path / "absent")


def test_unknown_names_are_refused(cub: Path) -> None:
    with pytest.raises(InputError, match="unknown split of CUB 'unsen'; did you mean 'unseen'"):
        read_cub(cub, "unsen")
    with pytest.raises(InputError, match="'robin' is not a class of CUB"):
        read_cub(cub, classes=["robin"])
    with pytest.raises(InputError, match="list of classes is empty"):
        read_cub(cub, classes=[])
    with pytest.raises(InputError, match=r"has no 001\.Bird_1/none\.jpg in these classes"):
        read_cub(cub, "seen", images=["001.Bird_1/none.jpg"])
