"""Sentence embeddings computed once: by content, in a file that may be deleted at any time."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from halation._storage import publish_file

__all__ = ["SentenceCache", "SentenceReader", "cache_folder"]

_BLOCK = 4096  # sentences between two writes: a kill loses no more
_KEY = 16  # bytes of a sentence's sha256

Half = npt.NDArray[np.float16]
Encode = Callable[[list[str]], npt.NDArray[np.float32]]


def cache_folder() -> Path:
    """`HALATION_CACHE` if set, else `halation` in the user's cache folder."""
    given = os.environ.get("HALATION_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "halation"


class SentenceCache:
    """Embeddings (n, d) float16 of sentences, kept in `file`; what is missing is encoded and added.

    Keys are the sentences' sha256, so nothing goes stale; a damaged file is begun anew. Where the file cannot be
    written, the embeddings are computed all the same.
    """

    def __init__(self, file: Path, encode: Callable[[], Encode]) -> None:
        self.file, self._make_encoder = file, encode
        self._encode: Encode | None = None
        self._keys: npt.NDArray[np.void] | None = None
        self._values: Half | None = None

    def __call__(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, d), kept to half precision."""
        self._load()
        keys = np.array([_key(sentence) for sentence in sentences], dtype=f"V{_KEY}")
        known = self._known(keys)
        missing = [n for n in range(len(keys)) if keys[n].tobytes() not in known]
        first = list({keys[n].tobytes(): n for n in missing}.values())  # each text once
        for start in range(0, len(first), _BLOCK):
            places = first[start : start + _BLOCK]
            self._add(keys[places], self._encoded([sentences[n] for n in places]))
        known = self._known(keys)
        assert self._values is not None
        return self._values[[known[key.tobytes()] for key in keys]].astype(np.float32)

    def _known(self, keys: npt.NDArray[np.void]) -> dict[bytes, int]:
        wanted = {key.tobytes() for key in keys}
        have = () if self._keys is None else self._keys
        return {key.tobytes(): n for n, key in enumerate(have) if key.tobytes() in wanted}

    def _encoded(self, sentences: list[str]) -> Half:
        if self._encode is None:
            self._encode = self._make_encoder()
        return self._encode(sentences).astype(np.float16)

    def _load(self) -> None:
        if self._keys is not None or not self.file.exists():
            return
        try:
            with self.file.open("rb") as handle, np.load(handle, allow_pickle=False) as found:
                keys, values = found["keys"], found["values"]
        except (OSError, EOFError, ValueError, KeyError, BadZipFile):
            return
        if keys.dtype == np.dtype(f"V{_KEY}") and values.dtype == np.float16 and len(keys) == len(values):
            self._keys, self._values = keys, values

    def _add(self, keys: npt.NDArray[np.void], values: Half) -> None:
        if self._keys is None or self._values is None:
            self._keys, self._values = keys, values
        else:
            self._keys, self._values = np.concatenate([self._keys, keys]), np.concatenate([self._values, values])
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with publish_file(self.file) as temporary, temporary.open("wb") as handle:
                np.savez(handle, keys=self._keys, values=self._values)
        except OSError:
            return  # a cache that cannot be kept costs time, nothing else


class SentenceReader:
    """What a `SentenceCache` holds, and its encoder for the rest: nothing is kept or written, threads may share it.

    For searching: a query is seen once, and a file that grew with every query would be a diary of who asked what.
    """

    def __init__(self, cache: SentenceCache) -> None:
        cache._load()
        self._rows = {} if cache._keys is None else {key.tobytes(): n for n, key in enumerate(cache._keys)}
        self._cache, self._values = cache, cache._values
        self._lock = threading.Lock()  # tokenizers refuse two callers at a time

    def __call__(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, d), rounded to half precision as the cache is."""
        rows = [self._rows.get(_key(sentence)) for sentence in sentences]
        missing = list(dict.fromkeys(text for text, row in zip(sentences, rows, strict=True) if row is None))
        fresh: dict[str, Half] = {}
        if missing:
            with self._lock:
                fresh = dict(zip(missing, self._cache._encoded(missing), strict=True))
        values = self._values
        found = [
            fresh[text] if row is None or values is None else values[row]
            for text, row in zip(sentences, rows, strict=True)
        ]
        return np.stack(found).astype(np.float32)


def _key(sentence: str) -> bytes:
    return hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()[:_KEY]
