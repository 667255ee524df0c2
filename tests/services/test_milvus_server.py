"""The contract of backends over a real Milvus server, and what happens when the server goes away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from standalone import Standalone

from halation import InputError
from halation.index import Backend, BackendUnavailable, Exact, Index, Milvus, _milvus_client
from halation.index._tuning import overlap
from halation.similarity import Gaussian
from index_contract import BackendContract, some_clouds, some_points


class TestMilvusServer(BackendContract):
    @pytest.fixture
    def make(self, milvus: Standalone) -> Iterator[Callable[[], Backend]]:
        made: list[Milvus] = []

        def one() -> Milvus:
            made.append(Milvus(milvus.uri))
            return made[-1]

        yield one
        for name in {backend.collection for backend in made}:
            left = next(backend for backend in made if backend.collection == name)
            left.drop()
        for backend in made:
            backend.close()


def test_no_other_machine_can_reach_the_server(milvus: Standalone) -> None:
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


def test_an_insert_goes_on_when_the_server_is_killed_in_the_middle_of_it(
    milvus: Standalone, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, width = 12_000, 64
    points = some_points(n, 1, width)
    monkeypatch.setattr(_milvus_client, "_BYTES", 4 * width * 2000)  # six batches
    backend = Milvus(milvus.uri, flat_below=10**9, patience=180)
    sent = _kill_at(milvus, backend, monkeypatch, at=3)
    backend.add(np.arange(n), points)
    sent.join()
    assert sent.batches == 6  # two before, three after
    assert backend._collection.count() == n  # nothing lost, nothing doubled
    exact = Exact()
    exact.add(np.arange(n), points)
    queries = some_points(40, 2, width)
    keys, squared = backend.search(queries, 10)
    true_keys, true_squared = exact.search(queries, 10)
    np.testing.assert_array_equal(keys, true_keys)
    np.testing.assert_allclose(squared, true_squared, rtol=1e-4)
    every = np.concatenate([backend.search(points[start : start + 500], 1)[0][:, 0] for start in range(0, n, 3000)])
    np.testing.assert_array_equal(every, np.concatenate([np.arange(s, s + 500) for s in range(0, n, 3000)]))
    backend.drop()
    backend.close()


def test_what_was_written_a_while_ago_is_seen_without_waiting_for_the_server(milvus: Standalone) -> None:
    backend, points = Milvus(milvus.uri), some_points(50, 3)
    backend.add(np.arange(50), points)
    backend.remove(np.arange(0, 50, 2))
    assert backend._collection._level() == "Strong"
    time.sleep(6)  # "Bounded" shows what is 5 s old
    backend._collection._written -= 10
    assert backend._collection._level() == "Bounded"
    keys, _ = backend.search(points, 1)
    np.testing.assert_array_equal(keys[1::2, 0], np.arange(1, 50, 2))
    assert not (keys % 2 == 0).any()
    backend.drop()
    backend.close()


class _Killer(threading.Thread):
    """Kills the server while a batch is under way, and starts it again a second later."""

    def __init__(self, server: Standalone) -> None:
        super().__init__()
        self.server, self.now, self.batches = server, threading.Event(), 0

    def run(self) -> None:
        self.now.wait()
        time.sleep(0.02)
        self.server.kill()
        time.sleep(1)
        self.server.start()


def _kill_at(server: Standalone, backend: Milvus, monkeypatch: pytest.MonkeyPatch, at: int) -> _Killer:
    killer, do = _Killer(server), backend._collection.call.do

    def counted(what: str, method: str, *arguments: Any, **options: Any) -> Any:
        if method == "upsert":
            killer.batches += 1
            if killer.batches == at:
                killer.now.set()
        return do(what, method, *arguments, **options)

    monkeypatch.setattr(backend._collection.call, "do", counted)
    killer.start()
    return killer


def test_an_index_outlives_its_server(milvus: Standalone, tmp_path: Path) -> None:
    items, queries = some_clouds(500, 1), some_clouds(6, 2)
    names = [f"i{number}" for number in range(500)]
    backend = Milvus(milvus.uri, patience=2)
    index = Index(names, items, backend=backend)
    index.save(tmp_path / "idx")
    wanted = index.search(queries, 5).ids
    milvus.kill()
    with pytest.raises(BackendUnavailable, match="did not search within 2 s"):
        index.search(queries, 5)
    with pytest.raises(BackendUnavailable, match="nothing is lost: do the same again when it is back"):
        index.add(["new"], queries[:1])
    assert "new" not in index
    milvus.start()
    backend._collection.call.patience = 120
    assert index.search(queries, 5).ids == wanted
    index.add(["new"], queries[:1])
    exact = Index([*names, "new"], Gaussian.cat([items, queries[:1]]), backend="exact")
    assert index.search(queries, 5).ids == exact.search(queries, 5).ids
    index.remove(["new"])
    loaded = Index.load(tmp_path / "idx")
    assert loaded.search(queries, 5).ids == wanted
    assert not list((tmp_path / "idx").rglob("*.db"))
    backend.drop()
    with pytest.raises(InputError, match="does not exist any more"):
        Index.load(tmp_path / "idx")
    repaired = Index.load(tmp_path / "idx", backend=Milvus(milvus.uri))
    assert repaired.search(queries, 5).ids == wanted
    repaired.backend.drop()  # type: ignore[attr-defined]
    for one in (index, loaded, repaired):
        one.close()


def test_many_points_are_divided_into_lists_and_tuned(milvus: Standalone) -> None:
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((50, 32))
    items, queries = (
        (centres[draw.integers(50, size=n)] + 0.6 * draw.standard_normal((n, 32))).astype(np.float32)
        for n in (24_000, 400)
    )
    names = [str(number) for number in range(len(items))]
    index = Index(names, items, backend=Milvus(milvus.uri), queries=queries[:200])
    tuning = index.meta["tuning"]
    assert tuning["structure"] == "ivf-flat"
    assert tuning["recall"] >= 0.99
    truth = Index(names, items, backend="exact").search(queries[200:], 10)
    assert overlap(index.search(queries[200:], 10).rows, truth.rows).mean() >= 0.985
    index.backend.drop()  # type: ignore[attr-defined]
    index.close()
