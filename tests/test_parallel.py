"""Work over row ranges, on threads."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation._parallel import over_rows, threads


def covered(rows: int, per_task: int | None = None) -> list[int]:
    seen = np.zeros(rows, int)

    def work(start: int, stop: int) -> None:
        seen[start:stop] += 1

    over_rows(rows, work, per_task)
    return seen.tolist()


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("per_task", [None, 1, 3, 1000])
@pytest.mark.parametrize("workers", ["1", "2", "5"])
def test_every_row_is_worked_once(
    rows: int, per_task: int | None, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALATION_THREADS", workers)
    assert covered(rows, per_task) == [1] * rows


def test_an_error_is_raised_after_all_threads_have_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    finished = []

    def work(start: int, stop: int) -> None:
        if start == 0:
            raise RuntimeError("row 0")
        finished.append(start)

    with pytest.raises(RuntimeError, match="row 0"):
        over_rows(20, work, per_task=1)
    assert sorted(finished) == list(range(1, 20))


def test_work_within_work_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    total = []
    over_rows(8, lambda start, stop: total.append(sum(covered(50, 1))), per_task=1)
    assert total == [50] * 8


def test_callers_on_several_threads_share_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    results: list[list[int]] = []
    callers = [threading.Thread(target=lambda: results.append(covered(100, 5))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
    assert results == [[1] * 100] * 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_works_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "2")
    covered(10, 1)
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply_async(covered, (10, 1)).get(timeout=60) == [1] * 10


def test_the_number_of_threads_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "3")
    assert threads() == 3
    for wrong in ("0", "-1", "two", ""):
        monkeypatch.setenv("HALATION_THREADS", wrong)
        with pytest.raises(InputError, match="HALATION_THREADS"):
            threads()
    monkeypatch.delenv("HALATION_THREADS")
    assert threads() >= 1


def test_a_caller_may_ask_for_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "4")
    names: set[str] = set()
    over_rows(50, lambda start, stop: names.add(threading.current_thread().name), per_task=1, at_most=1)
    assert names == {threading.current_thread().name}


def cached_below(base: Path, package: Path, **environment: str) -> set[Path]:
    """Folders with compiled kernels, after a process that sorts a row by a kernel and compiles one of its own."""
    code = (
        "import numba, numpy as np\n"
        "from halation.metrics import hit_at\n"
        "hit_at(np.eye(3), np.eye(3, dtype=bool), k=1)\n"
        "@numba.njit(cache=True)\n"
        "def own(x): return x + 1\n"
        "print(numba.config.CACHE_DIR)\n"
    )
    script = base / "script.py"
    script.write_text(code)
    given = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | environment
    done = subprocess.run(
        [sys.executable, str(script)], env=given | {"PYTHONPATH": str(package)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == environment.get("NUMBA_CACHE_DIR", "")
    return {path.parent for path in base.rglob("*.nbi")}


def test_kernels_are_cached_below_the_users_own_folder_which_stays_set(tmp_path: Path) -> None:
    package = Path(__file__).resolve().parents[1] / "src"
    own = tmp_path / "numba"
    folders = cached_below(tmp_path, package, NUMBA_CACHE_DIR=str(own))
    assert folders and all(own in folder.parents for folder in folders)
    assert {folder.relative_to(own).parts[0][:9] for folder in folders} == {"halation-"}


def test_an_edit_anywhere_in_the_package_leaves_no_old_kernels_behind(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).resolve().parents[1] / "src" / "halation", tmp_path / "halation")
    for folder in (tmp_path / "halation").rglob("__pycache__"):
        shutil.rmtree(folder)
    before = cached_below(tmp_path, tmp_path)
    assert before and cached_below(tmp_path, tmp_path) == before
    with (tmp_path / "halation" / "_radix.py").open("a") as file:
        file.write("# edited\n")
    after = cached_below(tmp_path, tmp_path)
    assert len(after) == len(before) and not before & after
