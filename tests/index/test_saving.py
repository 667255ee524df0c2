"""An index on disk: whole or not at all, mapped, checked, replaced under those who read it."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import random
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from halation import InputError, similarity
from halation._tensors import map_arrays, write_arrays
from halation.index import Exact, Faiss, Index
from halation.index._items import Items
from halation.similarity import Gaussian
from index_contract import some_clouds

QUERIES = some_clouds(4, 9)


def an_index(n: int = 50, seed: int = 1, backend: str = "faiss", **options: object) -> Index:
    return Index([f"ü{number}.jpg" for number in range(n)], some_clouds(n, seed), backend=backend, **options)  # type: ignore[arg-type]


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def same(a: Index, b: Index) -> bool:
    one, other = a.search(QUERIES, 5), b.search(QUERIES, 5)
    return one.ids == other.ids and np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize("backend", ["exact", "faiss"])
@pytest.mark.parametrize("hubness", [None, "csls", "dual_softmax"])
def test_everything_is_as_it_was(backend: str, hubness: str | None, tmp_path: Path) -> None:
    index = an_index(backend=backend, hubness=hubness, rerank=7, meta={"side": "images", "nested": {"é": [1, None]}})
    index.save(tmp_path / "idx")
    loaded = Index.load(tmp_path / "idx", probability=lambda scores: scores)
    assert same(index, loaded)
    assert loaded.ids == index.ids
    assert loaded.ids_of(np.array([49, 0, 3])) == ["ü49.jpg", "ü0.jpg", "ü3.jpg"]
    assert (loaded.dim, loaded.rerank, loaded.meta, len(loaded)) == (index.dim, 7, index.meta, 50)
    assert loaded.similarity is similarity.csd
    assert loaded.search(QUERIES, 5).probabilities is not None
    for part in ("mean", "log_var"):
        assert torch.equal(getattr(loaded.gaussians(), part), getattr(index.gaussians(), part))
    # the Gaussians are an ordinary file of Gaussians
    stored = Gaussian.load(next(tmp_path.rglob("gaussians.safetensors")))
    assert torch.equal(stored.mean, index.gaussians().mean)


def test_points_and_an_empty_index_are_saved_too(tmp_path: Path) -> None:
    for name, index in (
        ("points", Index(["a", "b"], [[0.0, 1.0], [1.0, 0.0]], similarity.cosine)),
        ("empty", Index([], np.empty((0, 2)))),
    ):
        index.save(tmp_path / name)
        loaded = Index.load(tmp_path / name)
        assert loaded.ids == index.ids
        assert loaded.search([[1.0, 0.1]], 2).ids == index.search([[1.0, 0.1]], 2).ids
        loaded.add(["c"], [[0.5, 0.5]])
        assert "c" in loaded


def test_a_similarity_comes_back_with_its_parameters(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(11)
    s = functools.partial(
        similarity.match_probability, scale=torch.tensor(4.0), shift=3.0, samples=5, generator=generator
    )
    index = Index(["a", "b", "c"], some_clouds(3, 1), s)
    index.save(tmp_path / "idx")
    loaded = Index.load(tmp_path / "idx")
    assert loaded.similarity_name == "match_probability"
    np.testing.assert_array_equal(loaded.search(QUERIES, 3).scores, index.search(QUERIES, 3).scores)


def test_a_similarity_nobody_else_knows_cannot_be_saved(tmp_path: Path) -> None:
    index = Index(["a"], some_clouds(1, 1), lambda a, b: similarity.l2(a, b))
    with pytest.raises(InputError, match=r"cannot be saved: it is not one of halation\.similarity"):
        index.save(tmp_path / "idx")
    assert list(tmp_path.iterdir()) == []


def test_loading_maps_and_copies_nothing(tmp_path: Path) -> None:
    an_index(15_000, backend="exact").save(tmp_path / "idx")
    loaded = Index.load(tmp_path / "idx")
    columns = loaded._items._mapped
    assert all(isinstance(column, np.memmap) for column in columns.values())
    faiss = Index.load(tmp_path / "idx", backend=Faiss())
    faiss.save(tmp_path / "faiss")
    mapped = Index.load(tmp_path / "faiss")
    before = _resident()
    again = Index.load(tmp_path / "faiss", verify=False)
    assert _resident() - before < 1 << 20  # of 2 MB
    assert same(again, mapped)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_a_few_names_are_looked_up_without_the_names_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "b", "ab", "ba", "aab", "ü", "a/ü.jpg", "b/ü.jpg", "狗", "b狗", "x" * 300]
    index = Index(names, some_clouds(len(names), 1))
    index.remove(["b"])  # what is gone is not found, and what follows it moves up
    index.save(tmp_path / "idx")
    names.remove("b")
    loaded = Index.load(tmp_path / "idx")
    with monkeypatch.context() as patch:
        patch.setattr(Items, "key_of", lambda items: pytest.fail("the names of all were made"))
        assert [*loaded.rows(names[::-1])] == [*range(len(names))][::-1]
        assert all(name in loaded for name in names)
        for other in ("b", "", "aa", "\ud800", "a/ü.jpgb", "x" * 299, 3, None):
            assert other not in loaded
        with pytest.raises(InputError, match="there is no item 'b' among the 10"):
            loaded.rows(["a", "b"])
    loaded.remove(["ab"])
    loaded.add(["b"], some_clouds(1, 2))
    assert "b" in loaded and "ab" not in loaded and loaded.ids_of(loaded.rows(["狗", "b"])) == ["狗", "b"]


def test_who_reads_the_old_one_keeps_it(tmp_path: Path) -> None:
    for backend in ("exact", "faiss"):
        first, second = an_index(backend=backend), an_index(40, seed=2, backend=backend)
        first.save(tmp_path / backend)
        reader = Index.load(tmp_path / backend)
        second.save(tmp_path / backend)
        assert same(reader, first)
        assert same(Index.load(tmp_path / backend), second)
        reader.add(["new"], QUERIES[:1])  # from files that have no name any more
        assert reader.search(QUERIES[:1], 1).ids == [["new"]]
        assert len([path for path in (tmp_path / backend).iterdir() if path.is_dir()]) == 1


@pytest.mark.parametrize("backend", ["exact", "faiss"])
def test_a_closed_index_leaves_no_file_open(backend: str, tmp_path: Path) -> None:
    an_index(backend=backend).save(tmp_path / "index")
    index = Index.load(tmp_path / "index")
    assert len(index.search(QUERIES, 5).ids) == 4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        index.close()
        index.close()  # once more does no harm
        del index
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


def test_an_index_may_be_saved_over_itself(tmp_path: Path) -> None:
    an_index().save(tmp_path / "idx")
    loaded = Index.load(tmp_path / "idx")
    for number in range(3):
        loaded.add([f"new{number}"], QUERIES[number])
        loaded.remove([f"ü{number}.jpg"])
        loaded.save(tmp_path / "idx")
        assert same(Index.load(tmp_path / "idx"), loaded)


def test_another_backend_takes_over_what_was_saved(tmp_path: Path) -> None:
    index = an_index(backend="faiss")
    index.save(tmp_path / "idx")
    moved = Index.load(tmp_path / "idx", backend="exact")
    assert isinstance(moved.backend, Exact)
    assert moved.search(QUERIES, 5).ids == index.search(QUERIES, 5).ids


@pytest.mark.parametrize("what", ["gaussians", "items", "form", "points"])
@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "longer"])
def test_a_damaged_or_missing_file_is_named(what: str, damage: str, tmp_path: Path) -> None:
    an_index(backend="exact").save(tmp_path)
    path = next(tmp_path.rglob(f"{what}.safetensors"))
    content = bytearray(path.read_bytes())
    if damage == "changed":
        content[len(content) // 2] ^= 1
    new = {"changed": content, "cut": content[:-3], "longer": content + b"x"}
    path.write_bytes(new[damage]) if damage in new else path.unlink()
    word = "missing" if damage == "gone" else "damaged"
    with pytest.raises(InputError, match=rf"{what}\.safetensors is {word}"):
        Index.load(tmp_path)
    if damage != "changed":  # what a glance at the sizes can tell
        with pytest.raises(InputError, match=rf"{what}\.safetensors is {word}"):
            Index.load(tmp_path, verify=False)


def test_another_format_or_no_index_at_all_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no index\.json"):
        Index.load(tmp_path)
    an_index().save(tmp_path)
    head = tmp_path / "index.json"
    whole = json.loads(head.read_text(encoding="utf-8"))
    for change, message in (
        ({"format": 4, "halation": "9.9"}, r"format 4, written by halation 9\.9.*halation index EMBEDDINGS"),
        ({"similarity": {"name": "os.system", "parameters": {}}}, "the similarity 'os.system', which this version"),
        ({"data": "../elsewhere"}, "incomplete"),
        ({"backend": "redis"}, "unknown backend 'redis'"),
    ):
        head.write_text(json.dumps(whole | change), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            Index.load(tmp_path)
    head.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"index\.json line 1"):
        Index.load(tmp_path)
    head.write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="is not the head file of an index"):
        Index.load(tmp_path)


def test_an_index_of_halation_0_1_opens(tmp_path: Path) -> None:
    """Format 2 differs from format 3 in nothing but that it never has integers as ids."""
    index = an_index(hubness="csls")
    index.save(tmp_path)
    head = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))
    (tmp_path / "index.json").write_text(json.dumps(head | {"format": 2, "halation": "0.1.0"}), encoding="utf-8")
    loaded = Index.load(tmp_path)
    assert same(loaded, index)
    loaded.save(tmp_path)
    assert json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))["format"] == 3


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = an_index()
    index.save(tmp_path / "idx")
    before = files_of(tmp_path)
    with pytest.raises(InputError, match="JSON cannot"):
        an_index(meta={"x": object()}).save(tmp_path / "idx")
    with pytest.raises(InputError, match="is a file"):
        index.save(before[0])

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Faiss, "save", full)
    with pytest.raises(InputError, match=r"No space left on device.*untouched"):
        index.save(tmp_path / "idx")
    assert files_of(tmp_path) == before
    assert same(Index.load(tmp_path / "idx"), index)


def test_killed_at_any_moment_a_save_leaves_the_old_index_or_the_new(tmp_path: Path) -> None:
    moments = random.Random(0)
    indexes = [an_index(300 + number, seed=number, backend="exact", meta={"seed": number}) for number in range(3)]
    indexes[0].save(tmp_path)
    seen = set()
    for _ in range(12):
        done, write = os.pipe()

        def save_on(write: int = write) -> None:
            for index in indexes * 1000:
                index.save(tmp_path)
                os.write(write, b".")

        child = _forked(save_on)
        os.close(write)
        start = time.monotonic()
        saves = sum(len(os.read(done, 1)) for _ in range(moments.randint(1, 3)))
        time.sleep(moments.uniform(0, 1) * (time.monotonic() - start) / saves)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(done)
        loaded = Index.load(tmp_path)
        seed = loaded.meta["seed"]
        seen.add(seed)
        assert len(loaded) == 300 + seed
        assert torch.equal(loaded.gaussians().mean, some_clouds(300 + seed, seed).mean)
    assert len(seen) > 1
    indexes[1].save(tmp_path)  # what the killed ones left goes with the next save
    assert len(list(tmp_path.iterdir())) == 2


def test_reading_while_another_process_writes_always_finds_a_whole_index(tmp_path: Path) -> None:
    indexes = [an_index(100 + number, seed=number, backend="exact", meta={"seed": number}) for number in range(3)]
    indexes[0].save(tmp_path)
    child = _forked(lambda: [index.save(tmp_path) for _ in range(1000) for index in indexes])
    try:
        for _ in range(40):
            loaded = Index.load(tmp_path)
            assert torch.equal(loaded.gaussians().mean, some_clouds(len(loaded), loaded.meta["seed"]).mean)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _forked(work: object) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads; the child starts none
        child = os.fork()
    if child == 0:
        try:
            work()  # type: ignore[operator]
        finally:
            os._exit(0)
    return child


@given(data=st.data())
def test_no_damage_to_a_file_of_arrays_does_more_than_an_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("x") / "a.safetensors"
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    write_arrays(path, {"a": ((3, 4), np.dtype("<f4"), [array]), "b": ((0,), np.dtype("u1"), [])})
    assert np.array_equal(map_arrays(path)["a"], array)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    with contextlib.suppress(InputError):
        for values in map_arrays(path).values():
            values.sum()
