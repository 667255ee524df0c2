"""Which model made these numbers? The sha256 of a run's weights and what they are read with."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from halation._errors import InputError
from halation._storage import sha256_of

__all__ = ["fingerprint"]

_MODEL = ("config.toml", "vocabulary.json", "model.safetensors")


def fingerprint(run: str | os.PathLike[str]) -> str:
    """sha256 over a run's config.toml, vocabulary.json and model.safetensors: another epoch, another fingerprint.

    Embeddings, indexes and calibrations carry it: numbers of two models must not be compared.
    """
    folder = Path(run)
    total = hashlib.sha256()
    for name in _MODEL:
        path = folder / name
        if not path.is_file():
            raise InputError(f"{folder} holds no {name}; is it a run's folder, and did an epoch finish?")
        total.update(f"{name} {sha256_of(path)}\n".encode())
    return total.hexdigest()
