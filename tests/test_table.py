"""Tables as text, Markdown and LaTeX."""

from __future__ import annotations

import math

from halation import _table

HEADER, ROWS = ["", "A", "B"], [["R@1", "50.00 %", "1 & 2"], ["longer_name", "–", ""]]


def test_columns_line_up() -> None:
    lines = _table.text(HEADER, ROWS).splitlines()
    assert lines[2] == "R@1          50.00 %  1 & 2"
    assert lines[0].index("A") == lines[2].index("%")


def test_title_and_notes_frame_the_table() -> None:
    lines = _table.text(HEADER, ROWS, title="what", notes=["how"]).splitlines()
    assert (lines[0], lines[-1]) == ("what", "how")


def test_markdown_has_a_cell_for_every_column() -> None:
    lines = _table.markdown(HEADER, ROWS).strip().splitlines()
    assert {line.count("|") for line in lines} == {4}
    assert lines[1] == "| --- | ---: | ---: |"


def test_latex_escapes_what_would_not_compile() -> None:
    text = _table.latex(HEADER, ROWS, notes=["how"])
    assert r"50.00 \%" in text
    assert r"1 \& 2" in text
    assert r"longer\_name" in text
    assert text.splitlines()[0] == "% how"
    assert text.count(r"\\") == 3


def test_what_was_not_measured_is_a_dash() -> None:
    assert _table.cell(math.nan) == "–"
    assert _table.cell(1.0) == "1.00"
    assert _table.cell(1.0, 0.5, math.nan) == "1.00"
