"""docs/searching.md does what it says: every command and every example runs."""

from __future__ import annotations

import json
import re
import shlex
import tarfile
from pathlib import Path

import pytest

from halation.cli import main
from layouts import draw, write_flickr8k
from runs import write_run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "searching.md").read_text(encoding="utf-8")


def test_every_command_and_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs" / "pcme")
    write_flickr8k(tmp_path / "flickr8k")
    for number in range(8):
        draw(tmp_path / "photos" / f"p{number:02d}.png", number)
    (tmp_path / "list.jsonl").write_text(json.dumps({"image": "p01.png", "captions": ["a dog"]}))
    (tmp_path / "captions.txt").write_text("a red dog\na blue cat\n")
    (tmp_path / "shards").mkdir()
    with tarfile.open(tmp_path / "shards" / "0.tar", "w") as tar:
        tar.add(tmp_path / "photos" / "p01.png", "1.png")
    commands = re.findall(r"^\$ halation (.+)$", PAGE, re.MULTILINE)
    assert len(commands) >= 11
    for command in commands:
        assert halation(shlex.split(command)) == 0, command
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert examples
    for example in examples:
        exec(example, {})
    assert "words the model does not know: zebra" in capsys.readouterr().out


def halation(arguments: list[str]) -> int:
    try:
        main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
