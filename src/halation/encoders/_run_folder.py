"""The files of a run's folder that its model is loaded from, and the fingerprint that tells two models apart."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from halation._errors import InputError
from halation._files import read_json, read_text
from halation._storage import sha256_of
from halation._tensors import read_note
from halation._toml import from_toml, parse_toml
from halation.encoders._config import ModelConfig

__all__ = ["LearntScalars", "RunFiles", "fingerprint", "read_about", "read_config"]


class RunFiles:
    """The names of a run's files that its model is loaded from."""

    CONFIG = "config.toml"
    VOCABULARY = "vocabulary.json"
    WEIGHTS = "model.safetensors"
    ABOUT = "run.json"


LearntScalars = dict[str, dict[str, float]]
"""What the terms of a loss learnt beside the weights, by term: {"infonce": {"temperature": 0.03}}."""


def read_config(folder: Path) -> tuple[ModelConfig, LearntScalars]:
    """What the model of a run is built from, and what its loss learnt; the recipe's loss and schedule are not read."""
    path = folder / RunFiles.CONFIG
    document = parse_toml(read_text(path), str(path))
    config = from_toml(ModelConfig, document, str(path), skip=("cca", "loss", "train"))
    return config, _read_learnt(folder / RunFiles.WEIGHTS, document.get("loss", {}))


def read_about(folder: Path) -> dict[str, Any]:
    """The content of run.json; empty where there is none yet."""
    path = folder / RunFiles.ABOUT
    about = read_json(path) if path.exists() else {}
    if not isinstance(about, dict):
        raise InputError("is not an object {…}; was it edited?", path=path)
    return about


def _read_learnt(weights: Path, terms_of_recipe: Any) -> LearntScalars:
    """The scalars that the loss had learnt when these weights were kept; empty for runs that did not keep them."""
    note = read_note(weights)
    try:
        terms = {} if note is None else json.loads(note)["learnt"]
        learnt = {str(name): {str(key): float(x) for key, x in scalars.items()} for name, scalars in terms.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f": its header is not one that halation writes ({error!r}); was it edited?", path=weights
        ) from None
    wrong = [f"{name}.{key}" for name, scalars in learnt.items() for key, x in scalars.items() if not math.isfinite(x)]
    if wrong:
        raise InputError(f": the learnt {wrong[0]} is not a finite number; train the run again", path=weights)
    for name, scalars in learnt.items():
        term = terms_of_recipe.get(name) if isinstance(terms_of_recipe, dict) else None
        unknown = [name] if not isinstance(term, dict) else [f"{name}.{key}" for key in scalars if key not in term]
        if unknown:
            raise InputError(f"has learnt loss.{unknown[0]}; config.toml beside it has no such key", path=weights)
    return learnt


def fingerprint(run: str | os.PathLike[str]) -> str:
    """The sha256 of a run's config.toml, vocabulary.json and model.safetensors: another epoch, another fingerprint.

    Embeddings, indexes and calibrations carry it, because numbers of two models must not be compared.
    """
    folder = Path(run)
    total = hashlib.sha256()
    for name in (RunFiles.CONFIG, RunFiles.VOCABULARY, RunFiles.WEIGHTS):
        path = folder / name
        if not path.is_file():
            raise InputError(f"has no {name}; is it a run's folder, and did an epoch finish?", path=folder)
        total.update(f"{name} {sha256_of(path)}\n".encode())
    return total.hexdigest()
