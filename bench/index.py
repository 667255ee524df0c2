"""Recall, latency, build time, load time and growth of an index, and the same for Milvus."""

from __future__ import annotations

import bisect
import functools
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch

from bench import milvus
from bench.gallery import Mixture, all_captions, all_images, embedded, normals
from bench.measuring import peak_mb, recall_at
from bench.results import Row
from halation.index import Exact, Faiss, Index
from halation.similarity import Gaussian

GROUP = "index"
MILLION, QUERIES, TARGET = 1_000_000, 1000, 0.99


def run() -> Iterator[Row]:
    if embedded() is None:
        yield Row(GROUP, "recall, latency, Milvus", "not measured: the Flickr8k folder is missing")
        return
    yield from _real()
    images, captions = Mixture(all_images(), 32), Mixture(all_captions(), 64)
    queries = captions.draw(QUERIES, seed=1)
    yield from _worst()
    yield from milvus.rows(GROUP, images.draw(100_000, seed=2), queries)
    latencies = {}
    for n in (10_000, 100_000):
        latencies[n] = _latency(Index(_names(n), images.draw(n, seed=2)), queries)
    yield from _million(images.draw(MILLION, seed=2), queries, latencies)


def _names(n: int) -> list[str]:
    return [f"image{number}.jpg" for number in range(n)]


def _recall(index: Index, items: Gaussian, queries: Gaussian) -> float:
    truth = Exact()
    truth.add(np.arange(len(items)), index._encoder.items(items, np.zeros(len(items)), []))
    keys, _ = truth.search(index._encoder.queries(queries)[0], 10)
    return recall_at(index.search(queries, 10).rows, keys)


def _lists(index: Index) -> str:
    tuning = index.meta["tuning"]
    return "flat" if tuning["structure"] == "flat" else f"{tuning['probes']} of {tuning['lists']} lists"


def _real() -> Iterator[Row]:
    images, captions = all_images(), all_captions()
    some = torch.randperm(len(captions), generator=torch.Generator().manual_seed(0))[:2000]
    cases: list[tuple[str, Gaussian, Gaussian, Any]] = [
        ("8,000 images by 2,000 captions, auto", images, captions[some], Faiss()),
        ("the same, lists forced", images, captions[some], Faiss(flat_below=1000)),
        ("40,000 captions by 2,000 images, auto", captions, images[:2000], Faiss()),
    ]
    for what, items, queries, backend in cases:
        index = Index(_names(len(items)), items, backend=backend)
        recall = _recall(index, items, queries)
        shown = f"{recall:.4f} ({_lists(index)})"
        yield Row(GROUP, f"recall@10, Flickr8k: {what}", shown, f"bar: {TARGET}", recall / TARGET, 1)


def _latency(index: Index, queries: Gaussian) -> float:
    """The median time of a single query, in seconds."""
    return _median([functools.partial(index.search, queries[i], 10) for i in range(300)])


def _median(calls: Sequence[Callable[[], Any]]) -> float:
    taken = []
    for call in calls:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken[20:]))


def _worst() -> Iterator[Row]:
    n = 100_000
    items, queries = normals(n, 128, 0), normals(500, 128, 1)
    start = time.perf_counter()
    index = Index(_names(n), items)
    built = time.perf_counter() - start
    recall, latency = _recall(index, items, queries), _latency(index, queries)
    yield Row(
        GROUP,
        "independent normals, 100,000 × 128, the worst case of any index",
        f"recall@10 {recall:.4f} ({_lists(index)}), {1e3 * latency:.2f} ms per query, built in {built:.0f} s",
    )


def _million(items: Gaussian, queries: Gaussian, latencies: dict[int, float]) -> Iterator[Row]:
    what = "1,000,000 × 128 from a mixture fitted to Flickr8k's images"
    start = time.perf_counter()
    index = Index(_names(MILLION), items)
    built = time.perf_counter() - start
    recall = _recall(index, items, queries)
    tuning = index.meta["tuning"]
    ours = f"{recall:.4f} ({_lists(index)}; {tuning['recall']:.4f} when tuned on {tuning['on']})"
    yield Row(GROUP, f"recall@10, {what}, by captions of another", ours, f"bar: {TARGET}", recall / TARGET, 1)
    yield Row(GROUP, "— build: train, add, tune", f"{built:.0f} s")
    latencies[MILLION] = _latency(index, queries)
    yield from _beside_plain(index, items, queries, recall)
    yield from _load(index)
    sizes = sorted(latencies)
    slope, _ = np.polyfit([math.log(n) for n in sizes], [math.log(latencies[n]) for n in sizes], 1)
    shown = ", ".join(f"{n:,}: {1e3 * latencies[n]:.2f} ms" for n in sizes)
    yield Row(GROUP, "— latency of a query by size (k = 10, median), growth exponent", f"{shown}; n^{slope:.2f}")


def _beside_plain(index: Index, items: Gaussian, queries: Gaussian, recall: float) -> Iterator[Row]:
    """Probabilistic search against faiss itself on the means alone, with as many lists as it needs for our recall."""
    means, query_means = items.mean.numpy(), queries.mean.numpy()
    plain = faiss.IndexIVFFlat(faiss.IndexFlatL2(128), 128, index.meta["tuning"]["lists"])
    plain.cp.niter, plain.cp.max_points_per_centroid = 10, 64
    plain.train(means[np.random.default_rng(0).choice(len(means), min(len(means), 64 * plain.nlist), replace=False)])
    plain.add(means)

    def search(points: np.ndarray, probes: int) -> np.ndarray:
        return plain.search(points, 10, params=faiss.SearchParametersIVF(nprobe=probes))[1]

    exact = Exact()
    exact.add(np.arange(len(means)), means)
    truth, _ = exact.search(query_means, 10)
    probes = 1 + bisect.bisect_left(
        range(1, 4 * index.meta["tuning"]["probes"]),
        recall,
        key=lambda n: recall_at(search(query_means, n), truth),
    )
    best = {"ours": math.inf, "plain": math.inf}
    for _ in range(3):  # in turns, so that a busy machine slows both
        best["ours"] = min(best["ours"], _latency(index, queries))
        one = [functools.partial(search, query_means[i : i + 1], probes) for i in range(300)]
        best["plain"] = min(best["plain"], _median(one))
    ours, theirs = 1e3 * best["ours"], 1e3 * best["plain"]
    yield Row(
        GROUP,
        "— probabilistic search (129 numbers per point), k = 10, median",
        f"{ours:.2f} ms ({_lists(index)})",
        f"plain faiss on the means at equal recall: {theirs:.2f} ms ({probes} of {plain.nlist} lists)",
        theirs / ours,
        round(1 / 1.15, 2),
    )


def _load(index: Index) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        start = time.perf_counter()
        index.save(f"{name}/idx")
        saved = time.perf_counter() - start
        size = sum(path.stat().st_size for path in Path(name).rglob("*") if path.is_file())
        times = []
        for verify in (False, True):
            start = time.perf_counter()
            Index.load(f"{name}/idx", verify=verify)
            times.append(time.perf_counter() - start)
        opened, searched = (peak_mb(_open, f"{name}/idx", searches) for searches in (0, 300))
    yield Row(
        GROUP,
        f"— save and load ({size / 2**30:.1f} GB)",
        f"saved in {saved:.1f} s; loaded in {times[0]:.2f} s, with every checksum compared in {times[1]:.1f} s",
    )
    yield Row(GROUP, "— memory when loaded, mapped", f"{opened:.0f} MB; after 300 searches {searched:.0f} MB")


def _open(ready: Callable[[], None], folder: str, searches: int) -> None:
    import halation.index  # first, so that the memory of its libraries is not counted

    generator = torch.Generator().manual_seed(0)
    halation.index.Index(["a"], torch.zeros(1, 8)).search(torch.zeros(1, 8), 1)
    ready()
    index = halation.index.Index.load(folder, verify=False)
    for _ in range(searches):
        index.search(torch.nn.functional.normalize(torch.randn(1, index.dim, generator=generator)), 10)
