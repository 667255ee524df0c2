"""Runs made without training: a recipe's model as it is drawn, in a folder. And `halation …` as a function."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from halation._tensors import save_tensors
from halation.cli import main
from halation.encoders import Vocabulary, build_network
from halation.training import parse_recipe, to_toml
from layouts import captions_of

TINY = """
name = "tiny"
[image]
backbone = "small_conv"
dim = 16
size = 16
[text]
backbone = "words_gru"
dim = 8
hidden = 8
min_count = 1
[model]
head = "pcme"
dim = 8
[loss.infonce]
weight = 1.0
"""


def halation(*arguments: object) -> int:
    """`halation …` in this process: the code it ends with."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def write_run(
    folder: Path,
    *settings: str,
    recipe: str = TINY,
    dims: Sequence[int] = (0, 0),
    captions: Sequence[str] | None = None,
) -> Path:
    """A run whose model knows the words of `captions` (`layouts.captions_of`). dims: of features, pooled and local."""
    folder.mkdir(parents=True)
    wanted = parse_recipe(recipe, settings)
    known = captions or [text for number in range(40) for text in captions_of(number)]
    vocabulary = Vocabulary.build(known)
    model = build_network(wanted, vocabulary, (dims[0], dims[1]))
    (folder / "config.toml").write_text(to_toml(wanted), encoding="utf-8")
    vocabulary.save(folder / "vocabulary.json")
    (folder / "run.json").write_text(json.dumps({"feature_dims": list(dims), "state": "finished"}), encoding="utf-8")
    save_tensors(folder / "model.safetensors", model.state_dict())
    return folder
