"""A backend that goes away in the middle: nothing is lost, nothing is doubled, the index says so and goes on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from halation import InputError, MissingExtra, similarity
from halation.index import BackendUnavailable, Exact, Index, Milvus
from halation.index import _milvus_client as connection
from halation.index._backend import Keys, Points
from halation.similarity import Gaussian
from index_contract import some_clouds


class Flaky(Exact):
    """A backend that does half of a change and then fails, while `failing` is set."""

    name = "flaky"
    failing = False

    def add(self, keys: Keys, points: Points) -> None:
        half = len(keys) // 2 if self.failing else len(keys)
        super().add(keys[:half], points[:half])
        self._fail()

    def remove(self, keys: Keys) -> None:
        super().remove(keys[: len(keys) // 2] if self.failing else keys)
        self._fail()

    def _fail(self) -> None:
        if self.failing:
            raise BackendUnavailable("it is away")


def check(index: Index, model: dict[str, Gaussian], seed: int) -> None:
    queries = some_clouds(3, seed, 4)
    assert sorted(index.ids) == sorted(model)
    k = min(6, len(model))
    if not k:
        assert index.search(queries, 3).ids == [[], [], []]
        return
    items = Gaussian.cat([model[name] for name in index.ids])
    ranking = index.search(queries, k)
    np.testing.assert_allclose(ranking.scores, similarity.csd(queries, items).topk(k, dim=1).values.numpy(), rtol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_change_that_failed_half_way_is_as_if_it_had_not_been_tried(seed: int) -> None:
    draw = np.random.default_rng(seed)
    backend = Flaky()
    index, model = Index([], np.empty((0, 4)), backend=backend), dict[str, Gaussian]()
    for step in range(25):
        chosen = [f"n{number}" for number in draw.choice(25, size=int(draw.integers(1, 12)), replace=False)]
        backend.failing = bool(draw.random() < 0.4)
        wanted = dict(model)
        removing = draw.random() < 0.35
        try:
            if removing:
                chosen = [name for name in chosen if name in model]
                wanted = {name: value for name, value in model.items() if name not in chosen}
                index.remove(chosen)
            else:
                new = some_clouds(len(chosen), 100 * seed + step, 4)
                wanted |= {name: new[number] for number, name in enumerate(chosen)}
                index.add(chosen, new)
            model = wanted
        except BackendUnavailable:
            assert backend.failing
            assert sorted(index.ids) == sorted(model)
            found_ids = index.search(some_clouds(2, step, 4), 5).ids  # answers go on, of items that are there
            assert all(name in model for row in found_ids for name in row)
            if draw.random() < 0.5:  # the same again, as the error says
                backend.failing = False
                index.remove(chosen) if removing else index.add(chosen, new)
                model = wanted
        backend.failing = False
        index.add([], np.empty((0, 4)))
        if not index._unsure:
            check(index, model, step)
    index._synchronise()
    check(index, model, 99)


def test_an_index_is_not_saved_while_its_backend_is_away(tmp_path: Path) -> None:
    backend = Flaky()
    index = Index(["a", "b"], some_clouds(2, 1, 4), backend=backend)
    backend.failing = True
    with pytest.raises(BackendUnavailable, match="it is away"):
        index.add(["c", "d"], some_clouds(2, 2, 4))
    with pytest.raises(BackendUnavailable, match="it is away"):
        index.save(tmp_path / "idx")
    backend.failing = False
    index.save(tmp_path / "idx")
    assert Index.load(tmp_path / "idx", backend="exact").ids == ["a", "b"]


class Client:
    """A client like that of pymilvus: it raises the given errors, then answers."""

    def __init__(self, errors: list[Exception]) -> None:
        self.errors, self.calls, self.closed = errors, 0, 0

    def ask(self, timeout: float) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "an answer"

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Any:
    def to(errors: list[Exception], patience: float = 5.0) -> tuple[connection.Connection, Client]:
        client = Client(errors)
        call = connection.Connection("http://me:secret@host:19530", "token", patience)
        call.pymilvus = SimpleNamespace(MilvusClient=lambda **_: client)
        return call, client

    monkeypatch.setattr(connection.time, "sleep", lambda seconds: None)
    return to


def test_a_dropped_connection_is_made_again_and_the_call_repeated(connected: Any) -> None:
    call, client = connected([RuntimeError("server unavailable"), ConnectionResetError("connection reset")])
    prepared = []
    call.prepare = prepared.append
    assert call.do("search", "ask") == "an answer"
    assert (client.calls, client.closed, len(prepared)) == (3, 2, 3)


def test_a_server_that_stays_away_is_given_up_in_words_without_the_password(connected: Any) -> None:
    call, _ = connected([RuntimeError("server unavailable")] * 1000, patience=0.0)
    with pytest.raises(BackendUnavailable, match=r"http://host:19530 did not store points.*nothing is lost") as caught:
        call.do("store points", "ask")
    assert "secret" not in str(caught.value)
    assert "token" not in str(caught.value)


def test_a_refused_request_is_not_repeated(connected: Any) -> None:
    call, client = connected([ValueError("illegal dimension")])
    with pytest.raises(InputError, match="would not search: illegal dimension"):
        call.do("search", "ask")
    assert client.calls == 1


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"Milvus at http://127\.0\.0\.1:1 did not make a collection"):
        Index(["a"], [[0.0, 1.0]], backend=Milvus("http://127.0.0.1:1", patience=0.5))


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pymilvus", None)
    with pytest.raises(MissingExtra, match=r"halation\[milvus\]"):
        Milvus()


def test_a_local_file_is_left_where_it_is_and_found_again(tmp_path: Path) -> None:
    items, queries = some_clouds(20, 1), some_clouds(3, 2)
    names = [f"i{number}" for number in range(20)]
    backend = Milvus(str(tmp_path / "points.db"), "pictures")
    index = Index(names, items, backend=backend)
    wanted = index.search(queries, 5).ids
    index.save(tmp_path / "idx")
    index.close()
    assert not list((tmp_path / "idx").rglob("*.db"))
    loaded = Index.load(tmp_path / "idx")
    assert loaded.search(queries, 5).ids == wanted
    with pytest.raises(InputError, match=r"pictures of Milvus at .* exists already"):
        Index(names, items, backend=Milvus(str(tmp_path / "points.db"), "pictures"))
    loaded.add(["later"], queries[:1])  # and not saved: the folder and the collection no longer agree
    with pytest.raises(InputError, match="holds 21 points, and the index was saved with 20"):
        Index.load(tmp_path / "idx")
    repaired = Index.load(tmp_path / "idx", backend=Milvus(str(tmp_path / "points.db"), "pictures", replace=True))
    assert repaired.search(queries, 5).ids == wanted
    repaired.save(tmp_path / "idx")
    repaired.backend.drop()  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="does not exist any more"):
        Index.load(tmp_path / "idx")
    for one in (loaded, repaired):
        one.close()


def test_a_collection_of_another_schema_is_refused(tmp_path: Path) -> None:
    backend = Milvus(str(tmp_path / "points.db"), "ours")
    Index(["a"], torch.zeros(1, 3), backend=backend).save(tmp_path / "idx")
    client = backend._collection.call._connected()
    client.drop_collection("ours")
    client.create_collection("ours", dimension=9, metric_type="L2")
    with pytest.raises(InputError, match=r"has the fields .*not those of schema 1 with 4 numbers per point"):
        Index.load(tmp_path / "idx")
    backend.close()


def test_more_than_milvus_gives_at_once_is_refused() -> None:
    backend = Milvus()
    backend.add(np.arange(2), np.zeros((2, 3), np.float32))
    with pytest.raises(InputError, match="at most 16,384 items at once"):
        backend.search(np.zeros((1, 3), np.float32), 20_000)
    backend.close()


def test_a_token_is_read_from_the_environment_and_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALATION_MILVUS_TOKEN", "very-secret")
    backend = Milvus()
    assert backend._token == "very-secret"
    backend.save(tmp_path)
    assert "very-secret" not in "".join(path.read_text() for path in tmp_path.iterdir())
    backend.close()
