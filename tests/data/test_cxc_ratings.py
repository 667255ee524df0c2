"""CxC's ratings: read by id, damaged lines named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halation import InputError, Truth
from halation.data import read_cxc_ratings

HEADER = "caption,image,agg_score,sampling_method\n"
LINE = "COCO_val2014:sentid:{},COCO_val2014_000000{:06d}.jpg,{},c2i_intrasim\n"


@pytest.fixture
def truth() -> Truth:
    return Truth.from_captions(["a", "b", "c"], [0, 0, 1], image_ids=[42, 365325], caption_ids=[7, 8, 9])


def write(folder: Path, *lines: str) -> Path:
    path = folder / "sits_test.csv"
    path.write_text(HEADER + "".join(lines))
    return path


def test_ratings_are_found_by_their_ids(truth: Truth, tmp_path: Path) -> None:
    path = write(tmp_path, LINE.format(9, 42, 2.2), LINE.format(7, 42, 4.97), LINE.format(999, 42, 1), "\n")
    ratings = read_cxc_ratings(truth, path)
    assert ratings.pairs.tolist() == [[0, 2], [0, 0]]
    np.testing.assert_array_equal(ratings.scores, [[2.2], [4.97]])
    assert ratings.own_caption.tolist() == [False, True]
    assert ratings.gains.tolist() == pytest.approx([0.44, 0.994])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("COCO_val2014:sentid:7\n", "line 2 is not a caption, an image and a rating"),
        ("seven,COCO_val2014_000000000042.jpg,1,x\n", "line 2 is not a caption"),
        (LINE.format(7, 42, "much"), "line 2 is not a caption"),
        (LINE.format(7, 42, 5.1), "line 2 has the rating 5.1; ratings are from 0 to 5"),
        (LINE.format(7, 42, "nan"), "line 2 has the rating nan"),
        (LINE.format(1, 2, 3), "has no rating of these images and captions"),
    ],
)
def test_a_damaged_line_is_named(truth: Truth, tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_cxc_ratings(truth, write(tmp_path, line))


def test_a_file_of_another_kind_is_refused(truth: Truth, tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="line 1 has no column caption"):
        read_cxc_ratings(truth, path)
