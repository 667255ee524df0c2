"""The pictures in docs/ can be taken again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from halation.data import draw_scenes, read_scenes
from halation.search import embed, make_index
from runs import write_run

DOCS = Path(__file__).resolve().parents[1] / "docs"
SIZES = {
    "explaining.png": None,
    "report.png": (1280, 700),
    "report_disagreement.png": (1280, 908),
    "report_map.png": None,
    "serving.png": (1280, 860),
}


def take(*folders: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DOCS / "pictures.py"), *map(str, folders)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )


def test_one_command_takes_all_of_them_of_what_the_demo_left(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    if not any(map(shutil.which, ("chromium", "chromium-browser"))):
        pytest.skip("browser tests need Chromium: apt-get install chromium")
    demo, out = tmp_path / "demo", tmp_path / "out"
    draw_scenes(demo / "scenes", train=2, dev=2, test=60)
    captions = read_scenes(demo / "scenes", "test").captions
    runs = [write_run(demo / name, captions=captions) for name in ("scenes_pcme", "scenes_pcme_daa")]
    make_index(embed(runs[1], demo / "scenes", tmp_path / "embeddings", split="test"), demo / "index")
    before = (runs[0] / "config.toml").read_bytes()
    done = take(demo, out)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == sorted(SIZES)
    for name, size in SIZES.items():
        with Image.open(out / name) as picture:
            assert size is None or picture.size == size, name
            assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 30, f"{name} is empty"
    assert (runs[0] / "config.toml").read_bytes() == before


def test_without_a_demo_it_says_how_to_make_one(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    done = take(tmp_path, tmp_path / "out")
    assert done.returncode == 1 and "holds no scenes; make it with: halation demo --out" in done.stderr
    assert not (tmp_path / "out").exists()
