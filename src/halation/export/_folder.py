"""A run as a folder to give away, and back: safetensors, config, vocabulary, model card."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import halation
from halation._errors import InputError
from halation._files import read_json, write_text
from halation._storage import publish_folder
from halation.calibration import Calibrators
from halation.data import Projection
from halation.encoders import RunFolder, WordVectors, load
from halation.export._card import model_card
from halation.training import Recipe, read_recipe, to_toml

__all__ = ["export_run"]

_WEIGHTS, _CONFIG, _VOCABULARY, _CALIBRATION = (
    "model.safetensors",
    "config.toml",
    "vocabulary.json",
    "calibration.json",
)
_COPIED = (_WEIGHTS, _VOCABULARY, Projection.FILE, "report.json")  # copied as they are, where a run has them
_FACTS = (
    "recipe",
    "seed",
    "data",
    "feature_dims",
    "feature_origin",
    "versions",
    "state",
    "best_epoch",
    "epochs",
)  # of run.json
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


def export_run(run: str | os.PathLike[str], out: str | os.PathLike[str], *, licence: str = "unknown") -> Path:
    """Write a run as a folder in the form Hugging Face's hub has them; `halation.load` opens it.

    model.safetensors   the weights, byte for byte
    config.toml         the recipe; of places outside of the folder the last name is left, and the card says so
    config.json         the same for programs, with what a model needs beside it
    vocabulary.json     the words, numbered
    run.json            seed, versions, epochs
    README.md           the model card: figures, what σ means, what it is for and what it is not for
    calibration.json, projection.safetensors, report.json   where the run has them
    """
    if not _LICENCE.fullmatch(licence):
        raise InputError(f"{licence!r} is no licence's short name; write it as hubs do: mit, apache-2.0, cc-by-4.0")
    source = Path(run)
    load(source)  # an error before anything is written
    recipe, cut = _without_local_paths(read_recipe(source / _CONFIG))
    about = read_json(source / "run.json") if (source / "run.json").is_file() else {}
    facts = {key: about[key] for key in _FACTS if key in about}
    with publish_folder(out) as folder:
        for name in _COPIED:
            if (source / name).is_file():
                shutil.copyfile(source / name, folder / name)
        write_text(folder / _CONFIG, to_toml(recipe))
        _write_json(folder / "run.json", facts)
        _write_json(folder / "config.json", _config(recipe, facts))
        if (source / _CALIBRATION).is_file():
            calibrators = Calibrators.load(source / _CALIBRATION, RunFolder(source).fingerprint())
            dataclasses.replace(calibrators, fingerprint=RunFolder(folder).fingerprint()).save(folder / _CALIBRATION)
        write_text(folder / "README.md", model_card(folder, recipe, facts, licence, cut))
    return Path(out)


def _without_local_paths(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe without places outside of the folder, and the settings of which only the last name is left."""
    for name, key in ((recipe.image.name, "image.name"), (recipe.text.name, "text.name")):
        if name and (_is_outside(name) or Path(name).is_dir()):
            raise InputError(
                f"{key} is {name}, a folder of this machine, which nobody else has; train with the model's name on the "
                "hub to export the run"
            )
    features, vectors = recipe.data.features, recipe.text.vectors
    if _is_outside(features):  # what lies below the data's folder lies there for others too
        features = _last_name(features)
    if vectors != WordVectors.GLOVE:
        vectors = _last_name(vectors)
    cut = (("data.features", recipe.data.features, features), ("text.vectors", recipe.text.vectors, vectors))
    changed = dataclasses.replace(
        recipe,
        data=dataclasses.replace(recipe.data, features=features),
        text=dataclasses.replace(recipe.text, vectors=vectors),
    )
    return changed, tuple(key for key, before, after in cut if before != after)


def _is_outside(path: str) -> bool:
    """Whether a place lies elsewhere than below the folder it is read from, on any system."""
    kinds = PurePosixPath(path), PureWindowsPath(path)
    return path.startswith("~") or any(kind.is_absolute() or kind.drive or ".." in kind.parts for kind in kinds)


def _last_name(path: str) -> str:
    name = PureWindowsPath(path).name  # which reads both kinds of slashes
    return "" if name == ".." else name


def _config(recipe: Recipe, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "library_name": "halation",
        "library_version": halation.__version__,
        "model_type": recipe.model.head,
        "feature_dims": facts.get("feature_dims", [0, 0]),
        "recipe": dataclasses.asdict(recipe),
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
