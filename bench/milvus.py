"""Milvus as a local file and as a real server, on 100,000 Gaussians; the server in a process and a network of its own.

`python -m bench.milvus FOLDER` measures the server on what the folder holds, started by tests/services/standalone.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.results import Row
from halation.index import Index, Milvus
from halation.index._exact import overlap
from halation.similarity import Gaussian

ROOT = Path(__file__).resolve().parents[1]
SERVICES = ROOT / "tests" / "services"


def rows(group: str, items: Gaussian, queries: Gaussian) -> Iterator[Row]:
    """A local file here, a server where one can be had."""
    what = f"Milvus, {len(items):,} × {items.dim}"
    yield Row(group, f"{what}: a local file (milvus-lite)", _shown(measure(None, items, queries)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items.save(folder / "items.safetensors")
        queries.save(folder / "queries.safetensors")
        command = [sys.executable, str(SERVICES / "standalone.py"), sys.executable, "-m", "bench.milvus", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)
        said = (folder / "said.json").read_text() if (folder / "said.json").is_file() else done.stderr[-500:]
    shown = _shown(json.loads(said)) if said.startswith("{") else f"not measured: {said}"
    yield Row(group, f"{what}: a server (2.3.5, standalone, loopback)", shown)


def measure(uri: str | None, items: Gaussian, queries: Gaussian) -> dict[str, float]:
    """Seconds to build and to answer, and the recall."""
    names = [f"image{number}.jpg" for number in range(len(items))]
    start = time.perf_counter()
    index = Index(names, items, backend=Milvus(uri))
    built = time.perf_counter() - start
    truth = Index(names, items, backend="exact").search(queries, 10)
    recall = float(overlap(index.search(queries, 10).rows, truth.rows).mean())
    taken = []
    for number in range(100):
        start = time.perf_counter()
        index.search(queries[number], 10)
        taken.append(time.perf_counter() - start)
    tuning = index.meta["tuning"]
    index.backend.drop()  # type: ignore[attr-defined]
    index.close()
    return {
        "built": built, "recall": recall, "median": float(np.median(taken)), "p99": float(np.quantile(taken, 0.99)),
        "probes": tuning["probes"], "lists": tuning["lists"],
    }  # fmt: skip


def _shown(found: dict[str, float]) -> str:
    lists = f"{found['probes']} of {found['lists']} lists"
    times = f"{1e3 * found['median']:.1f} ms a query (p99 {1e3 * found['p99']:.1f})"
    return f"recall@10 {found['recall']:.4f} ({lists}), {times}, built and tuned in {found['built']:.0f} s"


def main(folder: Path) -> None:
    """Start a server, measure, say so in a file."""
    sys.path.insert(0, str(SERVICES))
    from standalone import MISSING, PYTHON, Standalone

    if PYTHON not in os.environ:
        (folder / "said.json").write_text(os.environ.get(MISSING, "no server"))
        return
    server = Standalone(folder / "server")
    try:
        server.start()
        found = measure(
            server.uri, Gaussian.load(folder / "items.safetensors"), Gaussian.load(folder / "queries.safetensors")
        )
        (folder / "said.json").write_text(json.dumps(found))
    finally:
        server.remove()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
