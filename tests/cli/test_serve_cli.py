"""`halation serve` at the prompt: what it refuses, and how it says so. (tests/serve tests the server itself.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from halation.cli import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["serve", *arguments])
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("halation: ") and message.count("\n") == 1
    return message


def test_each_wrong_option_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HALATION_TOKEN", raising=False)
    assert "does not exist" in refused(capsys, str(tmp_path / "nothing"), "--port", "0")
    assert "not a folder that `halation index` made" in refused(capsys, str(tmp_path), "--port", "0")
    assert "a token is needed" in refused(capsys, str(tmp_path), "--host", "0.0.0.0")
    assert "at least 16" in refused(capsys, str(tmp_path), "--token", "short")
    assert "max_k is 0" in refused(capsys, str(tmp_path), "--max-k", "0")
    for option in ("--rate", "--max-upload-mb", "--max-megapixels", "--timeout"):
        for value in ("inf", "nan"):
            assert f"{option[2:]} is {value}" in refused(capsys, str(tmp_path), option, value)
    monkeypatch.setenv("HALATION_TOKEN", "a token of some length")
    assert "`halation index` made" in refused(capsys, str(tmp_path), "--host", "127.0.0.1", "--port", "0")


def test_without_the_extra_the_error_names_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    import halation.serve

    for name in [name for name in sys.modules if name.startswith("halation.serve._")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("create_app", "serve"):
        monkeypatch.delitem(halation.serve.__dict__, name, raising=False)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert 'needs the extra "serve"; pip install "halation[serve]"' in refused(capsys, "index")
