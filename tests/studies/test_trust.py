"""The trust study: its tables, and that its numbers belong to the recipes of today.

The study itself is run in search/test_calibrate.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from halation.training import read_recipe
from studies.jobs import digest
from studies.trust import TrustStudy
from studies.trust_tables import tables

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"


@pytest.fixture
def document() -> dict[str, Any]:
    numbers: dict[str, Any] = json.loads((STUDIES / "trust.json").read_text(encoding="utf-8"))
    return numbers


def test_the_number_of_answers_is_shown_only_where_it_is_known() -> None:
    study = TrustStudy.read(STUDIES / "trust.json")
    without = [one for one in study.measured if not one.by_truth]
    titles = [[table.title for table in tables(some, study.splits)] for some in (study.measured, without)]
    assert without and set(titles[0]) - set(titles[1]) == {"The same, by how many items answer the query"}


def test_what_is_kept_is_of_todays_recipes(document: dict[str, Any]) -> None:
    for one in document["measured"]:
        place = f"trust.json, {one['world']} {one['direction']}"
        assert "digest" in one, (
            f"{place}: of which recipe it is was not written down; run python -m studies trust again"
        )
        today = digest(read_recipe(one["recipe"], [f"train.seed={one['seed']}"]))
        assert one["digest"] == today, f"{place}: of an earlier {one['recipe']}; run python -m studies trust again"
