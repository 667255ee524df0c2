"""The README's tree and tables are in step with the repository. (Its code runs in test_docs.py.)"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLES = runpy.run_path(str(ROOT / "docs" / "tables.py"))


def test_every_room_is_in_the_tree() -> None:
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("## The tree")[1]
    for room in sorted((ROOT / "src" / "halation").iterdir()):
        if room.is_dir() and not room.name.startswith("_"):
            assert f"  {room.name}/" in tree, room.name


@pytest.mark.parametrize("page", TABLES["PAGES"])
def test_the_tables_of_the_page_are_those_of_the_measured_numbers(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert TABLES["filled"](text) == text, f"{page} is not in step with its numbers; run: python docs/tables.py"


def test_a_table_that_nobody_makes_is_named() -> None:
    with pytest.raises(KeyError, match="wings"):
        TABLES["filled"]("<!-- table: wings -->\n<!-- /table -->\n")


def test_what_stands_between_the_marks_is_replaced_and_nothing_else() -> None:
    old = "before\n<!-- table: results -->\nold\n<!-- /table -->\nafter\n"
    new = TABLES["filled"](old)
    assert new.startswith("before\n<!-- table: results -->\n\n| model")
    assert new.endswith("|\n\n<!-- /table -->\nafter\n") and "old" not in new
    assert TABLES["filled"](new) == new
