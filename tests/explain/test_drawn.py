"""Explanations drawn: over the right places, legible words, and nothing a caption says becomes markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from halation.cli import main
from halation.explain import Explanation, explain
from halation.explain._heat import influenced, lit, seen_part
from halation.explain._shown import panels, shades

from .conftest import TEXT

RunOf = Callable[[str], Path]
HOSTILE = """red <script>window.broken=1</script> "dog" 'grass' & $x^2$ <img/src=x/onerror=window.broken=1> 🐕 漢字"""


@pytest.fixture(scope="module")
def hostile(run_of: RunOf, picture: Path) -> Explanation:
    return explain(run_of("gist"), picture, HOSTILE)


def halation(*arguments: object) -> int:
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_light_falls_where_the_head_looks() -> None:
    picture, weights = Image.new("RGB", (80, 40), (200, 200, 200)), np.zeros((2, 4))
    weights[1, 3] = 1.0
    shown = np.asarray(lit(picture, weights), dtype=float)[:, :, 0]
    assert shown[30, 70] == pytest.approx(200, abs=1) and shown[10, 10] < 50
    assert shown.argmax() // 80 >= 20 and shown.argmax() % 80 >= 60


def test_red_is_for_and_blue_against() -> None:
    picture, influence = Image.new("RGB", (60, 60), (120, 120, 120)), np.array([[0.4, 0.0], [0.0, -0.4]])
    shown = np.asarray(influenced(picture, influence), dtype=float)
    red, blue, none = shown[8, 8], shown[52, 52], shown[8, 52]
    assert red[0] > red[2] + 100 and blue[2] > blue[0] + 80 and np.ptp(none) < 30


def test_what_is_shown_is_the_part_the_model_sees() -> None:
    picture = Image.new("RGB", (40, 20), "black")
    picture.paste((255, 255, 255), (10, 0, 30, 20))
    seen = seen_part(picture, (10.0, 0.0, 30.0, 20.0), 100)
    assert seen.size == (100, 100) and np.asarray(seen).mean() > 245


@pytest.mark.parametrize("kind", ["pcme csd", "gist", "point", "pvse", "sgraf"])
def test_every_kind_is_drawn_and_printed(kind: str, run_of: RunOf, picture: Path, tmp_path: Path) -> None:
    explained = explain(run_of(kind), picture, TEXT)
    explained.to_png(tmp_path / "why.png")
    explained.to_html(tmp_path / "why.html")
    with Image.open(tmp_path / "why.png") as drawn:
        assert drawn.width == 1320 and drawn.height > 500
        assert len(np.unique(np.asarray(drawn.convert("RGB")).reshape(-1, 3), axis=0)) > 100
    assert 2 <= len(panels(explained)) <= 8 and len(shades(explained)) >= 1
    printed = str(explained)
    assert f"{explained.score:.4f}".replace("-", "−") in printed and "zzz (unknown)" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["why.html", "why.png"]


def test_an_explanation_is_drawn_the_same_each_time(run_of: RunOf, picture: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        explained = explain(run_of("pcme"), picture, TEXT)
        explained.to_png(tmp_path / f"{name}.png")
        explained.to_html(tmp_path / f"{name}.html")
    for form in ("png", "html"):
        assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()


def test_words_stay_words(hostile: Explanation, tmp_path: Path) -> None:
    hostile.to_html(tmp_path / "why.html")
    text = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "<script" not in text and "<img/src" not in text and "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=\"(?!data:image/)", text) and "http" not in text.replace("http-equiv", "")
    hostile.to_png(tmp_path / "why.png")  # dollar signs are no mathematics


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}}])
def test_the_page_shows_itself_in_a_browser(
    hostile: Explanation, browser: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    hostile.to_html(tmp_path / "why.html")
    context = browser.new_context(**options)
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda said: complaints.append(said.text))
    page.on("request", lambda asked: complaints.append(asked.url) if asked.url[:5] not in ("file:", "data:") else None)
    page.goto((tmp_path / "why.html").as_uri())
    assert page.evaluate("window.broken") is None and not complaints
    assert page.locator("h1").inner_text() == f"“{hostile.text}”"
    assert page.locator(".row").first.locator("li span").all_inner_texts() == list(hostile.words)
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0 && image.alt)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def test_the_verb_prints_draws_and_gives_json(
    run_of: RunOf, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, asked = run_of("pcme csd"), ("--image", picture, "--text", TEXT)
    assert halation("explain", run, *asked, "-o", tmp_path / "a.png", "-o", tmp_path / "a.html") == 0
    said = capsys.readouterr()
    for words in ("distance of the means", "spread of the image", "spread of the text", "score", "halation calibrate"):
        assert words in said.out
    assert "a.png" in said.err and (tmp_path / "a.png").is_file() and (tmp_path / "a.html").is_file()
    assert halation("explain", run, *asked, "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == TEXT
    for wrong, why in ((tmp_path / "a.pdf", ".png or .html"), (tmp_path / "no" / "a.png", "existing folder")):
        assert halation("explain", run, *asked, "-o", wrong) == 2
        assert why in capsys.readouterr().err
    assert halation("explain", run, "--image", tmp_path / "no.png", "--text", TEXT) == 2
    assert "does not exist" in capsys.readouterr().err
