"""`python -m bench [part …]`: run the benchmarks (all, or those named) and write RESULTS.md when all were run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from bench.results import Row, markdown
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
    rows: list[Row] = []
    for part in wanted:
        for row in importlib.import_module(f"bench.{part}").run():
            rows.append(row)
            print(" | ".join(cell for cell in (row.group, *row.cells()) if cell), flush=True)
    if tuple(wanted) == PARTS:
        target = Path(__file__).parent / "RESULTS.md"
        write_text(target, markdown(rows))
        print(f"wrote {target.name}")


if __name__ == "__main__":
    main()
