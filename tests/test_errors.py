"""An error keeps its path, remedy and argument apart, so that each reader gets their own form."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

import halation
from halation import HalationError, InputError, MissingExtra
from halation.cli import main
from halation.index import BackendUnavailable

SRC = Path(halation.__file__).parent


def test_one_message_is_enough() -> None:
    error = InputError("the scores are empty")
    assert str(error) == "the scores are empty"
    assert (error.path, error.remedy, error.argument) == (None, None, None)


def test_a_python_user_reads_path_problem_remedy_and_argument() -> None:
    error = InputError("holds a run", path="runs/a", remedy="continue it", argument="resume", value=True)
    assert str(error) == "runs/a holds a run; continue it (resume=True)"
    error = InputError(": no such split", path=Path("data"), argument="split")
    assert str(error) == "data: no such split; pass split=…"


@pytest.mark.parametrize("kind", [HalationError, InputError, BackendUnavailable])
def test_every_kind_of_error_survives_the_way_to_another_process(kind: type[HalationError]) -> None:
    error = kind("is gone", path="a/b", remedy="copy it", argument="side", value="both")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error) == "a/b is gone; copy it (side='both')"
    assert again.path == Path("a/b") and isinstance(again, kind)


def test_a_missing_extra_survives_it_too() -> None:
    error = pickle.loads(pickle.dumps(MissingExtra("serving", "serve")))
    assert str(error) == 'serving needs the extra "serve"; pip install "halation[serve]"'


def test_the_command_line_shows_its_own_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", str(tmp_path), "--host", "0.0.0.0"])
    assert capsys.readouterr().err.endswith("take the output of `openssl rand -hex 16` (--token)\n")


def test_the_library_names_no_flag_of_the_command_line() -> None:
    flag = re.compile(r"(?<![\w-])--[a-z]")
    for path in sorted(SRC.rglob("*.py")):
        if "cli" in path.parts or path.name in ("_card.py", "_errors.py", "_origin.py"):
            continue  # a model's card shows commands; features that do not fit are refused with the command for others
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not flag.search(node.value), f"{path} line {node.lineno}: {node.value}"
