"""The trust study: its page is what its numbers say, and these are of the recipes as they are.

The study itself is run in search/test_calibrate.py.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from halation.training import read_recipe
from studies.jobs import digest
from studies.trust_measure import Measured
from studies.trust_tables import page, tables

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STUDIES / "trust.json").read_text(encoding="utf-8"))
    for part in found["measured"]:
        for row in part["abstention"]:
            row["dev"] = math.nan if row["dev"] is None else row["dev"]  # JSON has no NaN
    return found


def test_the_page_of_the_docs_is_made_of_its_numbers(document: dict[str, Any]) -> None:
    measured = [Measured(**part) for part in document["measured"]]
    made = page(measured, document["caught"], document["splits"])
    assert made == (STUDIES / "trust.md").read_text(encoding="utf-8")


def test_how_many_answer_is_told_only_where_it_is_known(document: dict[str, Any]) -> None:
    measured = [Measured(**part) for part in document["measured"]]
    without = [one for one in measured if not one.by_truth]
    titles = [[title for title, _, _ in tables(some)] for some in (measured, without)]
    assert without and set(titles[0]) - set(titles[1]) == {"The chosen statistic, by how many items answer the query"}


def test_what_is_kept_is_of_todays_recipes(document: dict[str, Any]) -> None:
    for one in document["measured"]:
        place = f"trust.json, {one['world']} {one['direction']}"
        assert "digest" in one, (
            f"{place}: of which recipe it is was not written down; run python -m studies trust again"
        )
        today = digest(read_recipe(one["recipe"], [f"train.seed={one['seed']}"]))
        assert one["digest"] == today, f"{place}: of an earlier {one['recipe']}; run python -m studies trust again"
