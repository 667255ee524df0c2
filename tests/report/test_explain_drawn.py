"""Explanations drawn: over the right places, legible words, and nothing a caption says becomes markup."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from halation.report import Explanation, explain
from halation.report._explanation_views import panels, word_rows
from halation.report._pictures import brighten, colour, crop
from halation.search import Search, embed, make_index
from runs import halation

from .conftest import TEXT

RunOf = Callable[[str], Path]
HOSTILE = """red <script>window.broken=1</script> "dog" 'grass' & $x^2$ <img/src=x/onerror=window.broken=1> 🐕 漢字"""


@pytest.fixture(scope="module")
def hostile(run_of: RunOf, picture: Path) -> Explanation:
    return explain(run_of("pcme"), picture, HOSTILE)


def test_light_falls_where_the_head_looks() -> None:
    picture, weights = Image.new("RGB", (80, 40), (200, 200, 200)), np.zeros((2, 4))
    weights[1, 3] = 1.0
    shown = np.asarray(brighten(picture, weights), dtype=float)[:, :, 0]
    assert shown[30, 70] == pytest.approx(200, abs=1) and shown[10, 10] < 50
    assert shown.argmax() // 80 >= 20 and shown.argmax() % 80 >= 60


def test_red_is_for_and_blue_against() -> None:
    picture, influence = Image.new("RGB", (60, 60), (120, 120, 120)), np.array([[0.4, 0.0], [0.0, -0.4]])
    shown = np.asarray(colour(picture, influence), dtype=float)
    red, blue, none = shown[8, 8], shown[52, 52], shown[8, 52]
    assert red[0] > red[2] + 100 and blue[2] > blue[0] + 80 and np.ptp(none) < 30


def test_what_is_shown_is_the_part_the_model_sees() -> None:
    picture = Image.new("RGB", (40, 20), "black")
    picture.paste((255, 255, 255), (10, 0, 30, 20))
    seen = crop(picture, (10.0, 0.0, 30.0, 20.0), 100)
    assert seen.size == (100, 100) and np.asarray(seen).mean() > 245


@pytest.mark.parametrize("kind", ["pcme", "pcme csd", "point", "pvse", "sgraf"])
def test_every_kind_is_drawn_and_printed(kind: str, run_of: RunOf, picture: Path, tmp_path: Path) -> None:
    explained = explain(run_of(kind), picture, TEXT)
    explained.to_html(tmp_path / "why.html")
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert page.count("<img ") == len(panels(explained)) and page.count('class="row"') == len(word_rows(explained))
    assert 2 <= len(panels(explained)) <= 8 and len(word_rows(explained)) >= 1
    printed = str(explained)
    assert f"{explained.score:.4f}".replace("-", "−") in printed and "zzz (unknown)" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["why.html"]


def test_an_explanation_is_drawn_the_same_each_time(run_of: RunOf, picture: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        explained = explain(run_of("pcme"), picture, TEXT)
        explained.to_html(tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_words_stay_words(hostile: Explanation, tmp_path: Path) -> None:
    hostile.to_html(tmp_path / "why.html")
    text = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "<script" not in text and "<img/src" not in text and "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=\"(?!data:image/)", text) and "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}}])
def test_the_page_shows_itself_in_a_browser(
    hostile: Explanation, browser: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    hostile.to_html(tmp_path / "why.html")
    context = browser.new_context(**options)
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on(
        "request", lambda request: complaints.append(request.url) if request.url[:5] not in ("file:", "data:") else None
    )
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
    run, arguments = run_of("pcme csd"), ("--image", picture, "--text", TEXT)
    assert halation("explain", run, *arguments, "-o", tmp_path / "a.html") == 0
    printed = capsys.readouterr()
    for words in (
        "distance between the means",
        "spread of the image",
        "spread of the text",
        "score",
        "halation calibrate",
    ):
        assert words in printed.out
    assert "a.html" in printed.err and (tmp_path / "a.html").is_file()
    assert halation("explain", run, *arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == TEXT
    for wrong, why in ((tmp_path / "a.png", "ends in .html"), (tmp_path / "no" / "a.html", "existing folder")):
        assert halation("explain", run, *arguments, "-o", wrong) == 2
        assert why in capsys.readouterr().err
    assert halation("explain", run, "--image", tmp_path / "no.png", "--text", TEXT) == 2
    assert "does not exist" in capsys.readouterr().err


LONG_NAME = "a_very_long_name_of_a_file_" * 8
OVERLAPS = """() => {  // lines of text that leave the page, and pairs of lines that cover each other
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), boxes = [];
    while (walk.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(walk.currentNode);
        for (const box of range.getClientRects())
            if (box.width && walk.currentNode.data.trim()) boxes.push([walk.currentNode.data, box]);
    }
    const outside = boxes.filter(([, box]) => box.left < 0 || box.right > innerWidth).map(([text]) => text);
    const over = [];
    boxes.forEach(([one, a], k) => boxes.slice(k + 1).forEach(([other, b]) => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 6) over.push([one, other]);  // boxes have room for letters that hang
    }));
    return [outside, over];
}"""


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("text", ["red dog " * 60, "W" * 300])
@pytest.mark.parametrize("kind", ["soft contrastive", "sgraf"])
def test_no_words_are_cut_or_run_into_others(
    kind: str, text: str, width: int, run_of: RunOf, picture: Path, browser: Any, tmp_path: Path
) -> None:
    explained = explain(run_of(kind), picture, text)
    notes = ("a note of many words " * 20, "N" * 400)
    attention = [replace(a, of="a head of one's own with quite a long name") for a in explained.text_attention]
    replace(explained, name=LONG_NAME, notes=notes, text_attention=tuple(attention)).to_html(tmp_path / "why.html")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "why.html").as_uri())
    outside, over = page.evaluate(OVERLAPS)
    page.close()
    assert outside == [] and over == []


NEGATIVE_ZERO = re.compile(r"(?<![\w.])[-−]0(\.0*)?(e[-+]?\d+)?(?![\w.])")


def test_no_zero_is_negative_and_minus_is_a_minus(run_of: RunOf, opened: Image.Image, tmp_path: Path) -> None:
    from halation.report import Attention, Part

    known = explain(run_of("pcme"), opened, TEXT)
    zeros = np.full(len(known.words), -0.0)
    explained = replace(
        known,
        score=-0.0,
        parts=(Part("a", -0.0, "−d²"), Part("b", -1e-9, "−s"), Part("c", -0.25, "−t")),
        facts={"σ of the image (geometric mean)": -0.0, "Σσ² of the image": -1e-7, "other": -0.5},
        probability=-0.0,
        text_influence=np.where(np.arange(len(zeros)) == 1, -0.5, zeros),
        image_influence=np.array([[-0.0, -0.5], [-1e-12, 0.0]]),
        text_attention=(Attention("mean", ("",), zeros[None]),),
        image_attention=(Attention("mean", ("",), np.full((1, 2, 2), -0.0)),),
        view=(-0.0, -0.0, *map(float, opened.size)),
    )
    written = json.dumps(explained.to_dict(), ensure_ascii=False)
    assert not re.search(r"-0\.0[,}\]]", written) and '"influence": -0.5' in written and "−0.5" not in written
    explained.to_html(tmp_path / "why.html")
    page = re.sub("<style>.*</style>|<head>.*</head>|src=\"[^\"]*\"|<svg.*?</svg>", "",
                  (tmp_path / "why.html").read_text(encoding="utf-8"), flags=re.S)  # fmt: skip
    for form in (str(explained), page):
        assert not NEGATIVE_ZERO.search(form), NEGATIVE_ZERO.search(form)
        assert not re.search(r"-\d", form)
    assert "−0.5000" in str(explained) and "−0.500" in page and "−0.2500" in page


def test_an_image_like_its_text_is_no_negative_distance_away() -> None:
    from halation import similarity
    from halation.report._score_parts import score_parts
    from halation.similarity import Gaussian

    one = Gaussian.of([[0.5, 2.0]])
    for compare in (similarity.csd, similarity.l2, similarity.wasserstein2):
        assert all(math.copysign(1, part.value) == 1 for part in score_parts(compare, one, one))


def test_an_index_named_at_the_prompt_is_closed(
    run_of: RunOf, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, closed = run_of("pcme"), list[bool]()
    embed(run, picture.parent, tmp_path / "embedded", side="images")
    index = make_index(tmp_path / "embedded", tmp_path / "index")
    close = Search.close
    monkeypatch.setattr(Search, "close", lambda search: closed.append(True) or close(search))
    assert halation("explain", run, "--image", picture, "--text", "a red dog", "--index", index) == 0
    assert closed == [True]
