"""Sentence embeddings computed once, on one machine, by all processes."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import numpy as np
import pytest

from halation._files import cache_folder
from halation.semantics import MiniLM, Semantics, caption_relevance, sentence_encoder
from halation.semantics._sentence_cache import SentenceCache


class Counting:
    """An encoder that remembers what it was given."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def __call__(self, sentences: list[str]) -> np.ndarray:
        self.encoded += sentences
        return np.array([[len(s), s.count("a"), 1.0] for s in sentences], dtype=np.float32)


def test_each_text_is_encoded_once_also_by_the_next_process(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    texts = ["a dog", "a cat", "a dog", "banana"]
    embeddings = SentenceCache(tmp_path / "x" / "c.sqlite", lambda: first)(texts)
    assert embeddings.tolist() == [[5, 1, 1], [5, 2, 1], [5, 1, 1], [6, 3, 1]]
    assert embeddings.dtype == np.float32 and first.encoded == ["a dog", "a cat", "banana"]
    again = SentenceCache(tmp_path / "x" / "c.sqlite", lambda: second)([*texts, "new"])
    assert second.encoded == ["new"] and np.array_equal(again[:4], embeddings)


def test_more_texts_than_one_block_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halation.semantics._sentence_cache._BLOCK", 30)
    texts = [f"{'a' * (n % 5)} {n}" for n in range(100)]
    expected = Counting()(texts)
    for _ in range(2):
        assert np.array_equal(SentenceCache(tmp_path / "c.sqlite", Counting)(texts), expected)


def fill(path: Path, number: int, start: threading.Barrier) -> None:
    cache = SentenceCache(path, Counting)
    start.wait()
    for part in range(20):
        cache([f"process {number} sentence {part} {n}" for n in range(50)])


def test_two_processes_that_fill_it_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    fillers = [context.Process(target=fill, args=(tmp_path / "c.sqlite", number, start)) for number in range(2)]
    for filler in fillers:
        filler.start()
    for filler in fillers:
        filler.join(120)
        assert filler.exitcode == 0
    encoder = Counting()
    cache = SentenceCache(tmp_path / "c.sqlite", lambda: encoder)
    cache([f"process {number} sentence {part} {n}" for number in range(2) for part in range(20) for n in range(50)])
    assert encoder.encoded == []


@pytest.mark.parametrize("damage", [b"", b"not a database", b"SQLite format 3\x00 half" + b"x" * 4000])
def test_a_damaged_cache_is_begun_anew(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").write_bytes(damage)
    encoder = Counting()
    for _ in range(2):
        assert SentenceCache(tmp_path / "c.sqlite", lambda: encoder)(["a dog"]).tolist() == [[5, 1, 1]]
    assert encoder.encoded == ["a dog"]


def test_a_cache_that_cannot_be_kept_still_encodes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = SentenceCache(tmp_path / "file" / "c.sqlite", Counting)
    assert cache(["a dog"]).tolist() == [[5, 1, 1]]


def test_the_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path and sentence_encoder().path.parent == tmp_path
    monkeypatch.delenv("HALATION_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "halation"


def test_a_search_reads_the_cache_and_keeps_nothing(tmp_path: Path) -> None:
    """The file must not record queries, nor be written at each of them."""
    SentenceCache(tmp_path / "c.sqlite", Counting)(["a dog", "a cat"])
    before = (tmp_path / "c.sqlite").read_bytes()
    encoder = Counting()
    reader = SentenceCache(tmp_path / "c.sqlite", lambda: encoder, keep=False)
    texts = ["a bus", "a cat", "a bus", "a dog"]
    expected = SentenceCache(tmp_path / "other.sqlite", Counting)(texts)
    assert np.array_equal(reader(texts), expected)
    assert encoder.encoded == ["a bus"]  # each text once, and only what the cache does not have
    reader(["a bus"])
    assert encoder.encoded == ["a bus", "a bus"] and (tmp_path / "c.sqlite").read_bytes() == before
    empty = SentenceCache(tmp_path / "none.sqlite", Counting, keep=False)
    assert np.array_equal(empty(texts), expected) and not (tmp_path / "none.sqlite").exists()


def test_threads_may_share_a_reader(tmp_path: Path) -> None:
    SentenceCache(tmp_path / "c.sqlite", Counting)(["a dog"])
    reader, results = SentenceCache(tmp_path / "c.sqlite", Counting, keep=False), []
    threads = [threading.Thread(target=lambda: results.append(reader(["a dog", "a cat"]).tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [[[5, 1, 1], [5, 2, 1]]] * 8


def test_measuring_takes_the_embeddings_that_training_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Counting] = []

    def load(progress: object) -> Counting:
        loads.append(Counting())
        return loads[-1]

    monkeypatch.setenv("HALATION_CACHE", str(tmp_path))
    load.name = MiniLM.name  # type: ignore[attr-defined]
    monkeypatch.setattr("halation.semantics._sentence_cache.MiniLM", load)
    captions, image_of = ["a dog", "a cat", "a banana"], [0, 1, 1]
    trained = Semantics.fit(captions, image_of, "sentence").corpus().matrix()
    assert len(loads) == 1 and loads[0].encoded == captions
    assert np.array_equal(caption_relevance(captions, image_of, "sentence"), trained)
    assert len(loads) == 1
