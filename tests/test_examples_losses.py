"""The three-line use of DAA runs, and does what it is for."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "daa_in_your_loop.py"


def test_daa_in_your_own_loop_raises_asp_on_unseen_batches() -> None:
    train = runpy.run_path(str(SCRIPT))["train"]
    _, without = train(weight=0.0)
    _, with_daa = train(weight=5.0)
    assert with_daa > without + 3


def test_the_example_prints_a_table_a_person_can_read() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["weight", "of", "DAA", "R@1", "ASP"]
    assert len(done.stdout.splitlines()) == 3
