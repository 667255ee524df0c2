"""`python -m bench [part …]`: run the benchmarks (all, or those you name), each into its table of RESULTS.md.

Two more write nothing there and run by themselves: `python -m bench.sizing` (what a collection costs, for
docs/index_backends.md) and `python -m bench.house` (lines, rooms, imports and tests of this repository).
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from bench.results import Row, merged
from halation._files import write_text

PARTS = (
    "package", "tokenizer", "semantics", "metrics", "evaluation", "losses", "scorers", "training", "index", "hubness",
    "serve", "report",
)  # fmt: skip


def main() -> None:
    wanted = sys.argv[1:] or PARTS
    unknown = set(wanted) - set(PARTS)
    if unknown:
        sys.exit(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    target = Path(__file__).parent / "RESULTS.md"
    for part in wanted:
        rows: list[Row] = []
        for row in importlib.import_module(f"bench.{part}").run():
            rows.append(row)
            print(" | ".join(cell for cell in (row.group, *row.cells()) if cell), flush=True)
        write_text(target, merged(target.read_text(encoding="utf-8") if target.exists() else "", rows))
    print(f"wrote {target.name}")


if __name__ == "__main__":
    main()
