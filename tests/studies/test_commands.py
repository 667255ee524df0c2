"""`python -m studies …`: the commands, and that the package knows nothing of them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from layouts import write_flickr8k, write_judgements
from runs import halation
from studies.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


def test_a_study_prints_its_tables_and_writes_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_judgements(write_flickr8k(tmp_path / "flickr8k", {"train": 20, "dev": 8, "test": 12}))
    main_returns(0, "humans", "--data", data, "--out", tmp_path / "out")
    printed = capsys.readouterr()
    assert "Expert τ_c" in printed.out
    assert f"wrote {tmp_path / 'out' / 'humans.md'}" in printed.err
    assert (tmp_path / "out" / "humans.json").stat().st_size > 100


def test_bad_input_is_one_line_and_code_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main_returns(2, "humans", "--data", tmp_path / "nothing", "--out", tmp_path)
    message = capsys.readouterr().err
    assert message.startswith("studies: ") and "nothing" in message and len(message.splitlines()) == 1


def test_the_module_runs_and_lists_every_study() -> None:
    command = [sys.executable, "-m", "studies", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert all(name in done.stdout for name in ("positives", "humans", "daa", "trust"))


def test_the_package_has_no_studies(capsys: pytest.CaptureFixture[str]) -> None:
    assert halation("study", "daa") == 2
    assert "unknown command 'study'" in capsys.readouterr().err
    wheel = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.hatch.build.targets.wheel]")[1]
    assert "studies" not in wheel.split("[tool.hatch.build.targets.sdist]")[0]
    for path in (ROOT / "src").rglob("*.py"):
        assert "studies" not in imported(path), path


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.py")), ids=lambda path: path.stem)
def test_a_study_imports_no_private_module_of_a_room(path: Path) -> None:
    private = [name for name in imported(path) if re.fullmatch(r"halation\.[a-z]\w*\._.*", name)]
    assert not private


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def main_returns(code: int, *arguments: object) -> None:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert (stop.value.code or 0) == code
