"""The contract of backends, over all that need no server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from halation.index import Backend, Exact, Faiss, Milvus, Tunable
from index_contract import BackendContract, some_points


class TestExact(BackendContract):
    @pytest.fixture
    def make(self) -> Callable[[], Backend]:
        return Exact


class TestFaissFlat(BackendContract):
    @pytest.fixture
    def make(self) -> Callable[[], Backend]:
        return Faiss


class TestFaissIVF(BackendContract):
    @pytest.fixture
    def make(self) -> Callable[[], Backend]:
        return lambda: Faiss(lists=5)

    def settled(self, backend: Any) -> Any:
        super().settled(backend)
        if backend._is_ivf:
            backend._state["probes"] = backend._index.nlist  # all lists: how few will do is for test_tuning
        return backend

    def test_it_does_have_lists(self, make: Callable[[], Any]) -> None:
        backend = make()
        backend.add(np.arange(50), some_points(50, 1))
        assert self.settled(backend)._is_ivf
        assert isinstance(backend, Tunable)


class TestMilvusFile(BackendContract):
    @pytest.fixture
    def make(self) -> Iterator[Callable[[], Backend]]:
        made: list[Milvus] = []

        def one() -> Milvus:
            made.append(Milvus())
            return made[-1]

        yield one
        for backend in made:
            backend.close()
