"""Heads that do not say where they look, heads that look nowhere, and pictures nobody looked at: three things."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from halation.encoders import load
from halation.report import Explainer, Explanation, explain
from halation.report._explain import MatchProbability

from .conftest import TEXT

RunOf = Callable[[str], Path]
NOTHING, SILENT, UNSEEN = "has no attention", "does not report its attention", "did not look at the picture"


class Own(nn.Module):
    """A custom head or scorer without `attentions`."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *given: Any) -> Any:
        return self.inner(*given)


def all_text(explained: Explanation, folder: Path) -> str:
    """The text of an explanation in every form: table, JSON and page."""
    explained.to_html(folder / "why.html")
    return f"{explained}{(folder / 'why.html').read_text(encoding='utf-8')}{explained.to_dict()}"


def test_a_head_of_ones_own_need_not_say_where_it_looks(run_of: RunOf, picture: Path, tmp_path: Path) -> None:
    model = load(run_of("pcme"))
    before = explain(model, picture, TEXT)
    for side in (model.network.image, model.network.text):
        side.head = Own(side.head)
    explained = explain(model, picture, TEXT)
    assert explained.image_attention == explained.text_attention == ()
    assert explained.about_image_attention == f"this image head {SILENT}"
    assert explained.about_text_attention == f"this text head {SILENT}"
    assert explained.score == before.score and explained.image_influence is not None
    np.testing.assert_allclose(explained.text_influence, before.text_influence)
    shown = all_text(explained, tmp_path)
    assert SILENT in shown and NOTHING not in shown and "Bright areas" not in shown


def test_a_scorer_of_ones_own_need_not_either(run_of: RunOf, picture: Path, tmp_path: Path) -> None:
    model = load(run_of("sgr"))
    model.network.compare = Own(model.network.compare)
    shown = all_text(explain(model, picture, TEXT), tmp_path)
    assert f"this scorer {SILENT}" in shown and NOTHING not in shown


def test_a_head_that_looks_nowhere_in_particular_says_so(run_of: RunOf, picture: Path, tmp_path: Path) -> None:
    explained = explain(run_of("point"), picture, TEXT)
    assert explained.about_image_attention == f"this image head {NOTHING}"
    assert explained.about_text_attention == f"this text head {NOTHING}"
    shown = all_text(explained, tmp_path)
    assert shown.count(NOTHING) >= 4 and SILENT not in shown and UNSEEN not in shown


@pytest.mark.parametrize("kind", ["pcme", "point"])
def test_of_a_picture_that_was_not_looked_at_nothing_is_claimed(
    kind: str, run_of: RunOf, opened: Image.Image, tmp_path: Path
) -> None:
    model = load(run_of(kind))
    network: Any = model.network.image.backbone
    with torch.no_grad():
        kept = model.network.images(network.preprocess(opened)[None])
    explained = Explainer(model).explain_stored(
        kept, opened, TEXT, "no eyes", name="p", probability=MatchProbability(None, "unknown")
    )
    assert UNSEEN in explained.about_image_attention and explained.image_attention == ()
    shown = all_text(explained, tmp_path)
    assert "image head has no attention" not in shown and shown.count(UNSEEN) >= 3


@pytest.mark.parametrize("kind", ["pcme", "pvse", "sgraf"])
def test_heads_that_say_where_they_look_need_no_words_about_it(kind: str, run_of: RunOf, picture: Path) -> None:
    explained = explain(run_of(kind), picture, TEXT)
    assert explained.image_attention and explained.text_attention
    assert explained.about_image_attention == explained.about_text_attention == ""
