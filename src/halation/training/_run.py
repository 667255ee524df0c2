"""A run's folder: its recipe and data, its log, the best weights, and the checkpoint to go on from."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import halation
from halation._errors import InputError
from halation._files import write_text
from halation._storage import sweep
from halation._tensors import load_tensors, read_note, save_tensors
from halation.data import Projection
from halation.encoders import LearntScalars, Network, RunFolder
from halation.training._learner import Learner
from halation.training._recipe import Recipe, read_recipe, to_toml

__all__ = ["Board", "Run", "TrainState", "rounded"]

_CHECKPOINT, _LOG = "checkpoint.safetensors", "metrics.jsonl"
_WITHOUT_WEIGHTS = ("config.toml", "vocabulary.json", "run.json", Projection.FILE, _LOG)


@dataclass
class TrainState:
    """How far a run has come: what a checkpoint holds beside the weights."""

    epoch: int = 0
    step: int = 0  # within the epoch
    best: float = -float("inf")
    best_epoch: int = -1
    at_chance: int = 0  # validations in a row that look like a collapse
    last_loss: float | None = None  # of the epoch before
    seconds: float = 0.0
    totals: dict[str, float] = field(default_factory=dict)  # of the losses, over the steps of this epoch

    def add(self, losses: Mapping[str, float]) -> None:
        """Add the losses of one step to the epoch's totals."""
        for name, value in losses.items():
            self.totals[name] = self.totals.get(name, 0.0) + value

    def means(self, steps: int) -> dict[str, float]:
        """The mean losses of an epoch."""
        return {name: total / steps for name, total in self.totals.items()}

    def next_epoch(self, loss: float) -> None:
        """Begin the next epoch; `loss` is the mean of the one that ended."""
        self.epoch, self.step, self.totals, self.last_loss = self.epoch + 1, 0, {}, loss


class Run:
    """The folder of one training run; every file in it is whole at any moment.

    config.toml              the recipe, with every key
    run.json                 data folder, versions, seed, state ("running", "finished", "stopped")
    model.safetensors        the best weights so far, by validation; in its header the scalars that the loss learnt
    metrics.jsonl            one line per epoch and per few steps
    checkpoint.safetensors   what is needed to go on; you may delete it when the run is finished
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder, self.files = Path(folder), RunFolder(folder)
        self._log_bytes = 0  # of metrics.jsonl, when the checkpoint that was restored was written

    @property
    def model_file(self) -> Path:
        """The best weights."""
        return self.files.weights

    @property
    def checkpoint_file(self) -> Path:
        """What is needed to go on."""
        return self.folder / _CHECKPOINT

    def begin(self, recipe: Recipe, facts: Mapping[str, Any]) -> None:
        """Make the folder, or take up the one there is; `facts` go to run.json."""
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)  # what a killed process left half-written
        versions = {"halation": halation.__version__, "torch": torch.__version__, "numpy": np.__version__}
        self.note(**facts, versions=versions | {"python": platform.python_version()}, state="running")
        write_text(self.files.config, to_toml(recipe))

    def recipe(self) -> Recipe:
        """The recipe of a run that was begun."""
        path = self.files.config
        if not path.exists():
            raise InputError("holds no run to resume", path=self.folder, remedy="begin a new run")
        return read_recipe(path)

    def about(self) -> dict[str, Any]:
        """The content of run.json; empty if there is none yet."""
        return self.files.read_about()

    def note(self, **facts: Any) -> None:
        """Add facts to run.json."""
        write_text(self.files.about, json.dumps(self.about() | facts, indent=2) + "\n")

    def keep(self, network: Network, learnt: LearntScalars) -> None:
        """Keep the network as the best so far, and in the same file what the loss terms have learnt."""
        save_tensors(self.model_file, network.state_dict(), json.dumps({"learnt": learnt}))

    def log(self, **values: Any) -> None:
        """Add a line to metrics.jsonl."""
        with (self.folder / _LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def history(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl that are whole."""
        path = self.folder / _LOG
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def checkpoint(self, learner: Learner, state: TrainState) -> None:
        """Write everything needed to go on, in one file that replaces the last."""
        log = self.folder / _LOG
        facts = {**vars(state), "updates": learner.updates, "log_bytes": log.stat().st_size if log.exists() else 0}
        save_tensors(self.checkpoint_file, learner.tensors(), json.dumps(facts))

    def restore(self, learner: Learner) -> TrainState:
        """Put the learner where the last checkpoint left it; the state it was in, or a new one without a checkpoint."""
        path = self.checkpoint_file
        if not path.exists():
            return TrainState()
        facts: dict[str, Any] = json.loads(read_note(path) or "{}")
        try:
            learner.restore(load_tensors(path), int(facts["updates"]))
            self._log_bytes = int(facts["log_bytes"])
            return TrainState(**{name: facts[name] for name in TrainState.__dataclass_fields__})
        except (InputError, KeyError) as error:
            raise InputError(f": {error}", path=path) from None

    def cut_log(self) -> None:
        """Cut from the log what happened after the checkpoint that was restored: it will happen again."""
        log = self.folder / _LOG
        if log.exists():
            os.truncate(log, self._log_bytes)

    def finish(self, state: TrainState) -> None:
        """Note in run.json how the run ended."""
        self.note(
            state="finished", best_epoch=state.best_epoch + 1, epochs=state.epoch, seconds=round(state.seconds, 1)
        )

    def has_weights(self) -> bool:
        """Whether there is anything worth keeping in the folder."""
        return self.model_file.exists() or self.checkpoint_file.exists()

    def clear(self) -> None:
        """Remove what a run without weights left, and the folder if nothing else is in it."""
        for name in _WITHOUT_WEIGHTS:
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "tensorboard", ignore_errors=True)
        with contextlib.suppress(OSError):  # it holds other files
            self.folder.rmdir()


class Board:
    """Scalars for TensorBoard in the run's `tensorboard/`; does nothing without a folder or without the package."""

    def __init__(self, folder: Path | None, start: int = 0) -> None:
        self._writer: Any = None
        if folder is not None and importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=start or None)

    def add(self, group: str, values: Mapping[str, float], step: int) -> None:
        """Add one point to each curve."""
        for name, value in values.items() if self._writer is not None else ():
            if math.isfinite(value):
                self._writer.add_scalar(f"{group}/{name}", value, step)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Values with six digits, for the log."""
    return {name: float(f"{value:.6g}") for name, value in values.items()}
