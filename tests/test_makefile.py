"""`make` installs what a command needs and not more."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def extras(tmp_path: Path, *target: str) -> set[str]:
    """The extras that `make TARGET` would install into a new environment."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "--no-print-directory", "-n", f"VENV={tmp_path / 'venv'}", *target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return {extra for listed in re.findall(r"'\.\[(.+?)\]'", done.stdout) for extra in listed.split(",")}


def test_the_demo_and_the_page_install_no_tests_and_no_documentation(tmp_path: Path) -> None:
    assert extras(tmp_path, "demo") == extras(tmp_path, "serve") == {"serve"}
    assert extras(tmp_path, "demo", "DATA=flickr8k") == {"serve", "pretrained"}


@pytest.mark.parametrize("target", ["test", "docs", "bench", "test-services"])
def test_whoever_works_on_the_package_gets_the_rest_on_top(tmp_path: Path, target: str) -> None:
    assert {"dev", "docs", "serve", "pretrained", "onnx", "milvus"} <= extras(tmp_path, target)


def test_what_is_there_is_not_installed_again(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    for stamp in (".ready-runs", ".ready-photos", ".ready"):
        (tmp_path / "venv" / stamp).touch()
        assert extras(tmp_path, "demo") == set()
    assert extras(tmp_path, "test") == extras(tmp_path, "demo", "DATA=flickr8k") == set()
