"""Nothing that comes from data becomes HTML, and figures are drawn where their numbers say."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser

import pytest

from halation._web import data_block, tag
from halation.evaluation import Comparison, Difference
from halation.report._facts import Bars, Histogram, Line
from halation.report._page_head import judge, verdict
from halation.report._svg import Axes, bars, histograms, lines, ticks, whisker

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"'&\u2028"


class ParsedPage(HTMLParser):
    """Elements, attributes and text of a piece of HTML, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_text_and_attributes_come_back_as_they_were_and_make_no_element() -> None:
    seen = ParsedPage(tag("p", HOSTILE, [tag("em", HOSTILE)], title=HOSTILE, hidden=False, data_x=None))
    assert [name for name, _ in seen.elements] == ["p", "em"]
    assert seen.elements[0][1] == {"title": HOSTILE}
    assert seen.text == 2 * HOSTILE


def test_a_data_block_cannot_be_ended_from_inside() -> None:
    block = data_block("data", {"caption": HOSTILE, "<b>": ["<!--", "]]>"]})
    inside = re.fullmatch(r'<script type="application/json" id="data">(.*)</script>', block, re.S)
    assert inside is not None and not set("<>&\u2028") & set(inside[1])
    assert json.loads(inside[1]) == {"caption": HOSTILE, "<b>": ["<!--", "]]>"]}


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        data_block("data", [float("nan")])


@pytest.mark.parametrize(("low", "high"), [(0, 100), (0.131, 0.94), (-3.2, 7.7), (1e-5, 3e-5), (44.9, 45.6)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    result = ticks(low, high)
    assert 3 <= len(result) <= 8
    assert all(low - 1e-12 <= tick <= high + 1e-12 for tick in result)
    steps = {round((b - a) / (high - low), 6) for a, b in itertools.pairwise(result)}
    assert len(steps) == 1


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)]


def test_a_line_is_drawn_where_its_numbers_are() -> None:
    axes = Axes(HOSTILE, "K", "R@K", width=300, height=200, log_x=True, low=0, high=100)
    seen = ParsedPage(lines([Line(HOSTILE, (1, 10, 100), (0, 50, 100), 1)], axes, points=True))
    (path,) = [a for name, a in seen.elements if name == "path"]
    (x1, y1), (x2, y2), (x3, y3) = places(str(path["d"]))
    assert x2 == pytest.approx((x1 + x3) / 2, abs=0.11) and y2 == pytest.approx((y1 + y3) / 2, abs=0.11)
    assert x1 < x3 and y1 > y3 and path["class"] == "line s1"  # paper counts down
    assert "script" not in {name for name, _ in seen.elements} and HOSTILE in seen.text
    assert {"1", "10", "100", "50"} <= set(re.findall(r"\d+", seen.text))  # text is text


def test_the_runs_own_line_is_drawn_last_above_one_that_is_equal() -> None:
    values = ((1.0, 2.0), (5.0, 6.0))
    series = [Line("own", *values, 0), Line("other", *values, 1), Line("tf-idf", *values, 2)]
    seen = ParsedPage(lines(series, Axes("t", "x", "y"), points=True))
    drawn = [a["class"] for name, a in seen.elements if name == "path"]
    assert drawn == ["line s2", "line s1", "line s0 over"]
    alone = ParsedPage(lines(series[:1], Axes("t", "x", "y")))
    assert [a["class"] for name, a in alone.elements if name == "path"] == ["line s0"]  # nothing to lie on
    radii = {a["class"]: float(str(a["r"])) for name, a in seen.elements if name == "circle"}
    assert radii["dot s1"] > radii["dot s0"]  # a rim of it is seen


def test_what_counts_has_no_ticks_between() -> None:
    line = [Line("rsum", (1.0, 2.0, 3.0), (60.0, 70.0, 75.0))]
    assert "1.5" in ParsedPage(lines(line, Axes("t", "epoch", "y", 300, 180))).text
    assert "1.5" not in ParsedPage(lines(line, Axes("t", "epoch", "y", 300, 180, whole_x=True))).text


def test_nothing_has_a_sign_before_zero() -> None:
    result = verdict(Comparison({"R@1": row(-0.04, -1, 1, 0.9)}, {"R@1": row(0.04, -1, 1, 0.9)}, 9))
    assert result[0].startswith("A right answer comes first about as often: R@1 0.0 and 0.0 points")
    text = ParsedPage(lines([Line("l", (0.0,), (-0.0,))], Axes("t", "x", "y"), points=True)).text
    assert "x 0, y 0" in text


def test_histograms_are_as_high_as_their_shares() -> None:
    drawn = histograms([Histogram("a", (0.0, 1.0, 2.0), (1, 3))], Axes("t", "x", "y", height=200))
    (path,) = [a["d"] for name, a in ParsedPage(drawn).elements if name == "path"]
    base = float(re.findall(r"^M[-\d.]+ ([-\d.]+)", str(path))[0])
    first, second = (base - float(y) for y in re.findall(r"V([-\d.]+)H", str(path)))
    assert second == pytest.approx(3 * first, abs=0.3)


def test_bars_carry_their_numbers_for_those_who_point_at_them() -> None:
    one = Bars("run", ((0.1, 0.2), (0.2, 0.4)), (7, 8), (40.0, 20.0), (30.0, 10.0), (50.0, 30.0))
    seen = ParsedPage(bars([one], Axes("t", "σ", "R@1", low=0), ("low", "high")))
    heights = [float(str(a["height"])) for name, a in seen.elements if name == "rect"]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.2)
    assert "run, low (σ 0.1 to 0.2): 40.0 % [30.0, 50.0] of 7" in seen.text


def test_a_whisker_shows_on_which_side_of_zero_a_difference_lies() -> None:
    def spot(value: float) -> float:
        return float(
            str(next(a["cx"] for name, a in ParsedPage(whisker(value, -1, 1, 10)).elements if name == "circle"))
        )

    assert spot(-3) < 60 == spot(0) < spot(3)
    assert spot(99) == spot(10)


def row(difference: float, low: float, high: float, p: float) -> Difference:
    return Difference(50.0, 50.0 + difference, difference, low, high, p)


def test_a_verdict_needs_an_interval_without_zero_and_a_small_p() -> None:
    assert judge(row(2, 1, 3, 0.001)) == "better"
    assert judge(row(-2, -3, -1, 0.001)) == "worse"
    assert judge(row(2, 1, 3, 0.2)) == "same"
    assert judge(row(2, -1, 5, 0.01)) == "same"
    assert judge(row(-2, -3, -1, 0.001), smaller_is_better=True) == "better"  # MedR


def test_the_verdict_says_each_direction_where_they_differ() -> None:
    sure, open_ = row(8.7, 8, 9.5, 0.001), row(-0.4, -1, 0.2, 0.3)
    result = verdict(
        Comparison({"ASP(tfidf)": sure, "R@1": open_}, {"ASP(tfidf)": sure, "R@1": row(-3, -4, -2, 0.001)}, 9)
    )
    assert result == [
        "Its rankings follow relevance better: ASP +8.7 and +8.7 points.",
        "A right answer comes first about as often from image to text and less often from text to image: "
        "R@1 −0.4 and −3.0 points.",
    ]
    assert verdict(Comparison({"R@1": open_}, {"R@1": open_}, 9)) == [
        "A right answer comes first about as often: R@1 −0.4 and −0.4 points, too little for this split to tell from 0."
    ]
