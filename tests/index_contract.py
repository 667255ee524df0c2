"""What every backend of an index must do: one suite, run over all of them (tests/index, tests/services)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from halation.index import Backend, Index, Keys, Points, Tunable
from halation.similarity import Gaussian, csd, kl

DIM = 6


def some_points(n: int, seed: int, dim: int = DIM) -> Points:
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


def some_clouds(n: int, seed: int, dim: int = DIM) -> Gaussian:
    g = torch.Generator().manual_seed(seed)
    return Gaussian(torch.randn(n, dim, generator=g), 0.5 * torch.randn(n, dim, generator=g) - 1)


def true_nearest(model: dict[int, Points], queries: Points, k: int) -> tuple[Keys, Points]:
    """By the definition, in float64; −1 and inf where there are fewer."""
    keys = np.array(sorted(model), np.int64)
    out = np.full((len(queries), k), -1, np.int64), np.full((len(queries), k), np.inf, np.float32)
    if len(keys):
        points = np.stack([model[key] for key in keys]).astype(np.float64)
        squared = ((queries.astype(np.float64)[:, None] - points[None]) ** 2).sum(axis=2)
        order = np.argsort(squared, axis=1, kind="stable")[:, :k]
        out[0][:, : order.shape[1]] = keys[order]
        out[1][:, : order.shape[1]] = np.take_along_axis(squared, order, axis=1)
    return out


class BackendContract:
    """Subclasses give `make`, a fixture that makes an empty backend; `settled` may be overridden."""

    @pytest.fixture
    def make(self) -> Callable[[], Backend]:
        raise NotImplementedError

    def settled(self, backend: Any) -> Any:
        """The backend with its structure chosen, so that nothing is approximate."""
        if isinstance(backend, Tunable) and backend.needs_tuning:
            backend.tune(some_points(100, 99))
        return backend

    def agree(self, backend: Any, model: dict[int, Points], k: int = 5, seed: int = 7) -> None:
        queries = some_points(9, seed)
        keys, squared = self.settled(backend).search(queries, k)
        true_keys, true_squared = true_nearest(model, queries, k)
        assert keys.dtype == np.int64
        assert squared.dtype == np.float32
        np.testing.assert_array_equal(keys, true_keys)
        np.testing.assert_allclose(squared, true_squared, rtol=1e-4, atol=1e-5)

    def test_the_nearest_come_first_with_their_squared_distances(self, make: Callable[[], Backend]) -> None:
        backend, points = make(), some_points(200, 1)
        keys = np.random.default_rng(0).permutation(1000)[:200].astype(np.int64)
        backend.add(keys, points)
        self.agree(backend, dict(zip(keys.tolist(), points, strict=True)))

    def test_where_nothing_is_nothing_is_found(self, make: Callable[[], Backend]) -> None:
        keys, squared = make().search(some_points(3, 1), 4)
        assert keys.shape == squared.shape == (3, 4)
        assert (keys == -1).all()
        assert np.isposinf(squared).all()

    def test_what_is_missing_comes_last_as_minus_one(self, make: Callable[[], Backend]) -> None:
        backend, points = make(), some_points(3, 1)
        backend.add(np.arange(3), points)
        self.agree(backend, dict(enumerate(points)), k=8)

    def test_a_point_under_a_known_key_takes_the_place_of_the_old(self, make: Callable[[], Backend]) -> None:
        backend, points = make(), some_points(80, 1)
        backend.add(np.arange(80), points)
        self.settled(backend)
        new = some_points(30, 2)
        changed = np.arange(60, 90, dtype=np.int64)  # twenty are there, ten are not
        backend.add(changed, new)
        self.agree(backend, dict(enumerate(points)) | dict(zip(changed.tolist(), new, strict=True)))

    def test_what_was_removed_is_never_found(self, make: Callable[[], Backend]) -> None:
        backend, points = make(), some_points(80, 1)
        backend.add(np.arange(80), points)
        self.settled(backend)
        backend.remove(np.array([0, 5, 79, 12345]))  # one was never there
        left = {key: point for key, point in enumerate(points) if key not in (0, 5, 79)}
        self.agree(backend, left)
        backend.remove(np.array(sorted(left)))
        self.agree(backend, {})

    def test_large_keys_are_kept(self, make: Callable[[], Backend]) -> None:
        backend, points = make(), some_points(50, 1)
        keys = 2**40 + 3 * np.arange(50)
        backend.add(keys, points)
        self.agree(backend, dict(zip(keys.tolist(), points, strict=True)))

    def test_many_queries_find_what_each_finds_alone(self, make: Callable[[], Backend]) -> None:
        backend, queries = make(), some_points(1300, 3)
        backend.add(np.arange(300), some_points(300, 1))
        self.settled(backend)
        keys, _ = backend.search(queries, 3)
        for place in (0, 700, 1299):
            np.testing.assert_array_equal(backend.search(queries[place : place + 1], 3)[0][0], keys[place])

    def test_what_was_saved_is_loaded_and_may_be_changed(self, make: Callable[[], Backend], tmp_path: Path) -> None:
        backend, points = make(), some_points(90, 1)
        backend.add(np.arange(90), points)
        self.settled(backend)
        backend.remove(np.arange(0, 90, 9))
        model = {key: point for key, point in enumerate(points) if key % 9}
        backend.save(tmp_path)
        self.agree(backend, model)  # it goes on as before
        loaded = make()
        loaded.load(tmp_path)
        self.agree(loaded, model)
        loaded.add(np.array([1, 200]), some_points(2, 5))
        loaded.remove(np.array([2]))
        del model[2]
        self.agree(loaded, model | dict(zip([1, 200], some_points(2, 5), strict=True)))

    def test_an_empty_backend_is_saved_too(self, make: Callable[[], Backend], tmp_path: Path) -> None:
        make().save(tmp_path)
        loaded = make()
        loaded.load(tmp_path)
        loaded.add(np.array([3]), some_points(1, 1))
        self.agree(loaded, {3: some_points(1, 1)[0]})

    def test_any_sequence_of_changes_is_as_if_done_to_a_dictionary(
        self, make: Callable[[], Backend], tmp_path: Path
    ) -> None:
        draw = np.random.default_rng(4)
        backend, model = make(), dict[int, Points]()
        for step in range(12):
            keys = draw.choice(60, size=int(draw.integers(1, 25)), replace=False).astype(np.int64)
            if step % 3 == 2:
                backend.remove(keys)
                model = {key: point for key, point in model.items() if key not in set(keys.tolist())}
            else:
                points = some_points(len(keys), 100 + step)
                backend.add(keys, points)
                model |= dict(zip(keys.tolist(), points, strict=True))
            if step == 7:
                (tmp_path / "saved").mkdir()
                backend.save(tmp_path / "saved")
                backend = make()
                backend.load(tmp_path / "saved")
            self.agree(backend, model, seed=step)

    def test_an_index_over_it_has_the_similaritys_own_ranks_and_scores(self, make: Callable[[], Backend]) -> None:
        gallery, queries = some_clouds(120, 1), some_clouds(7, 2)
        names = [f"item {number}" for number in range(120)]
        for similarity, rerank in ((csd, 1), (kl, 12)):
            index = Index(names, gallery, similarity, self.settled(make()), rerank=rerank)
            self.settled(index.backend)
            found = index.search(queries, 10)
            scores, rows = similarity(queries, gallery).topk(10, dim=1)
            np.testing.assert_array_equal(found.rows, rows.numpy())
            np.testing.assert_allclose(found.scores, scores.numpy(), rtol=1e-4, atol=1e-4)
            assert found.ids[3] == [names[row] for row in rows[3].tolist()]

    def test_an_index_over_it_is_saved_loaded_changed_and_saved(
        self, make: Callable[[], Backend], tmp_path: Path
    ) -> None:
        gallery, queries = some_clouds(60, 1), some_clouds(4, 2)
        names = [f"{number}.jpg" for number in range(60)]
        index = Index(names, gallery, csd, make(), meta={"side": "images"})
        self.settled(index.backend)
        index.save(tmp_path / "idx")
        loaded = Index.load(tmp_path / "idx")
        assert loaded.meta["side"] == "images"
        assert loaded.ids == names
        assert loaded.search(queries, 5).ids == index.search(queries, 5).ids
        loaded.remove(names[:30])
        loaded.add(["new", "59.jpg"], queries[:2])
        loaded.save(tmp_path / "idx")
        loaded.close()
        again = Index.load(tmp_path / "idx")
        assert again.ids == [*names[30:], "new"]
        assert [found[0] for found in again.search(queries[:2], 1).ids] == ["new", "59.jpg"]
        again.close()

    def test_integers_as_ids_stay_integers(self, make: Callable[[], Backend], tmp_path: Path) -> None:
        gallery, queries = some_clouds(60, 1), some_clouds(4, 2)
        numbers = [10_000_000_000 - 7 * number for number in range(58)] + [0, -3]
        index = Index(np.array(numbers), gallery, csd, make())
        self.settled(index.backend)
        wanted = [[numbers[row] for row in rows] for rows in csd(queries, gallery).topk(5, dim=1).indices.tolist()]
        assert index.search(queries, 5).ids == wanted
        index.save(tmp_path / "idx")
        index.close()
        loaded = Index.load(tmp_path / "idx")
        assert loaded.ids == numbers and loaded.search(queries, 5).ids == wanted
        assert loaded.rows([-3, 0]).tolist() == [59, 58] and loaded.ids_of([59]) == [-3]
        assert np.int64(0) in loaded and 1 not in loaded and "0" not in loaded and True not in loaded
        loaded.remove(numbers[:30])
        loaded.add([5, -3], queries[:2])
        loaded.save(tmp_path / "idx")
        loaded.close()
        again = Index.load(tmp_path / "idx")
        assert again.ids == [*numbers[30:], 5]
        hits = [ids[0] for ids in again.search(queries[:2], 1).ids]
        assert hits == [5, -3] and all(type(one) is int for one in [*hits, *again.ids])
        again.close()
