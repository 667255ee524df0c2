"""Tree, tables and figures are in step with the repository. (Code of README and docs runs in test_docs.py.)"""

from __future__ import annotations

import json
import re
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


def test_a_billion_is_a_thousand_millions() -> None:
    sizing = json.loads((ROOT / "docs" / "sizing.json").read_text(encoding="utf-8"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLES["billion"]().splitlines()[2:]]
    million, billion = rows[0], rows[-1]
    hours = 1e6 * (1 / sizing["pictures"]["decoded"] + 1 / sizing["pictures"]["encoded"]) / 3600
    assert float(million[1].replace(",", "")) == pytest.approx(hours, abs=0.5)
    assert float(billion[1].replace(",", "")) == pytest.approx(1000 * hours, abs=0.5)
    assert million[3] == "0.5 GB" and billion[3] == "544.0 GB"  # 129 numbers, padded to 136, of 4 bytes
    measured = TABLES["latency"]().splitlines()[-1].split("|")
    assert million[5] == measured[3].strip(), "at a million, what is reckoned is what was measured"


def test_the_figures_are_drawn_and_shown(tmp_path: Path) -> None:
    figures = runpy.run_path(str(ROOT / "docs" / "figures.py"))
    figures["main"](tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    ideas = (ROOT / "docs" / "ideas.md").read_text(encoding="utf-8")
    assert drawn == {path.name for path in (ROOT / "docs" / "figures").iterdir()}
    assert drawn == set(re.findall(r"\(figures/([\w.]+)\)", ideas))


def test_a_table_that_nobody_makes_is_named() -> None:
    with pytest.raises(KeyError, match="wings"):
        TABLES["filled"]("<!-- table: wings -->\n<!-- /table -->\n")


def test_what_stands_between_the_marks_is_replaced_and_nothing_else() -> None:
    old = "before\n<!-- table: results -->\nold\n<!-- /table -->\nafter\n"
    new = TABLES["filled"](old)
    assert new.startswith("before\n<!-- table: results -->\n\n| model")
    assert new.endswith("|\n\n<!-- /table -->\nafter\n") and "old" not in new
    assert TABLES["filled"](new) == new
