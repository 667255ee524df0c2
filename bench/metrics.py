"""ASP against a per-row double argsort in torch, both directions of a 5,000 × 25,000 matrix, same threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bench.measuring import peak_mb, seconds
from bench.results import Row
from halation import metrics
from halation._parallel import threads

IMAGES, CAPTIONS = 5000, 25_000


def run() -> Iterator[Row]:
    scores, relevance = _inputs()
    metrics.asp(scores[:64, :100], relevance[:64, :100])
    ours = seconds(lambda: _ours(scores, relevance), repeats=3)
    sample = 10  # the double argsort is timed on the first tenth of the queries of both directions
    theirs = sample * seconds(lambda: _double_argsort(scores, relevance, sample), repeats=1)
    memory = peak_mb(_peak)
    what = f"ASP, both directions of {IMAGES:,} × {CAPTIONS:,}, {threads()} threads"
    yield Row(
        "metrics",
        what,
        f"{ours:.2f} s",
        f"double argsort per row in torch: {theirs:.1f} s (from a tenth of the queries)",
        theirs / ours,
        12,
    )
    yield Row(
        "metrics", "its peak memory beyond the inputs", f"{memory:,.0f} MB", "bar: 1,024 MB", 1024 / max(memory, 1.0), 1
    )


def _inputs() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    scores = generator.standard_normal((IMAGES, CAPTIONS), dtype=np.float32)
    relevance = generator.random((IMAGES, CAPTIONS), dtype=np.float32)
    relevance[generator.random(relevance.shape, dtype=np.float32) < 0.17] = 0  # as a real relevance map
    return scores, relevance


def _ours(scores: np.ndarray, relevance: np.ndarray) -> None:
    metrics.asp(scores, relevance)
    metrics.asp(scores.T, relevance.T)


def _double_argsort(scores: np.ndarray, relevance: np.ndarray, every: int) -> None:
    import torch

    torch.set_num_threads(threads())
    for s, c in ((scores, relevance), (scores.T, relevance.T)):
        for start in range(0, len(s) // every, 250):
            rows = slice(start, min(start + 250, len(s) // every))
            ranks = [
                torch.from_numpy(np.ascontiguousarray(m[rows])).argsort(dim=1, descending=True).argsort(dim=1) + 1
                for m in (s, c)
            ]
            ratio = torch.minimum(*ranks) / torch.maximum(*ranks)
            ratio.mean(dim=1)


def _peak(ready: Callable[[], None]) -> None:
    scores, relevance = _inputs()
    metrics.asp(scores[:64, :100], relevance[:64, :100])
    metrics.asp(scores[:64, :100].T, relevance[:64, :100].T)
    ready()
    _ours(scores, relevance)
