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


def test_latex_escapes_every_character_it_would_obey() -> None:
    text = _table.latex(["a$b", "c^d", "e~f", "g|h<i>j", "k…l", "{#}"], [])
    row = text.splitlines()[2]
    assert row == (
        r"a\$b & c\textasciicircum{}d & e\textasciitilde{}f & g\textbar{}h\textless{}i\textgreater{}j & k\dots{}l"
        r" & \{\#\} \\"
    )


def test_a_line_break_ends_neither_a_comment_nor_a_row() -> None:
    text = _table.latex(["", "A\nB"], [["x\r\ny", "1"]], notes=["one\n\\input{two}\rthree"])
    assert text.splitlines()[0] == r"% one \input{two} three"
    assert text.splitlines()[3] == r" & A B \\"
    assert text.splitlines()[5] == r"x y & 1 \\"
    assert _table.markdown(["", "A\nB"], [["x\ny", "1"]]) == "|  | A B |\n| --- | ---: |\n| x y | 1 |\n"
    assert _table.text(["", "A\nB"], [["x\ny", "1"]]).splitlines() == ["     A B", "────────", "x y    1"]


def test_a_bar_in_a_markdown_cell_starts_no_column() -> None:
    lines = _table.markdown(["", "p|q"], [["a|b", "1"]]).strip().splitlines()
    assert lines == [r"|  | p\|q |", "| --- | ---: |", r"| a\|b | 1 |"]
