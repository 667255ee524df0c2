"""Compiled kernels over row ranges, on threads.

Kernels are compiled with `nogil`, so plain threads run them in parallel. This is safe with threads and forks for every
threading layer of numba, and compiles faster than `parallel=True`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from halation._errors import InputError
from halation._files import cache_folder

__all__ = ["kernel", "over_rows", "threads"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function to run without the interpreter lock; the result is cached on disk.

    The Python function stays available as `.py_func`. numba's cache notices changes of the function's own file only,
    but kernels also contain kernels of other files. So the cache folder is named after the state of the whole package.
    """
    with _cached_in(_kernel_folder()):
        return cast(F, numba.njit(nogil=True, cache=True)(function))


@contextmanager
def _cached_in(folder: Path) -> Iterator[None]:
    """Set numba's cache folder within the block, and restore your setting afterwards."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@functools.cache
def _kernel_folder() -> Path:
    """The cache folder: in `NUMBA_CACHE_DIR` if set, else beside the package's bytecode, else in the user's cache."""
    package = Path(__file__).parent
    name = f"halation-{_package_stamp()}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / name
    if not os.access(package, os.W_OK):
        return cache_folder() / name
    folder = package / "__pycache__" / name
    if not folder.exists():
        for outdated in folder.parent.glob("halation-*"):
            shutil.rmtree(outdated, ignore_errors=True)
    return folder


def _package_stamp() -> str:
    """A short hash of the newest change, the total size and the number of the package's source files."""
    states = [path.stat() for path in Path(__file__).parent.rglob("*.py")]
    facts = max(state.st_mtime_ns for state in states), sum(state.st_size for state in states), len(states)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def threads() -> int:
    """How many threads to use: `HALATION_THREADS` if set, else the cores this process may run on."""
    setting = os.environ.get("HALATION_THREADS")
    if setting is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not setting.isdecimal() or int(setting) < 1:
        raise InputError(f"HALATION_THREADS must be a positive whole number, not {setting!r}")
    return int(setting)


def over_rows(
    rows: int, work: Callable[[int, int], None], per_task: int | None = None, at_most: int | None = None
) -> None:
    """Call `work(start, stop)` for consecutive ranges that cover 0..rows, on `threads()` threads, or at most `at_most`.

    Ranges are small (four per thread, unless `per_task` gives their size) so that uneven rows balance out. `work` must
    write to disjoint rows. The first exception is raised when all threads have stopped.
    """
    workers = threads() if at_most is None else min(threads(), at_most)
    step = per_task or max(1, -(-rows // (4 * workers)))
    ranges = [(start, min(start + step, rows)) for start in range(0, rows, step)]
    if workers == 1 or len(ranges) <= 1 or getattr(_thread, "working", False):
        for start, stop in ranges:
            work(start, stop)
        return
    running = [_pool(workers).submit(work, start, stop) for start, stop in ranges]
    wait(running)  # all of them, also after an error: they write into the caller's arrays
    for done in running:
        done.result()


_thread = threading.local()  # .working is True on the pools' threads, so that nested work stays on its thread
_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


def _pool(workers: int) -> ThreadPoolExecutor:
    """A pool that is kept: a report makes thousands of calls, and starting threads for each would take seconds."""
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, "halation", lambda: setattr(_thread, "working", True))
        return _pools[workers]


def _forget_pools() -> None:
    global _lock
    _lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)  # a forked child has none of its parent's threads
