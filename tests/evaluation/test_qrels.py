"""TREC qrels that other tools can read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halation import InputError
from halation.data import Truth
from halation.evaluation import write_qrels
from halation.evaluation._trec import trec_ids


def graded() -> Truth:
    return Truth.from_graded(
        [[1.0, 1 / 3], [0.0, 2 / 3]], threshold=0.5, image_ids=["my dog.jpg", 7], caption_ids=["c 1", "c2"]
    )


def test_each_positive_of_a_query_is_one_line(tmp_path: Path) -> None:
    write_qrels(graded(), tmp_path / "i2t.qrels", "i2t")
    assert (tmp_path / "i2t.qrels").read_text() == "my%20dog.jpg 0 c%201 1\n7 0 c2 1\n"
    write_qrels(graded().replace(caption_queries=[1]), tmp_path / "t2i.qrels", "t2i")
    assert (tmp_path / "t2i.qrels").read_text() == "c2 0 7 1\n"


def test_grades_are_scaled_to_whole_numbers(tmp_path: Path) -> None:
    write_qrels(graded(), tmp_path / "q", "i2t", scale=3)
    assert (tmp_path / "q").read_text() == "my%20dog.jpg 0 c%201 3\nmy%20dog.jpg 0 c2 1\n7 0 c2 2\n"


@given(st.lists(st.text(min_size=1) | st.integers(), unique_by=str))
def test_ids_in_a_trec_file_hold_no_white_space_and_stay_different(ids: list[str | int]) -> None:
    safe = trec_ids(ids)
    assert len(set(safe)) == len(ids)
    assert all(name.split() == [name] for name in safe)


def test_an_id_that_looks_escaped_is_not_taken_for_one_with_a_space() -> None:
    assert trec_ids(["a b", "a%20b", "a\u2003b"]) == ["a%20b", "a%2520b", "a%E2%80%83b"]


def test_ir_measures_reads_the_file_back(tmp_path: Path, rng: np.random.Generator) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    gains = rng.integers(0, 2, (600, 7))  # more rows than one block
    truth = Truth.from_graded(gains, image_ids=[f"image {k}" for k in range(600)])
    write_qrels(truth, tmp_path / "qrels", "i2t")
    read_back = {
        (row.query_id, row.doc_id): row.relevance for row in ir_measures.read_trec_qrels(str(tmp_path / "qrels"))
    }
    assert read_back == {(f"image%20{i}", str(k)): 1 for i, k in np.argwhere(gains)}


def test_a_scale_that_is_not_positive_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scale is 0"):
        write_qrels(graded(), tmp_path / "q", "i2t", scale=0)
    with pytest.raises(InputError, match="unknown direction"):
        write_qrels(graded(), tmp_path / "q", "image")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
