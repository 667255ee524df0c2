"""How times and memory are taken: alternating repeats in one process, peak memory in a child process of its own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The best of some repeats: the machine may be shared, and noise only ever adds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def side_by_side(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int = 3) -> tuple[float, float]:
    """The best of as many repeats of either, turn about, after one of ours to warm up: what slows one slows both."""
    ours()
    pairs = [(seconds(ours, 1), seconds(theirs, 1)) for _ in range(repeats)]
    return min(mine for mine, _ in pairs), min(other for _, other in pairs)


def peak_mb(work: Callable[..., Any], *arguments: Any) -> float:
    """Megabytes that `work(*arguments)` adds, at its peak, to a process that has its inputs already.

    `work` is a module-level function that prepares its inputs, calls the `ready` it is given, and then does the work.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure_peak, args=(sender, work, arguments))
    child.start()
    sender.close()
    try:
        return float(receiver.recv())
    finally:
        child.join()


def _measure_peak(sender: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    baseline = peak = 0.0
    stop = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.wait(0.005):
            peak = max(peak, _resident_mb())

    def ready() -> None:
        nonlocal baseline, peak
        baseline = peak = _resident_mb()
        threading.Thread(target=watch, daemon=True).start()

    work(ready, *arguments)
    stop.set()
    sender.send(max(peak, _resident_mb()) - baseline)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def machine() -> str:
    """The machine in a line, without its name."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "unknown processor",
    )
    return f"{model}, {len(os.sched_getaffinity(0))} cores"
