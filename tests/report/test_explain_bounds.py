"""What an explanation costs has an end: so many words, so many parts of a picture, and nothing for nobody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from halation.encoders import load
from halation.report import Explainer, ExplanationCancelled, explain
from halation.report._explanation_views import word_rows
from halation.report._influence import cell_influence, fill_cell, word_influence

RunOf = Callable[[str], Path]
LONG = " ".join(["red dog"] * 24 + ["blue grass"] * 36)  # 120 words


def test_the_words_after_the_first_48_are_not_looked_at_and_that_is_said(
    run_of: RunOf, picture: Path, tmp_path: Path
) -> None:
    explained = explain(run_of("pcme"), picture, LONG)
    assert len(explained.words) == len(explained.text_influence) == 120
    assert np.isnan(explained.text_influence).tolist() == [False] * 48 + [True] * 72
    remark = "influence was measured for the first 48 of the 120 words"
    assert any(note.startswith(remark) for note in explained.notes)
    document = explained.to_dict()
    assert [word["influence"] is None for word in document["words"]] == [False] * 48 + [True] * 72
    rows = [
        line.split() for line in str(explained).splitlines() if line.startswith(("red ", "dog ", "blue ", "grass "))
    ]
    assert [row[1] == "–" for row in rows] == [False] * 48 + [True] * 72 and remark in str(explained)
    explained.to_html(tmp_path / "why.html")
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert page.count("<small>–</small>") == 72 and remark[1:] in page and "nan" not in page


def test_the_score_of_a_long_text_is_that_of_all_of_it(run_of: RunOf, picture: Path) -> None:
    whole, cut = explain(run_of("pcme"), picture, LONG), explain(run_of("pcme"), picture, " ".join(LONG.split()[:48]))
    assert abs(whole.score - cut.score) > 1e-4
    assert not np.isnan(cut.text_influence).any() and not cut.notes
    assert whole.text_attention[0].weights[:, 48:].any()  # where it looks costs nothing more, and is told
    assert not any(np.isnan(row.values).any() for row in word_rows(whole)[1:])


def test_a_long_text_is_read_as_often_as_one_of_48_words() -> None:
    read = list[str]()

    def scores(texts: Sequence[str]) -> torch.Tensor:
        read.extend(texts)
        return torch.arange(float(len(texts)))

    assert word_influence(1.0, [str(number) for number in range(256)], scores).shape == (256,)
    assert read == [str(number) for number in range(48)]


@pytest.mark.parametrize(("size", "cells", "parts"), [(64, 8, 8), (72, 9, 5), (112, 14, 7), (192, 24, 8)])
def test_many_cells_are_left_out_in_at_most_64_parts_and_that_is_said(
    size: int, cells: int, parts: int, tmp_path: Path, opened: Image.Image
) -> None:
    from runs import write_run

    explainer = Explainer(load(write_run(tmp_path / "run", f"image.size={size}")))
    looked = list[int]()
    look = explainer.model.images.read

    def counted(pixels: torch.Tensor) -> object:
        looked.append(len(pixels))
        return look(pixels)

    explainer.model.images.read = counted  # type: ignore[method-assign, assignment]
    explained = explainer(opened, "a red dog")
    assert np.shape(explained.image_influence) == (parts, parts) and sum(looked) == 1 + parts * parts
    assert explained.image_attention[0].weights.shape == (1, cells, cells)
    remarks = [note for note in explained.notes if "larger parts" in note]
    expected = f"the influence of the picture's {cells} × {cells} cells was measured in {parts} × {parts} larger parts"
    assert remarks == ([] if cells == parts else [expected])


def test_a_part_of_several_cells_is_left_out_at_once(tmp_path: Path, opened: Image.Image) -> None:
    from runs import write_run

    model = load(write_run(tmp_path / "run", "image.size=128"))
    explained = Explainer(model)(opened, "a red dog")
    network, words = model.network.image.backbone, model.network.text.backbone
    with torch.no_grad():
        filled = network.preprocess(opened).clone()  # type: ignore[operator]
        mean = filled.mean(dim=(1, 2), keepdim=True)
        filled[:, 16:32, 48:64] = mean  # the second row and fourth column of 8 × 8 parts, each of 2 × 2 cells
        text = model.network.captions(words.tokenize(["a red dog"]))  # type: ignore[operator]
        left = float(model.network.scores(model.network.images(filled[None]), text))
    assert explained.image_influence is not None
    assert explained.image_influence[1, 3] == pytest.approx(explained.score - left, abs=2e-5)


def test_work_ends_at_the_next_batch_when_nobody_waits(run_of: RunOf, opened: Image.Image) -> None:
    batches = list[int]()

    def is_wanted() -> bool:
        return len(batches) < 2

    def texts(given: Sequence[str]) -> torch.Tensor:
        batches.append(len(given))
        return torch.zeros(len(given))

    def pictures(given: torch.Tensor) -> torch.Tensor:
        batches.append(len(given))
        return torch.zeros(len(given))

    with pytest.raises(ExplanationCancelled, match="nobody waits"):
        word_influence(0.0, ["a"] * 48, texts, is_wanted)
    assert batches == [16, 16]
    batches.clear()
    with pytest.raises(ExplanationCancelled, match="nobody waits"):
        cell_influence(torch.zeros(3, 16, 16), 8, 8, 0.0, pictures, is_wanted)
    assert batches == [16, 16] and fill_cell(torch.ones(3, 4, 4), 0, 0, 2, 2).shape == (3, 4, 4)
    with pytest.raises(ExplanationCancelled):
        Explainer(load(run_of("pcme")))(opened, "a red dog", is_wanted=lambda: False)
