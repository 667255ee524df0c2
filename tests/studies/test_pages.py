"""The pages of the studies: made of the numbers in the repository, and narrow enough to read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from studies.__main__ import main
from studies.page import Table, grouped, without_repeats

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("results.md", "studies/humans.md", "studies/positives.md", "studies/trust.md")


def test_the_pages_are_what_the_numbers_make_of_them(tmp_path: Path) -> None:
    for path in [*DOCS.glob("results/*.json"), *DOCS.glob("studies/*.json")]:
        target = tmp_path / path.relative_to(DOCS)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    with pytest.raises(SystemExit) as stop:
        main(["pages", "--out", str(tmp_path)])
    assert not stop.value.code
    for name in PAGES:
        made, kept = ((folder / name).read_text(encoding="utf-8") for folder in (tmp_path, DOCS))
        assert made == kept, f"docs/{name} is not what its numbers make of it; run python -m studies pages"


def test_a_folder_without_numbers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["pages", "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert f"{tmp_path} has no stored numbers of a study" in capsys.readouterr().err


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_narrow_tables_and_short_lines(name: str) -> None:
    lines = (DOCS / name).read_text(encoding="utf-8").splitlines()
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120
    assert max(line.count(" | ") + 1 for line in lines if line.startswith("|")) <= 7


def test_a_repeated_label_is_shown_once() -> None:
    rows = [["a", "x", "1"], ["a", "x", "2"], ["b", "x", "3"]]
    assert without_repeats(rows, 2) == [["a", "x", "1"], ["", "", "2"], ["b", "x", "3"]]
    assert without_repeats(rows) == [["a", "x", "1"], ["", "x", "2"], ["b", "x", "3"]]
    assert grouped(rows) == [["**a**", ""], ["x", "1"], ["x", "2"], ["**b**", ""], ["x", "3"]]


def test_a_note_stands_above_the_table_on_a_page_and_below_it_in_a_terminal() -> None:
    table = Table("Title", ["run", "x"], [["**a**", "1"]], "\\* a note.")
    assert table.markdown(3) == "### Title\n\n\\* a note.\n\n| run | x |\n| --- | ---: |\n| **a** | 1 |"
    assert table.text().splitlines()[0] == "Title" and table.text().splitlines()[-1] == "* a note."
    assert "**" not in table.text()
