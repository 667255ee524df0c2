"""The three-line use of DAA runs, and does what it is for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "daa_in_your_loop.py"


def test_daa_in_your_own_loop_raises_asp_on_unseen_batches() -> None:
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=300, env=one_thread)
    assert done.returncode == 0, done.stderr
    title, without, with_daa = done.stdout.splitlines()
    assert title.split() == ["weight", "of", "DAA", "R@1", "ASP"]
    assert float(with_daa.split()[2]) > float(without.split()[2]) + 5
