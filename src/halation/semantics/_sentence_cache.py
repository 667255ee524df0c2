"""Sentence embeddings, each computed once: kept in a file that processes share and that you may delete at any time."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from halation._files import cache_folder
from halation._progress import Progress, silent
from halation.semantics._minilm import MiniLM
from halation.semantics._scorer import Float32

__all__ = ["SentenceCache", "sentence_encoder"]

_BLOCK = 4096  # sentences between two writes: a killed process loses no more
_KEY_BYTES = 16  # of a sentence's sha256
_PATIENCE = 60.0  # seconds to wait while another process writes

Encode = Callable[[list[str]], Float32]
Half = npt.NDArray[np.float16]


def sentence_encoder(*, keep: bool = True, progress: Progress = silent) -> SentenceCache:
    """MiniLM (extra `pretrained`) that encodes each sentence once on this machine.

    keep   store new embeddings in the cache folder (`HALATION_CACHE`). Searching does not: the file would grow with
           every query and record what people search for.
    """
    path = cache_folder() / f"{MiniLM.name}.sqlite"
    return SentenceCache(path, lambda: MiniLM(progress), name=MiniLM.name, keep=keep)


class SentenceCache:
    """A function from sentences to embeddings (n, d), which reads known ones from `path` and encodes the others.

    With `keep` it adds the new ones to the file. The key of a row is the sentence's sha256, so none goes stale.
    Embeddings have half precision. Processes and threads may share a file. A damaged file is replaced; a folder that
    cannot be written costs time, nothing else.

    path           an SQLite file
    make_encoder   loads the encoder, when the first unknown sentence arrives
    """

    def __init__(
        self, path: Path, make_encoder: Callable[[], Encode], *, name: str = "sentences", keep: bool = True
    ) -> None:
        self.path, self.name, self.keep = path, name, keep
        self._make_encoder = make_encoder
        self._encoder: Encode | None = None
        self._lock = threading.Lock()  # tokenizers refuse two callers at a time

    def __deepcopy__(self, memo: dict[int, object]) -> SentenceCache:
        return self  # threads share it: a copy of a text backbone, as ONNX export makes one, shares it too

    def __call__(self, sentences: Sequence[str]) -> Float32:
        """The embeddings (n, d) of n sentences."""
        keys = {sentence: _key(sentence) for sentence in sentences}
        known = self._read(keys.values())
        missing = [sentence for sentence, key in keys.items() if key not in known]
        for start in range(0, len(missing), _BLOCK):
            block = missing[start : start + _BLOCK]
            rows = dict(zip((keys[sentence] for sentence in block), self._encode(block), strict=True))
            known |= rows
            if self.keep:
                self._write(rows)
        return np.stack([known[keys[sentence]] for sentence in sentences]).astype(np.float32)

    def _encode(self, sentences: list[str]) -> Half:
        with self._lock:
            if self._encoder is None:
                self._encoder = self._make_encoder()
            return self._encoder(sentences).astype(np.float16)

    def _read(self, keys: Iterable[bytes]) -> dict[bytes, Half]:
        rows: dict[bytes, Half] = {}
        try:
            with closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)) as file:
                for key in keys:
                    for (embedding,) in file.execute("SELECT embedding FROM sentences WHERE key = ?", (key,)):
                        rows[key] = np.frombuffer(embedding, np.float16)
        except sqlite3.OperationalError:
            return {}  # no file or no table yet, or it cannot be read
        except sqlite3.DatabaseError:
            if self.keep:
                self.path.unlink(missing_ok=True)
            return {}
        return rows

    def _write(self, rows: dict[bytes, Half]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as file, file:
                file.execute(
                    "CREATE TABLE IF NOT EXISTS sentences (key BLOB PRIMARY KEY, embedding BLOB) WITHOUT ROWID"
                )
                values = ((key, row.tobytes()) for key, row in rows.items())
                file.executemany("INSERT OR IGNORE INTO sentences VALUES (?, ?)", values)
        except (OSError, sqlite3.Error):
            return


def _key(sentence: str) -> bytes:
    return hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]
