"""Seconds to import the package and to print its help."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from bench.measuring import seconds
from bench.results import Row


def run() -> Iterator[Row]:
    for what, code in (
        ("`import halation`", "import halation"),
        ("`halation --help`", "import sys; sys.argv = ['halation', '--help']\nfrom halation.cli import main\nmain()"),
        ("`import torch`, for scale", "import torch"),
    ):
        bare = seconds(lambda: _python("pass"), repeats=5)
        taken = seconds(partial(_python, code), repeats=5)
        yield Row("start", what, f"{1000 * (taken - bare):.0f} ms beyond a bare interpreter ({1000 * bare:.0f} ms)")


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
