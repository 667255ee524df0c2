"""The training loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from halation._progress import Log, Progress, no_log, silent
from halation.data import Batches, Dataset, Loader
from halation.training._collapse import CollapseDetector, TrainingStopped
from halation.training._learner import Learner
from halation.training._objective import Objective
from halation.training._processes import Processes
from halation.training._run import Board, Run, TrainState, rounded
from halation.training._settings import Settings
from halation.training._validate import Validator

__all__ = ["fit"]

_PRECISION = {"float32": None, "bfloat16": torch.bfloat16}
_LOG_EVERY = 50  # steps


@contextmanager
def _denormals_flushed() -> Iterator[None]:
    """Flush denormals to zero meanwhile: Adam's moments of rare words decay into them, and they are slow."""
    before = float(torch.tensor(2e-310, dtype=torch.float64) * 0.5) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@_denormals_flushed()
def fit(
    objective: Objective,
    train_loader: Loader,
    dev_loader: Loader,
    settings: Settings,
    run: Run,
    processes: Processes,
    *,
    relevance: str = "tfidf",
    margin: float | None = None,
    progress: Progress = silent,
    log: Log = no_log,
) -> TrainState:
    """Train until the epochs are over or nothing improves; the best weights are in the run's folder.

    relevance   of captions, for the ASP that selects the best epoch
    margin      of a triplet loss, to recognise a collapse

    A killed run goes on from its last checkpoint and ends with the same weights: what a step sees and draws depends
    only on the seed and the number of the step.
    """
    batches = _batches(train_loader.dataset, settings, processes)
    updates = settings.epochs * -(-len(batches) // settings.accumulate)
    learner = Learner(objective.to(processes.device), settings, updates)
    state = run.restore(learner)
    if processes.first:
        run.cut_log()
    parallel = processes.wrap(objective)
    detector = CollapseDetector(dev_loader.dataset.truth, margin)
    board = Board(run.folder if processes.first else None, state.epoch * len(batches) + state.step)
    validate = Validator(
        dev_loader, run, select=settings.select, relevance=relevance, detector=detector, board=board, log=log
    )
    while state.epoch < settings.epochs and not _patience_is_over(state, settings):
        started = time.perf_counter()
        objective.train()
        for batch, items in train_loader.epoch(batches, state.epoch, state.step):
            step = state.epoch * len(batches) + state.step
            torch.manual_seed(_step_seed(settings.seed, step, processes.rank))
            images, tokens = items.images.to(processes.device), items.tokens.to(processes.device)
            losses = parallel(batch, images, tokens, settings.seed, step, _PRECISION[settings.precision])
            (losses["loss"] / settings.accumulate).backward()
            state.step += 1
            values = {name: float(loss.detach()) for name, loss in losses.items()}
            detector.check_loss(values, step)
            updated = state.step % settings.accumulate == 0 or state.step == len(batches)
            if updated:
                values["gradient"] = learner.update()
            state.add(values)
            if processes.first and step % _LOG_EVERY == 0:
                run.log(step=step, epoch=state.epoch, **rounded(values))
                board.add("step", values, step)
            # a checkpoint holds no gradients, so it can only be written after an update
            due = settings.checkpoint_steps and (step + 1) % settings.checkpoint_steps < settings.accumulate
            if processes.first and updated and due:
                started = _checkpoint(run, learner, state, started)
            progress(f"epoch {state.epoch + 1}/{settings.epochs}", state.step, len(batches))
        means = state.means(len(batches))
        problem = validate(learner, state, means) if processes.first else None
        problem, state.best, state.best_epoch = processes.same((problem, state.best, state.best_epoch))
        if problem is not None:
            raise TrainingStopped(problem)
        state.next_epoch(means["loss"])
        if processes.first:
            _checkpoint(run, learner, state, started)
    board.close()
    return state


def _batches(dataset: Dataset, settings: Settings, processes: Processes) -> Batches:
    return Batches(
        dataset,
        settings.batch_size,
        seed=settings.seed,
        unit=settings.unit,  # type: ignore[arg-type]
        captions_per_image=settings.captions_per_image,
        one_per_class=settings.one_per_class,
        rank=processes.rank,
        world=processes.world,
    )


def _checkpoint(run: Run, learner: Learner, state: TrainState, started: float) -> float:
    """Write a checkpoint with the seconds since `started` added; the time now."""
    now = time.perf_counter()
    state.seconds += now - started
    run.checkpoint(learner, state)
    return now


def _patience_is_over(state: TrainState, settings: Settings) -> bool:
    return bool(settings.patience) and state.epoch - 1 - state.best_epoch >= settings.patience


def _step_seed(seed: int, step: int, rank: int) -> int:
    """A different seed for every step and process."""
    return int(np.random.SeedSequence((seed, step, rank)).generate_state(1, np.uint64)[0] >> 1)
