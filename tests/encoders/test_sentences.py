"""Sentence embeddings computed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from halation._errors import InputError
from halation.data import Features, Tokens
from halation.encoders import Precomputed, Vocabulary, WordsAndSentence
from halation.encoders._sentences import SentenceCache, SentenceReader, cache_folder


class Counting:
    """An encoder that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, sentences: list[str]) -> np.ndarray:
        self.asked += sentences
        return np.array([[len(s), s.count("a"), 1.0] for s in sentences], dtype=np.float32)


def test_each_text_is_encoded_once_also_by_the_next_process(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    texts = ["a dog", "a cat", "a dog", "banana"]
    got = SentenceCache(tmp_path / "x" / "c.npz", lambda: first)(texts)
    assert got.tolist() == [[5, 1, 1], [5, 2, 1], [5, 1, 1], [6, 3, 1]]
    assert first.asked == ["a dog", "a cat", "banana"]
    again = SentenceCache(tmp_path / "x" / "c.npz", lambda: second)([*texts, "new"])
    assert second.asked == ["new"] and np.array_equal(again[:4], got)


@pytest.mark.parametrize("damage", [b"", b"not a file of arrays", b"PK\x03\x04 half"])
def test_a_damaged_cache_is_begun_anew(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "c.npz").write_bytes(damage)
    encoder = Counting()
    cache = SentenceCache(tmp_path / "c.npz", lambda: encoder)
    assert cache(["a dog"]).tolist() == [[5, 1, 1]] and encoder.asked == ["a dog"]


def test_a_cache_that_cannot_be_kept_still_encodes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = SentenceCache(tmp_path / "file" / "c.npz", Counting)
    assert cache(["a dog"]).tolist() == [[5, 1, 1]]


def test_the_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("HALATION_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "halation"


def test_words_and_sentence_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_CACHE", str(tmp_path))
    text = WordsAndSentence(Vocabulary(["dog", "cat"]), dim=8).eval()
    tokens = text.tokenize(["a dog", "a cat and a dog"])
    features = text(tokens)
    assert features.pooled.shape == (2, 16 + 384) and features.local is not None and features.local.shape[2] == 8
    assert tokens.sentence is not None
    assert torch.allclose(tokens.sentence.norm(dim=1), torch.ones(2), atol=1e-3)
    assert torch.equal(features.pooled[:, :16], text.words(tokens).pooled)
    with pytest.raises(InputError, match="make them with this backbone's tokenize"):
        text(Tokens(tokens.ids, tokens.mask))


def test_cells_are_averaged_into_a_coarser_grid() -> None:
    cells = torch.arange(16.0).view(1, 16, 1).expand(2, 16, 3)
    coarse = Precomputed(4, 3, grid=2)(Features(torch.zeros(2, 4), cells)).local
    assert coarse is not None and coarse[0, :, 0].tolist() == [2.5, 4.5, 10.5, 12.5]
    with pytest.raises(InputError, match="cannot be averaged into 5 × 5"):
        Precomputed(4, 3, grid=5)(Features(torch.zeros(2, 4), cells))


def test_a_reader_gives_what_the_cache_gives_and_keeps_nothing(tmp_path: Path) -> None:
    """A query is seen once: the file must not become a diary of what was asked, nor be written at each question."""
    encoder = Counting()
    SentenceCache(tmp_path / "c.npz", lambda: encoder)(["a dog", "a cat"])
    before = (tmp_path / "c.npz").read_bytes()
    second = Counting()
    reader = SentenceReader(SentenceCache(tmp_path / "c.npz", lambda: second))
    texts = ["a bus", "a cat", "a bus", "a dog"]
    expected = SentenceCache(tmp_path / "other.npz", Counting)(texts)
    assert np.array_equal(reader(texts), expected)
    assert second.asked == ["a bus"]  # each text once, and only what the cache has not
    reader(["a bus"])
    assert second.asked == ["a bus", "a bus"] and (tmp_path / "c.npz").read_bytes() == before
    empty = SentenceReader(SentenceCache(tmp_path / "none.npz", Counting))
    assert np.array_equal(empty(texts), expected) and not (tmp_path / "none.npz").exists()
