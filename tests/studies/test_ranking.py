"""Which metric ranks models as people do: the page follows its numbers, and a correlation is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies import RankingStudy
from studies.ranking import METRICS, PEOPLE

DOCS = Path(__file__).parents[2] / "docs" / "studies"


def test_the_page_follows_its_numbers() -> None:
    study = RankingStudy.read(DOCS / "ranking.json")
    assert study.to_markdown() == (DOCS / "ranking.md").read_text(encoding="utf-8")
    assert len(study.runs) >= 20


def test_a_metric_that_orders_models_as_people_do_has_correlation_one(tmp_path: Path) -> None:
    rows = [
        {"run": f"r{k}", **dict.fromkeys(METRICS, float(k)), **dict.fromkeys(PEOPLE, float(k**2))} for k in range(6)
    ]
    for k, row in enumerate(rows):
        row["R@1"] = -float(k)
    study = RankingStudy(rows)  # type: ignore[arg-type]
    assert study.correlation("R-sum", PEOPLE[0]) == pytest.approx(1)
    assert study.correlation("R@1", PEOPLE[0]) == pytest.approx(-1)
    written = study.write(tmp_path)
    assert RankingStudy.read(written[1]) == study
    assert "+1.00 [+1.00, +1.00]" in written[0].read_text(encoding="utf-8")
