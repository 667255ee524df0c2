"""Export a run as a folder for others: weights, config, vocabulary and model card."""

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
from halation._files import write_text
from halation._storage import publish_folder
from halation.calibration import Calibrators
from halation.data import Projection
from halation.encoders import RunFolder, WordVectors, load
from halation.export._card import model_card
from halation.training import Recipe, read_recipe, to_toml

__all__ = ["export_run"]

_CALIBRATION = "calibration.json"
_COPIED = ("model.safetensors", "vocabulary.json", Projection.FILE, "report.json")  # unchanged, if the run has them
_FACTS = (  # of run.json
    "recipe", "seed", "data", "feature_dims", "feature_origin", "versions", "state", "best_epoch", "epochs",
)  # fmt: skip
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


def export_run(run: str | os.PathLike[str], out: str | os.PathLike[str], *, licence: str = "unknown") -> Path:
    """Write a run as a folder in the form of Hugging Face's hub, and return the folder; `halation.load` opens it.

    model.safetensors   the weights, byte for byte
    config.toml         the recipe; paths on this machine are cut to their last name, and the card says so
    config.json         the same for programs, with the widths of the features
    vocabulary.json     the words, numbered
    run.json            seed, versions, epochs
    README.md           the model card: how to use the model, its figures, what σ means, what it is for
    calibration.json, projection.safetensors, report.json   if the run has them
    """
    if not _LICENCE.fullmatch(licence):
        raise InputError(
            f"{licence!r} is not the short name of a licence",
            remedy="write it as hubs do: mit, apache-2.0, cc-by-4.0",
        )
    source = Path(run)
    load(source)  # raises an error before anything is written
    recipe, cut = _without_local_paths(read_recipe(source))
    about = RunFolder(source).read_about()
    facts = {key: about[key] for key in _FACTS if key in about}
    origin = facts.get("feature_origin")
    if isinstance(origin, dict) and origin.get("backbone") and _is_local(origin["backbone"]):
        facts["feature_origin"] = origin | {
            "backbone": _last_name(origin["backbone"])
        }  # the sha256 of its weights identifies it
    with publish_folder(out) as folder:
        for name in _COPIED:
            if (source / name).is_file():
                shutil.copyfile(source / name, folder / name)
        write_text(RunFolder(folder).config, to_toml(recipe))
        _write_json(RunFolder(folder).about, facts)
        _write_json(folder / "config.json", _config(recipe, facts))
        if (source / _CALIBRATION).is_file():
            calibrators = Calibrators.load(source / _CALIBRATION, RunFolder(source).fingerprint())
            dataclasses.replace(calibrators, fingerprint=RunFolder(folder).fingerprint()).save(folder / _CALIBRATION)
        write_text(folder / "README.md", model_card(folder, recipe, facts, licence, cut))
    return Path(out)


def _without_local_paths(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe with paths on this machine cut to their last name, and the settings that were cut."""
    for name, key in ((recipe.image.name, "image.name"), (recipe.text.name, "text.name")):
        if name and _is_local(name):
            raise InputError(
                f"{key} is {name}, a folder that only this machine has",
                remedy="to export the run, train it with the model's name on the hub",
            )
    features, vectors = recipe.data.features, recipe.text.vectors
    if _is_outside(features):  # a path below the data's folder is the same for others
        features = _last_name(features)
    if vectors != WordVectors.GLOVE:
        vectors = _last_name(vectors)
    cut = (("data.features", recipe.data.features, features), ("text.vectors", recipe.text.vectors, vectors))
    portable = dataclasses.replace(
        recipe,
        data=dataclasses.replace(recipe.data, features=features),
        text=dataclasses.replace(recipe.text, vectors=vectors),
    )
    return portable, tuple(key for key, before, after in cut if before != after)


def _is_local(name: str) -> bool:
    """Whether a model's name is a folder of this machine."""
    return _is_outside(name) or Path(name).is_dir()


def _is_outside(path: str) -> bool:
    """Whether a path leads out of the folder it is relative to, on any system."""
    kinds = PurePosixPath(path), PureWindowsPath(path)
    return path.startswith("~") or any(kind.is_absolute() or kind.drive or ".." in kind.parts for kind in kinds)


def _last_name(path: str) -> str:
    name = PureWindowsPath(path).name  # it reads both kinds of slashes
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
