"""Approximate backends: the recall that is stated is the recall there is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from halation.index import Exact, Faiss, Index, Milvus
from halation.index._tuning import fewest_probes, n_lists, overlap
from halation.similarity import Gaussian
from index_contract import some_points


def a_world(n: int, queries: int, dim: int = 16, spread: float = 0.4) -> tuple[Gaussian, Gaussian]:
    """Items in clouds around a hundred centres; queries farther out, as captions are from images."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((100, dim))

    def around(size: int, spread: float) -> Gaussian:
        means = centres[draw.integers(100, size=size)] + spread * draw.standard_normal((size, dim))
        return Gaussian(torch.tensor(means, dtype=torch.float32), torch.full((size, dim), -3.0))

    return around(n, spread), around(queries, 1.5 * spread)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("target", [0.9, 0.99])
def test_a_tuned_index_has_the_recall_it_was_given(given: bool, target: float) -> None:
    items, queries = a_world(6000, 800)
    names = [str(number) for number in range(6000)]
    index = Index(names, items, backend=Faiss(flat_below=5000, recall=target), queries=queries[:400] if given else None)
    truth = Index(names, items, backend="exact").search(queries[400:], 10)
    ranking = index.search(queries[400:], 10)
    recall = float(overlap(ranking.rows, truth.rows).mean())
    tuning = index.meta["tuning"]
    assert recall >= target
    assert tuning["recall"] >= target
    assert tuning["target"] == target
    assert tuning["structure"] == "ivf-flat"
    assert 1 <= tuning["probes"] < tuning["lists"]
    assert tuning["on"] == ("queries given" if given else "items, moved at random")
    if given:
        assert recall == pytest.approx(tuning["recall"], abs=0.02)


def test_fewer_probes_than_were_tuned_would_not_do() -> None:
    items, queries = a_world(6000, 400, spread=1.0)
    index = Index([str(n) for n in range(6000)], items, backend=Faiss(flat_below=5000, recall=0.95), queries=queries)
    backend = index.backend
    assert isinstance(backend, Faiss)
    truth = Index([str(n) for n in range(6000)], items, backend="exact").search(queries, 10)
    assert overlap(index.search(queries, 10).rows, truth.rows).mean() >= 0.95
    backend._state["probes"] = int(0.7 * backend._state["probes"])
    assert overlap(index.search(queries, 10).rows, truth.rows).mean() < 0.95


def test_tuning_finds_the_fewest_that_reach_the_target() -> None:
    """A search whose recall is known: with p probes it finds the first p of ten, so 0.7 needs seven."""
    truth = np.tile(np.arange(10), (200, 1))
    tuned = fewest_probes(
        lambda points, probes: np.where(np.arange(10) < probes, truth[: len(points)], -2),
        lambda points: truth[: len(points)],
        np.zeros((200, 2), np.float32),
        16,
        0.7,
    )
    assert tuned == {"probes": 7, "recall": 0.7, "measured_on": 100}


def test_a_target_of_everything_looks_everywhere_if_it_must() -> None:
    backend = Faiss(lists=12, recall=1.0)
    points = some_points(600, 1, dim=24)
    backend.add(np.arange(600), points)
    tuned = backend.tune(some_points(200, 2, dim=24))
    assert tuned["recall"] == 1
    assert tuned["probes"] >= 10  # independent normals: the worst case for lists
    exact = Exact()
    exact.add(np.arange(600), points)
    queries = some_points(50, 3, dim=24)
    assert overlap(backend.search(queries, 10)[0], exact.search(queries, 10)[0]).mean() > 0.998


def test_lists_that_run_short_are_made_up_for() -> None:
    backend = Faiss(lists=30)
    points = np.repeat(np.arange(30, dtype=np.float32)[:, None] * 100, 2, axis=0).repeat(4, axis=1)  # two at each place
    backend.add(np.arange(60), points)
    backend.tune(points[:20])
    backend._state["probes"] = 1
    keys, squared = backend.search(points[:3], 40)
    assert (keys >= 0).all()
    assert (np.diff(squared, axis=1) >= 0).all()
    assert all(len(set(row)) == 40 for row in keys.tolist())


def test_an_index_that_grows_is_divided_and_tuned_again() -> None:
    items, queries = a_world(9000, 200)
    names = [str(number) for number in range(9000)]
    index = Index(names[:900], items[:900], backend=Faiss(flat_below=1000), queries=queries)
    assert index.meta["tuning"] == {"structure": "flat", "recall": 1.0}
    seen = []
    for start, stop in ((900, 1100), (1100, 2000), (2000, 3000), (3000, 9000)):
        index.add(names[start:stop], items[start:stop])
        seen.append((index.meta["tuning"]["points"], index.meta["tuning"]["lists"]))
    assert seen == [
        (1100, 28),
        (1100, 28),
        (3000, 28),
        (9000, 230),
    ]  # tuned at twice the size, divided anew at four times
    truth = Index(names, items, backend="exact").search(queries, 10)
    assert overlap(index.search(queries, 10).rows, truth.rows).mean() >= 0.98


def test_a_milvus_file_is_divided_and_tuned_too() -> None:
    items, queries = a_world(3000, 260)
    names = [str(number) for number in range(3000)]
    index = Index(names, items, backend=Milvus(flat_below=2000), queries=queries[:100])
    assert index.meta["tuning"]["structure"] == "ivf-flat"
    truth = Index(names, items, backend="exact").search(queries[100:], 10)
    assert overlap(index.search(queries[100:], 10).rows, truth.rows).mean() >= 0.98
    index.close()


def test_lists_have_enough_points_each() -> None:
    assert [n_lists(n) for n in (1, 39, 10_000, 1_000_000)] == [1, 1, 256, 4096]
