"""The tables of README and docs that are made of measured numbers, written between their marks.

    python docs/tables.py

A page says <!-- table: NAME --> … <!-- /table -->; what stands between is replaced.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from halation import _table
from halation._files import write_text

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/reading_sigma.md", "docs/index_backends.md")
MODELS = {
    "cca": "CCA, in closed form", "infonce": "InfoNCE", "committee": "InfoNCE, committee of 3", "vse": "VSE++",
    "pvse": "PVSE", "pcme": "PCME", "pcmepp": "PCME++", "sgr": "SGR", "saf": "SAF",
}  # fmt: skip
SEEDS = range(10)
_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- /table -->)", re.DOTALL)


def filled(text: str) -> str:
    """The text with its tables made anew."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


def _runs(recipe: str) -> list[dict[str, Any]]:
    """What was measured of a recipe, a run per seed."""
    paths = (ROOT / "docs" / "results" / f"{recipe}-seed{seed}.json" for seed in SEEDS)
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]


def _both(runs: list[dict[str, Any]], metric: str) -> str:
    return " / ".join(f"{np.mean([run['test'][side][metric] for run in runs]):.1f}" for side in ("i2t", "t2i"))


def results() -> str:
    """Every model, alone and with DAA: recall and ASP."""
    header = ["model", "R@1", "R-sum", "ASP(tfidf)", "+ DAA: R-sum", "+ DAA: ASP(tfidf)", "minutes"]
    rows = []
    for model, name in MODELS.items():
        alone, with_daa = _runs(f"flickr8k_{model}"), _runs(f"flickr8k_{model}_daa")
        if not alone:
            continue
        minutes = min(run["seconds"] for run in alone) / 60  # of the quickest: a machine may do other work
        daa = [_rsum(with_daa), _both(with_daa, "ASP(tfidf)")] if with_daa else ["", ""]
        rows.append([name, _both(alone, "R@1"), _rsum(alone), _both(alone, "ASP(tfidf)"), *daa, f"{minutes:.0f}"])
    shown = [column for column in range(len(header)) if any(row[column] for row in rows)]
    return _table.markdown([header[n] for n in shown], [[row[n] for n in shown] for row in rows])


def _rsum(runs: list[dict[str, Any]]) -> str:
    return f"{np.mean([run['test']['rsum'] for run in runs]):.1f}"


def fifths() -> str:
    """R@1 by fifth of uncertainty, of the models that have any."""
    header = ["model", "queries", "most certain", "2", "3", "4", "least certain"]
    rows = []
    for model, name in MODELS.items():
        runs = _runs(f"flickr8k_{model}")
        if not runs or runs[0]["test"]["fifths"]["captions"] is None:
            continue
        for side in ("captions", "images"):
            values = np.mean([run["test"]["fifths"][side] for run in runs], axis=0)
            rows.append([name, side, *(f"{value:.1f}" for value in values)])
    return _table.markdown(header, rows)


def _sizing() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "docs" / "sizing.json").read_text(encoding="utf-8"))
    return found


def rates() -> str:
    """Items embedded by one core."""
    found = _sizing()
    measured = {
        "JPEG of 500 × 375 decoded and made ready": found["pictures"]["decoded"],
        "EfficientNet-Lite0 and a head": found["pictures"]["encoded"],
        **{f"captions of 11 words, {name}": rate for name, rate in found["captions"].items()},
    }
    rows = [[what, f"{rate:,.0f}", f"{3600 * rate:,.0f}"] for what, rate in measured.items()]
    return _table.markdown(["one core", "a second", "a core-hour"], rows)


def latency() -> str:
    """One query, ten hits, by the size of the index."""
    header = ["items", "structure", "compared with", "recall@10", "median, one core", "build, one core"]
    rows = []
    for one in _sizing()["index"]:
        flat = one["structure"] == "flat"
        inside = "all" if flat else f"{one['probes']} of {one['lists']:,} lists"
        compared = one["items"] if flat else one["lists"] + one["probes"] * one["items"] / one["lists"]
        built = f"{one['build_s']:,.0f} s"
        shown = [f"{one['items']:,}", inside, f"{compared:,.0f}", f"{one['recall']:.3f}", f"{one['ms']:.2f} ms", built]
        rows.append(shown)
    return _table.markdown(header, rows)


def billion() -> str:
    """From what was measured to 10⁹ items; docs/index_backends.md says how."""
    found = _sizing()
    seconds = 1 / found["pictures"]["decoded"] + 1 / found["pictures"]["encoded"]
    flat, largest = found["index"][0], found["index"][-1]
    each = flat["ms"] / flat["items"]  # of a comparison, everything else put on it
    point = 4 * -(-(found["dim"] + 1) // 8) * 8
    header = [
        "items",
        "core-hours to embed",
        "index on disk",
        "points in memory",
        "lists × probes",
        "compared",
        "one core",
    ]
    rows = []
    for power in range(6, 10):
        n = 10**power
        lists, probes = 2 ** round(math.log2(4 * math.sqrt(n))), largest["probes"] * 2 ** (power - 6)
        compared = lists + probes * n / lists
        rows.append(
            [
                f"10{'⁶⁷⁸⁹'[power - 6]}",
                f"{n * seconds / 3600:,.0f}",
                _bytes(n * largest["bytes"]),
                _bytes(n * point),
                f"{lists:,} × {probes}",
                f"{compared:,.0f}",
                f"{each * compared:.1f} ms",
            ]
        )
    return _table.markdown(header, rows)


def _bytes(count: float) -> str:
    return f"{count / 1e12:.1f} TB" if count >= 1e12 else f"{count / 1e9:.1f} GB"


TABLES: dict[str, Callable[[], str]] = {
    "results": results,
    "fifths": fifths,
    "rates": rates,
    "latency": latency,
    "billion": billion,
}


def main() -> None:
    """All pages that have tables."""
    for name in PAGES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            write_text(path, new)
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
