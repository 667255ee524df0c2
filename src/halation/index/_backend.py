"""`Backend`: five methods over points and their keys, on which an index is built."""

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
    """Stores points under keys and finds the nearest. Any object with a name and these five methods will do.

    A saved index records the `name`. To load an index with a backend of your own, pass it to `Index.load`.
    """

    name: str

    def add(self, keys: Keys, points: Points) -> None:
        """Store points (n, d) under different keys (n,); a key that exists gets the new point."""
        ...

    def remove(self, keys: Keys) -> None:
        """Forget keys (n,); keys that do not exist are ignored."""
        ...

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """Keys and squared L2 distances (q, k) of the k nearest, nearest first; −1 and inf where there are fewer."""
        ...

    def save(self, folder: Path) -> None:
        """Write the points and settings into an empty folder, for `load`."""
        ...

    def load(self, folder: Path) -> None:
        """Replace everything held now by what `save` wrote into the folder."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A backend with a structure that is chosen and tuned after points were added."""

    @property
    def needs_tuning(self) -> bool:
        """Whether enough was added to tune it (again)."""
        ...

    def tune(self, queries: Points) -> dict[str, Any]:
        """Choose and tune the structure on query points. Returns the choice and its recall."""
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
