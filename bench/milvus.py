"""Milvus as a local file and as a real server in its own process and network, on 100,000 Gaussians.

`python -m bench.milvus FOLDER` measures the server on the embeddings in a folder; tests/services/standalone.py runs it.
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

from bench.measuring import recall_at
from bench.results import Row
from halation.index import Index, Milvus
from halation.similarity import Gaussian

ROOT = Path(__file__).resolve().parents[1]
SERVICES = ROOT / "tests" / "services"
RESULT = "result.json"  # what was measured, or why it was not


def rows(group: str, items: Gaussian, queries: Gaussian) -> Iterator[Row]:
    """Measure a local file, and a server if one can be started."""
    what = f"Milvus, {len(items):,} × {items.dim}"
    yield Row(group, f"{what}: a local file (milvus-lite)", _shown(measure(None, items, queries)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items.save(folder / "items.safetensors")
        queries.save(folder / "queries.safetensors")
        command = [sys.executable, str(SERVICES / "standalone.py"), sys.executable, "-m", "bench.milvus", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)
        result = folder / RESULT
        message = result.read_text() if result.is_file() else done.stderr[-500:]
    shown = _shown(json.loads(message)) if message.startswith("{") else f"not measured: {message}"
    yield Row(group, f"{what}: a server (2.3.5, standalone, loopback)", shown)


def measure(uri: str | None, items: Gaussian, queries: Gaussian) -> dict[str, float]:
    """Seconds to build and to answer a query, and the recall."""
    names = [f"image{number}.jpg" for number in range(len(items))]
    start = time.perf_counter()
    index = Index(names, items, backend=Milvus(uri))
    built = time.perf_counter() - start
    truth = Index(names, items, backend="exact").search(queries, 10)
    recall = recall_at(index.search(queries, 10).rows, truth.rows)
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


def _shown(figures: dict[str, float]) -> str:
    lists = f"{figures['probes']} of {figures['lists']} lists"
    times = f"{1e3 * figures['median']:.1f} ms per query (p99 {1e3 * figures['p99']:.1f})"
    return f"recall@10 {figures['recall']:.4f} ({lists}), {times}, built and tuned in {figures['built']:.0f} s"


def main(folder: Path) -> None:
    """Start a server, measure it, and write the figures into a file."""
    sys.path.insert(0, str(SERVICES))
    from standalone import MISSING, PYTHON, Standalone

    if PYTHON not in os.environ:
        (folder / RESULT).write_text(os.environ.get(MISSING, "no server"))
        return
    server = Standalone(folder / "server")
    try:
        server.start()
        figures = measure(
            server.uri, Gaussian.load(folder / "items.safetensors"), Gaussian.load(folder / "queries.safetensors")
        )
        (folder / RESULT).write_text(json.dumps(figures))
    finally:
        server.remove()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
