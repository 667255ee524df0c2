"""The folder of a run: the files its model is loaded from, and the fingerprint that tells two models apart."""

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

__all__ = ["LearntScalars", "RunFolder"]

LearntScalars = dict[str, dict[str, float]]
"""What the terms of a loss learnt beside the weights, by term: {"infonce": {"temperature": 0.03}}."""


class RunFolder:
    """The files of a run's folder that its model is loaded from.

    config.toml         the recipe
    vocabulary.json     the words the text encoder knows
    model.safetensors   the weights; in its header what the loss learnt beside them
    run.json            facts about the run: its data, versions, widths of its features

    >>> RunFolder("runs/mine").weights.name
    'model.safetensors'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.vocabulary = self.path / "vocabulary.json"
        self.weights = self.path / "model.safetensors"
        self.about = self.path / "run.json"

    def read_config(self) -> ModelConfig:
        """What the model is built from; the recipe's loss and schedule are not read."""
        name = str(self.config)
        return from_toml(ModelConfig, parse_toml(read_text(self.config), name), name, skip=("cca", "loss", "train"))

    def read_about(self) -> dict[str, Any]:
        """The content of run.json; empty if there is none yet."""
        about = read_json(self.about) if self.about.exists() else {}
        if not isinstance(about, dict):
            raise InputError("is not an object {…}; was it edited?", path=self.about)
        return about

    def read_learnt(self) -> LearntScalars:
        """The scalars that the loss had learnt when these weights were kept; empty for a run that kept none."""
        note = read_note(self.weights)
        try:
            terms = {} if note is None else json.loads(note)["learnt"]
            learnt = {str(name): {str(key): float(x) for key, x in scalars.items()} for name, scalars in terms.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f": its header is not one that halation writes ({error!r}); was it edited?", path=self.weights
            ) from None
        for name, scalars in learnt.items():
            for key, x in scalars.items():
                if not math.isfinite(x):
                    raise InputError(
                        f": the learnt {name}.{key} is not a finite number",
                        path=self.weights,
                        remedy="train the run again",
                    )
        self._check_terms(learnt)
        return learnt

    def _check_terms(self, learnt: LearntScalars) -> None:
        """An error if a scalar was learnt by a term that the recipe beside it does not have."""
        losses = parse_toml(read_text(self.config), str(self.config)).get("loss", {})
        for name, scalars in learnt.items():
            term = losses.get(name) if isinstance(losses, dict) else None
            unknown = [name] if not isinstance(term, dict) else [f"{name}.{key}" for key in scalars if key not in term]
            if unknown:
                raise InputError(
                    f"has learnt loss.{unknown[0]}; config.toml beside it has no such key", path=self.weights
                )

    def fingerprint(self) -> str:
        """The sha256 of config.toml, vocabulary.json and model.safetensors: another epoch has another fingerprint.

        Embeddings, indexes and calibrations carry it, because numbers of two models must not be compared.
        """
        total = hashlib.sha256()
        for path in (self.config, self.vocabulary, self.weights):
            if not path.is_file():
                raise InputError(f"has no {path.name}; is it a run's folder, and did an epoch finish?", path=self.path)
            total.update(f"{path.name} {sha256_of(path)}\n".encode())
        return total.hexdigest()
