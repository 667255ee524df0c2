"""Backends by name."""

from __future__ import annotations

from collections.abc import Callable

from halation._errors import InputError, one_of
from halation.index._backend import Backend
from halation.index._exact import Exact
from halation.index._faiss import Faiss
from halation.index._milvus import Milvus

__all__ = ["choose"]

_BACKENDS: dict[str, Callable[[float], Backend]] = {
    "exact": lambda recall: Exact(),
    "faiss": lambda recall: Faiss(recall=recall),
    "milvus": lambda recall: Milvus(recall=recall),
}


def choose(backend: str | Backend, recall: float = 0.99) -> Backend:
    """The backend of that name ("auto": faiss), or the one that was given.

    >>> choose("auto").name
    'faiss'
    """
    if not isinstance(backend, str):
        if not isinstance(backend, Backend):
            raise InputError(f"{backend!r} is no backend: it lacks a name or one of add, remove, search, save, load")
        return backend
    return _BACKENDS["faiss" if backend == "auto" else one_of(backend, ("auto", *_BACKENDS), "backend")](recall)
