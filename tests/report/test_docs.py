"""docs/report.md does what it says: the report's command and example run, its pictures are there and small."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from layouts import write_flickr8k
from runs import halation, write_run

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "report.md").read_text(encoding="utf-8")


def test_the_command_and_the_example_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("pcme", "pcme_daa"):
        write_run(tmp_path / "runs" / name)
    write_flickr8k(tmp_path / "flickr8k")
    (command,) = re.findall(r"^\$ halation (report .+)$", PAGE, re.MULTILINE)
    assert halation(*shlex.split(command)) == 0
    assert (tmp_path / "report" / "index.html").is_file()
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "report_run" in code)
    known: dict[str, object] = {}
    exec(example, known)
    assert known["page"] == Path("report/index.html")


def test_its_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"!\[.*?\]\((.+?)\)", PAGE)
    assert len(pictures) == 4
    assert all((DOCS / name).stat().st_size < 400_000 for name in pictures)
