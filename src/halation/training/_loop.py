"""The loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch

from halation._progress import Progress, silent
from halation.data import Batches, Dataset, Loader
from halation.training._board import Board
from halation.training._collapse import CollapseDetector, TrainingStopped, ValidationStats, alike
from halation.training._learner import Learner
from halation.training._objective import Objective
from halation.training._processes import Processes
from halation.training._run import Run
from halation.training._settings import Settings
from halation.training._validate import measure

__all__ = ["Tell", "TrainState", "quiet", "train"]

_PRECISION = {"float32": None, "bfloat16": torch.bfloat16}
_LOG_EVERY = 50  # steps

Tell = Callable[[str], None]
"""What a person following the run is told, a line at a time."""


def quiet(line: str) -> None:
    """For somebody who does not want to be told."""


@dataclass
class TrainState:
    """How far a run has come: what a checkpoint remembers beside the weights."""

    epoch: int = 0
    step: int = 0  # within the epoch
    best: float = -float("inf")
    best_epoch: int = -1
    at_chance: int = 0  # validations in a row that look like a collapse
    last_loss: float | None = None  # of the epoch before
    seconds: float = 0.0
    totals: dict[str, float] = field(default_factory=dict)  # of the losses, over the steps of this epoch


@contextmanager
def _denormals_flushed() -> Iterator[None]:
    """Adam's moments of words not seen for long decay into slow denormals; afterwards the processor is as it was."""
    was = float(torch.tensor(2e-310, dtype=torch.float64) * 0.5) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was)


@_denormals_flushed()
def train(
    objective: Objective,
    train_loader: Loader,
    dev_loader: Loader,
    settings: Settings,
    run: Run,
    here: Processes,
    *,
    margin: float | None = None,
    progress: Progress = silent,
    tell: Tell = quiet,
) -> TrainState:
    """Train until the epochs are over or nothing gets better; the best weights are in the run's folder.

    A run that was killed goes on from its last checkpoint and ends with the same weights: what a step sees and draws
    depends on the seed and the number of the step alone.
    """
    batches = _batches(train_loader.dataset, settings, here)
    learner = Learner(objective.to(here.device), settings, settings.epochs * -(-len(batches) // settings.accumulate))
    place = _restored(run, learner, here)
    wrapped = here.wrap(objective)
    watch = CollapseDetector(dev_loader.dataset.truth, margin)
    board = Board(run.folder if here.first else None, place.epoch * len(batches) + place.step)
    while place.epoch < settings.epochs and not _patience_is_over(place, settings):
        began = time.perf_counter()
        objective.train()
        for batch, items in train_loader.epoch(batches, place.epoch, place.step):
            number = place.epoch * len(batches) + place.step
            torch.manual_seed(_seed(settings.seed, number, here.rank))
            images, tokens = items.images.to(here.device), items.tokens.to(here.device)
            parts = wrapped(batch, images, tokens, settings.seed, number, _PRECISION[settings.precision])
            (parts["loss"] / settings.accumulate).backward()
            place.step += 1
            values = {name: float(part.detach()) for name, part in parts.items()}
            watch.loss(values, number)
            updated = place.step % settings.accumulate == 0 or place.step == len(batches)
            if updated:
                values["gradient"] = learner.update()
            for name, value in values.items():
                place.totals[name] = place.totals.get(name, 0.0) + value
            if here.first and number % _LOG_EVERY == 0:
                run.log(step=number, epoch=place.epoch, **_rounded(values))
                board.add("step", values, number)
            # gradients that wait for their update are not in a checkpoint: only after one
            due = settings.checkpoint_steps and (number + 1) % settings.checkpoint_steps < settings.accumulate
            if here.first and updated and due:
                _checkpoint(run, learner, place, time.perf_counter() - began)
                began = time.perf_counter()
            progress(f"epoch {place.epoch + 1}/{settings.epochs}", place.step, len(batches))
        losses = {name: value / len(batches) for name, value in place.totals.items()}
        _end_of_epoch(learner, dev_loader, settings, run, here, place, watch, losses, tell, board)
        place.epoch, place.step, place.totals = place.epoch + 1, 0, {}
        if here.first:
            _checkpoint(run, learner, place, time.perf_counter() - began)
    board.close()
    return place


def _end_of_epoch(
    learner: Learner,
    dev_loader: Loader,
    settings: Settings,
    run: Run,
    here: Processes,
    place: TrainState,
    watch: CollapseDetector,
    losses: Mapping[str, float],
    tell: Tell,
    board: Board,
) -> None:
    """Validate, keep the weights if they are the best so far, say so; every process learns what the first one saw."""
    problem = None
    if here.first:
        with learner.averaged():  # of the terms' own scalars too
            seen = measure(learner.objective.model, dev_loader)
            better = seen.better(settings.select)
            if better > place.best:
                place.best, place.best_epoch = better, place.epoch
                run.keep(learner.objective.model, learner.objective.learnt())
        summary = seen.summary()
        run.log(epoch=place.epoch, train=_rounded(losses), dev=summary, selected=place.best_epoch == place.epoch)
        board.add("dev", summary, learner.updates)
        asp = f"{summary['ASP(tfidf) i2t']:.1f}/{summary['ASP(tfidf) t2i']:.1f}"
        recall = f"{summary['R@1 i2t']:.1f}/{summary['R@1 t2i']:.1f}"
        mark = "  *" if place.best_epoch == place.epoch else ""
        tell(
            f"epoch {place.epoch + 1:3d}  loss {losses['loss']:8.4f}  "
            f"dev R@1 {recall}  rsum {summary['rsum']:.1f}  ASP {asp}{mark}"
        )
        hits = {side: summary[f"R@10 {side}"] / 100 for side in ("i2t", "t2i")}
        try:
            view = ValidationStats(place.epoch, hits, alike(seen.images), losses, place.last_loss)
            place.at_chance = watch.validation(view, place.at_chance)
        except TrainingStopped as stopped:
            problem = str(stopped)
    place.last_loss = losses["loss"]
    problem, place.best, place.best_epoch = here.same((problem, place.best, place.best_epoch))
    if problem is not None:
        raise TrainingStopped(problem)


def _batches(dataset: Dataset, settings: Settings, here: Processes) -> Batches:
    return Batches(
        dataset,
        settings.batch_size,
        seed=settings.seed,
        unit=settings.unit,  # type: ignore[arg-type]
        captions_per_image=settings.captions_per_image,
        one_per_class=settings.one_per_class,
        rank=here.rank,
        world=here.world,
    )


def _restored(run: Run, learner: Learner, here: Processes) -> TrainState:
    facts = run.restore(learner)
    if here.first:
        run.cut_log(facts)
    return (
        TrainState() if facts is None else TrainState(**{name: facts[name] for name in TrainState.__dataclass_fields__})
    )


def _checkpoint(run: Run, learner: Learner, place: TrainState, seconds: float) -> None:
    place.seconds += seconds
    run.checkpoint(learner, vars(place))


def _patience_is_over(place: TrainState, settings: Settings) -> bool:
    return bool(settings.patience) and place.epoch - 1 - place.best_epoch >= settings.patience


def _seed(seed: int, number: int, rank: int) -> int:
    """A seed of its own for every step and process."""
    return int(np.random.SeedSequence((seed, number, rank)).generate_state(1, np.uint64)[0] >> 1)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in values.items()}
