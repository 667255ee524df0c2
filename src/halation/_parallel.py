"""Compiled kernels over row ranges, on threads.

Kernels are compiled with `nogil`, so plain threads run them side by side. That is thread-safe and fork-safe
whatever numba threading layer is installed, and compiles faster than `parallel=True`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba

from halation._errors import InputError

__all__ = ["kernel", "over_rows", "threads"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function once, without the interpreter lock, cached on disk; its Python form stays as `.py_func`."""
    return cast(F, numba.njit(nogil=True, cache=True)(function))


def threads() -> int:
    """How many threads to use: `HALATION_THREADS` if set, else the cores this process may run on."""
    wish = os.environ.get("HALATION_THREADS")
    if wish is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wish.isdecimal() or int(wish) < 1:
        raise InputError(f"HALATION_THREADS must be a positive whole number, not {wish!r}")
    return int(wish)


def over_rows(rows: int, work: Callable[[int, int], None], per_task: int | None = None) -> None:
    """Call `work(start, stop)` for consecutive ranges that cover 0..rows, on `threads()` threads.

    Ranges are small (four per thread unless `per_task` says otherwise) so that uneven rows balance out.
    `work` must write to disjoint rows. The first exception is raised here.
    """
    workers = threads()
    step = per_task or max(1, -(-rows // (4 * workers)))
    ranges = [(start, min(start + step, rows)) for start in range(0, rows, step)]
    if workers == 1 or len(ranges) <= 1:
        for start, stop in ranges:
            work(start, stop)
        return
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, start, stop) for start, stop in ranges]:
            done.result()
