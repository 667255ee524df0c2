"""The README does what it says: its example runs, its commands and links exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_evaluate_example_runs_and_says_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"<!-- example: evaluate -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(found[1], names)
    report = names["report"]
    assert report.i2t["R@1"] == 100.0  # type: ignore[attr-defined]
    assert "ASP(tfidf)" in capsys.readouterr().out
    assert (tmp_path / "report.json").is_file()


def test_every_linked_file_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_room_is_in_the_tree() -> None:
    tree = README.split("## The tree")[1]
    for room in sorted((ROOT / "src" / "halation").iterdir()):
        if room.is_dir() and not room.name.startswith("_"):
            assert f"  {room.name}/" in tree, room.name


def test_every_command_of_the_readme_exists() -> None:
    from typer.main import get_command

    from halation.cli._app import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    said = set(re.findall(r"^\$ halation (\w+)", README, re.MULTILINE))
    assert said
    assert said <= known
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
