"""Measuring time (alternating repeats in one process) and peak memory (in a child process)."""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least seconds of some repeats; the machine may be shared, and noise only adds time."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def recall_at(keys: npt.NDArray[np.int64], truth: npt.NDArray[np.int64]) -> float:
    """The mean share of each row's true keys (q, k) that are among its keys.

    >>> recall_at(np.array([[1, 2, 3]]), np.array([[3, 4]]))
    0.5
    """
    return float((truth[:, :, None] == keys[:, None, :]).any(axis=2).mean())


def side_by_side(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int = 3) -> tuple[float, float]:
    """The least seconds of each, measured in turns so that a busy machine slows both; one call of ours warms up."""
    ours()
    pairs = [(seconds(ours, 1), seconds(theirs, 1)) for _ in range(repeats)]
    return min(mine for mine, _ in pairs), min(other for _, other in pairs)


def peak_mb(work: Callable[..., Any], *arguments: Any) -> float:
    """Peak megabytes that `work(*arguments)` adds to a process that already holds its inputs.

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
    """Processor and number of cores."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "unknown processor",
    )
    return f"{model}, {len(os.sched_getaffinity(0))} cores"
