"""What an index is built on: five methods over points and their keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from halation._errors import HalationError, InputError, one_of

__all__ = ["Backend", "BackendUnavailable", "Keys", "Points", "Tunable", "choose_backend"]

Keys = npt.NDArray[np.int64]
Points = npt.NDArray[np.float32]


@runtime_checkable
class Backend(Protocol):
    """Points under keys, and which of them are nearest. Any object with these five methods will do.

    `name` is what a saved index calls it. Pass a backend of your own to `Index.load` again.
    """

    name: str

    def add(self, keys: Keys, points: Points) -> None:
        """Store points (n, d) under keys (n,), each once; a key that exists gets the new point."""
        ...

    def remove(self, keys: Keys) -> None:
        """Forget keys (n,); keys that do not exist are ignored."""
        ...

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """Keys and squared L2 distances (q, k) of the k nearest, nearest first; −1 and inf where there are fewer."""
        ...

    def save(self, folder: Path) -> None:
        """Write what `load` needs into an empty folder."""
        ...

    def load(self, folder: Path) -> None:
        """Take over what was saved in the folder, in place of what is held now."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A backend with a structure to choose and tune after a batch was added."""

    @property
    def needs_tuning(self) -> bool:
        """Whether enough was added to tune it (again)."""
        ...

    def tune(self, queries: Points) -> dict[str, Any]:
        """Choose and tune the structure on points like those of queries. Returns what was chosen and its recall."""
        ...


class BackendUnavailable(HalationError, ConnectionError):
    """A server that should hold the points does not answer."""


def choose_backend(backend: str | Backend, recall: float = 0.99) -> Backend:
    """The backend of that name ("auto": faiss), or the object that was given.

    >>> choose_backend("auto").name
    'faiss'
    """
    if not isinstance(backend, str):
        if not isinstance(backend, Backend):
            raise InputError(f"{backend!r} is not a backend: it lacks a name or one of add, remove, search, save, load")
        return backend
    from halation.index._exact import Exact
    from halation.index._faiss import Faiss
    from halation.index._milvus import Milvus

    backends: dict[str, Callable[[], Backend]] = {
        "auto": lambda: Faiss(recall=recall),
        "exact": Exact,
        "faiss": lambda: Faiss(recall=recall),
        "milvus": lambda: Milvus(recall=recall),
    }
    return backends[one_of(backend, backends, "backend")]()
