"""A run's folder: what was asked for, what happened, the best weights, and where to go on after a kill."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import halation
from halation._errors import InputError
from halation._files import write_text
from halation._tensors import load_tensors, read_note, save_tensors
from halation.encoders import LearntScalars, Network, RunFiles, read_about
from halation.training._learner import Learner

__all__ = ["Run"]

_CHECKPOINT, _LOG = "checkpoint.safetensors", "metrics.jsonl"


class Run:
    """The folder of one training run; every file in it is whole at any moment.

    config.toml              the effective recipe
    run.json                 versions, seed, state ("running", "finished", "stopped")
    model.safetensors        the best weights so far, by validation; in its header what the loss learnt beside them
    metrics.jsonl            one line per epoch and per few steps
    checkpoint.safetensors   everything needed to go on; gone when the run is finished
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @property
    def model_file(self) -> Path:
        """The best weights."""
        return self.folder / RunFiles.WEIGHTS

    def keep(self, network: Network, learnt: LearntScalars) -> None:
        """Write the network and what the terms of its loss have learnt so far into one file, so that they fit."""
        save_tensors(self.model_file, network.state_dict(), json.dumps({"learnt": learnt}))

    def begin(self, about: Mapping[str, Any], *, resume: bool) -> None:
        """Make the folder, or take up the one there is."""
        if not resume and (self.folder / RunFiles.ABOUT).exists():
            raise InputError(
                "holds a run already",
                path=self.folder,
                remedy="name another folder, or continue this run",
                argument="resume",
                value=True,
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        versions = {"halation": halation.__version__, "torch": torch.__version__, "numpy": np.__version__}
        known = {**about, "versions": versions | {"python": platform.python_version()}, "state": "running"}
        self.note(**known)

    def about(self) -> dict[str, Any]:
        """The content of run.json; empty where there is none yet."""
        return read_about(self.folder)

    def note(self, **facts: Any) -> None:
        """Add facts to run.json."""
        write_text(self.folder / RunFiles.ABOUT, json.dumps(self.about() | facts, indent=2) + "\n")

    def log(self, **values: Any) -> None:
        """One line of metrics.jsonl."""
        with (self.folder / _LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def history(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl that are whole."""
        path = self.folder / _LOG
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def checkpoint(self, learner: Learner, progress: Mapping[str, Any]) -> None:
        """Everything needed to go on from here, in one file that replaces the last."""
        log = self.folder / _LOG
        facts = {**progress, "updates": learner.updates, "log_bytes": log.stat().st_size if log.exists() else 0}
        save_tensors(self.folder / _CHECKPOINT, learner.tensors(), json.dumps(facts))

    def restore(self, learner: Learner) -> dict[str, Any] | None:
        """Put the learner where the last checkpoint was; None where there is no checkpoint."""
        path = self.folder / _CHECKPOINT
        if not path.exists():
            return None
        facts: dict[str, Any] = json.loads(read_note(path) or "{}")
        try:
            learner.restore(load_tensors(path), int(facts["updates"]))
        except (InputError, KeyError) as error:
            raise InputError(f": {error}", path=path) from None
        return facts

    def cut_log(self, facts: Mapping[str, Any] | None) -> None:
        """Take from the log what happened after the checkpoint: it will happen again."""
        log = self.folder / _LOG
        if log.exists():
            os.truncate(log, 0 if facts is None else int(facts["log_bytes"]))

    def finish(self, state: str, **facts: Any) -> None:
        """The end: nothing to go on with is kept when it is a good one."""
        self.note(state=state, **facts)
        if state == "finished":
            (self.folder / _CHECKPOINT).unlink(missing_ok=True)
