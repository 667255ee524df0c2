"""A server process for tests: `python -m serving_child INDEX [key=value …]`, over a search without a model.

INDEX is a folder with a file `index.json`: {"scenes": folder, "first": how many items, "slow": seconds}. It prints its
address when it takes connections, and reads the file again at SIGHUP or POST /reload.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import halation.report
import halation.search
import serving
from halation._errors import InputError
from halation.serve import ServeSettings, serve


def open_search(folder: Path, run: Path | None = None) -> serving.WordSearch:
    try:
        about = json.loads((Path(folder) / "index.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} is no index ({error})") from None
    search = serving.scenes(Path(about["scenes"]), slow=about.get("slow", 0.0))
    search.captions = dict(list(search.captions.items())[: about["first"]])
    return search


if __name__ == "__main__":
    halation.search.open_search = open_search  # type: ignore[assignment, attr-defined]
    halation.report.explain_hit = serving.explained  # type: ignore[assignment, attr-defined]
    given: dict[str, Any] = {key: json.loads(value) for key, value in (pair.split("=", 1) for pair in sys.argv[2:])}
    serve(
        sys.argv[1],
        settings=ServeSettings(**{"port": 0, "rate": 0, "explain_rate": 0, **given}),
        ready=lambda address, app: print(address, flush=True),  # noqa: T201
    )
