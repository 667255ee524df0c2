"""Flickr8k's token file and lists, and its human judgements, in miniature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation.data import read_flickr8k, read_flickr8k_judgements

IMAGES = ["b.jpg", "a.jpg", "c.jpg"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = [*IMAGES, "2258277193_586949ec62.jpg.1"]
    tokens = [f"{image}#{k}\tcaption {k} of {image}" for image in names for k in range(5)]
    (tmp_path / "Flickr8k.token.txt").write_text("\n".join(tokens) + "\n")
    (tmp_path / "Flickr_8k.testImages.txt").write_text("a.jpg\nb.jpg\n")
    (tmp_path / "Flickr_8k.devImages.txt").write_text("c.jpg\r\n")
    (tmp_path / "ExpertAnnotations.txt").write_text(
        "a.jpg\tb.jpg#2\t1\t1\t2\nb.jpg\tb.jpg#2\t4\t4\t4\na.jpg\tb.jpg#0\t3\t2\t4\n"
    )
    (tmp_path / "CrowdFlowerAnnotations.txt").write_text(
        "a.jpg\tb.jpg#2\t0.333333333\t1\t2\nb.jpg\ta.jpg#1\t0.75\t3\t1\n"
    )
    return tmp_path


def test_images_stand_in_the_order_of_the_list_with_their_five_captions(folder: Path) -> None:
    truth = read_flickr8k(folder)
    assert truth.image_ids == ("a.jpg", "b.jpg")
    assert truth.caption_ids[5:7] == ("b.jpg#0", "b.jpg#1")
    assert truth.captions is not None
    assert truth.captions[5] == "caption 0 of b.jpg"
    assert truth.n_positives("i2t").tolist() == [5, 5]
    assert read_flickr8k(folder, "dev").image_ids == ("c.jpg",)


def test_captions_of_an_image_that_does_not_exist_are_left_out_and_noted(folder: Path) -> None:
    truth = read_flickr8k(folder, "all")
    assert truth.image_ids == tuple(IMAGES)
    assert truth.notes == ("5 captions of 2258277193_586949ec62.jpg.1, which is not an image, were left out",)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("Flickr_8k.testImages.txt", "a.jpg\nz.jpg\n", r"testImages.txt line 2: z.jpg has no caption in .*token.txt"),
        ("Flickr_8k.testImages.txt", "a.jpg\na.jpg\n", r"line 2: the image id 'a.jpg' was used already"),
        ("Flickr_8k.testImages.txt", "", "holds no image"),
        ("Flickr8k.token.txt", "a.jpg#0\tx\na.jpg#0\ty\n", r"token.txt line 2: a.jpg#0 occurs twice"),
        ("Flickr8k.token.txt", "a.jpg#0\tx\na.jpg no tab\n", r"token.txt line 2: 'a.jpg no tab' is not a caption"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(InputError, match=message):
        read_flickr8k(folder)


def test_an_unknown_split_and_a_missing_file_are_named(folder: Path) -> None:
    with pytest.raises(InputError, match="unknown split of Flickr8k 'tests'; did you mean 'test'"):
        read_flickr8k(folder, "tests")
    with pytest.raises(InputError, match=r"trainImages\.txt does not exist"):
        read_flickr8k(folder, "train")


def test_every_experts_score_is_kept_and_their_mean_is_rescaled(folder: Path) -> None:
    judged = read_flickr8k_judgements(folder, "expert")
    named = [(judged.base.image_ids[i], judged.base.caption_ids[c]) for i, c in judged.pairs]
    assert named == [("a.jpg", "b.jpg#2"), ("b.jpg", "b.jpg#2"), ("a.jpg", "b.jpg#0")]
    assert judged.scores.tolist() == [[1, 1, 2], [4, 4, 4], [3, 2, 4]]
    assert judged.gains == pytest.approx([1 / 9, 1, 2 / 3])
    assert judged.own_caption.tolist() == [False, True, False]
    assert len(judged) == 3


def test_the_crowds_score_is_the_share_of_yes(folder: Path) -> None:
    judged = read_flickr8k_judgements(folder, "crowdflower")
    assert judged.scores == pytest.approx(np.array([[1 / 3], [3 / 4]]))
    assert judged.gains == pytest.approx([1 / 3, 3 / 4])


def test_judgements_make_a_graded_truth_in_which_own_captions_count(folder: Path) -> None:
    judged = read_flickr8k_judgements(folder, "expert")
    truth = judged.truth()
    assert truth.kind == "graded"
    a, b = 0, 1
    expected = np.zeros((2, 10))
    expected[a, :5] = expected[b, 5:] = 1
    expected[a, 7], expected[a, 5] = 1 / 9, 2 / 3
    assert truth.gains("i2t") == pytest.approx(expected)
    assert truth.gains("t2i") == pytest.approx(expected.T)
    assert np.array_equal(truth.positives("i2t"), expected >= 0.5)
    assert not truth.binary
    assert truth.captions == judged.base.captions


def test_a_judgement_overrules_that_a_caption_is_the_images_own(folder: Path) -> None:
    (folder / "ExpertAnnotations.txt").write_text("a.jpg\ta.jpg#3\t1\t1\t2\n")
    truth = read_flickr8k_judgements(folder, "expert").truth()
    assert truth.gains("i2t")[0, 3] == pytest.approx(1 / 9)
    assert 3 not in truth.queries("t2i")  # nothing answers that caption any more


def test_without_own_captions_only_judged_pairs_have_a_gain_and_only_answered_queries_are_asked(folder: Path) -> None:
    truth = read_flickr8k_judgements(folder, "expert").truth(0.9, own_captions=False)
    assert truth.i2t.nnz == 3
    assert [truth.image_ids[k] for k in truth.queries("i2t")] == ["b.jpg"]
    assert [truth.caption_ids[k] for k in truth.queries("t2i")] == ["b.jpg#2"]


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        (
            "expert",
            "a.jpg\tz.jpg#0\t1\t1\t1",
            r"ExpertAnnotations.txt line 1: caption 'z.jpg#0' is not in the test split",
        ),
        ("expert", "z.jpg\ta.jpg#0\t1\t1\t1", "line 1: image 'z.jpg' is not in the test split"),
        ("expert", "a.jpg\ta.jpg#0\t1\t1", "line 1: 4 columns instead of 5"),
        ("expert", "a.jpg", "line 1: 1 columns instead of 5"),
        ("expert", "a.jpg\ta.jpg#0\t1\t1\t5", "line 1: the scores are 1, 1, 5; experts gave 1, 2, 3 or 4"),
        ("expert", "a.jpg\ta.jpg#0\t1\t1\t1\na.jpg\ta.jpg#0\t1\t1\t1", "line 2: a.jpg with a.jpg#0 was judged already"),
        ("expert", "", "holds no judgement"),
        ("crowdflower", "a.jpg\ta.jpg#0\t0.5\t1\t2", "line 1: 0.5 1 2 is not share, yes, no"),
        ("crowdflower", "a.jpg\ta.jpg#0\t0\t0\t0", "line 1: 0 0 0 is not share, yes, no"),
        ("crowdflower", "a.jpg\ta.jpg#0\tx\t1\t2", "line 1: x 1 2 is not share, yes, no"),
        ("crowdflower", "a.jpg\ta.jpg#0\tnan\t1\t2", "line 1: nan 1 2 is not share, yes, no"),
    ],
)
def test_a_bad_judgement_is_named_with_its_line(folder: Path, kind: str, line: str, message: str) -> None:
    file = {"expert": "ExpertAnnotations.txt", "crowdflower": "CrowdFlowerAnnotations.txt"}[kind]
    (folder / file).write_text(line)
    with pytest.raises(InputError, match=message):
        read_flickr8k_judgements(folder, kind)  # type: ignore[arg-type]


def test_an_unknown_kind_of_judgement_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match="unknown kind of judgement 'experts'; did you mean 'expert'"):
        read_flickr8k_judgements(folder, "experts")  # type: ignore[arg-type]
