"""A recipe and data in, a run's folder out."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from halation._errors import InputError
from halation._files import write_text
from halation._progress import Progress, silent
from halation.data import Dataset, Projection
from halation.encoders import RunFiles, Vocabulary, build_network, load, loader_for, open_split
from halation.evaluation import evaluate
from halation.training._closed_form import fit_cca, keep_untrained
from halation.training._collapse import TrainingStopped
from halation.training._loop import Tell, TrainState, quiet, train
from halation.training._objective import build_objective
from halation.training._processes import processes
from halation.training._recipe import Recipe, read_recipe, to_toml
from halation.training._run import Run

__all__ = ["train_recipe"]

_LEFT = (
    RunFiles.CONFIG,
    RunFiles.VOCABULARY,
    Projection.FILE,
    "run.json",
    "metrics.jsonl",
)  # of a run that ended before it had weights


def train_recipe(
    recipe: Recipe,
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    resume: bool = False,
    progress: Progress = silent,
    tell: Tell = quiet,
) -> TrainState:
    """Train as the recipe says; everything worth keeping is in the folder `out`.

    An error before there are weights leaves no run behind, so that the same can be tried again.
    """
    run = Run(out)
    with processes() as here:
        if resume:
            _check_same(run, recipe)
            if run.about().get("state") == "finished":
                raise InputError("is finished; nothing is left to resume", path=run.folder)
        elif here.first:
            _make_room(run)
        train_set = open_split(recipe, Path(data), recipe.data.train)
        dev_set = _to_validate(recipe, open_split(recipe, Path(data), recipe.data.dev))
        vocabulary = Vocabulary.build(train_set.captions, min_count=recipe.text.min_count)
        model = build_network(
            recipe, vocabulary, _dims(train_set), seed=recipe.train.seed, memory=_scorer_memory(recipe)
        )
        loaders = loader_for(model, train_set), loader_for(model, dev_set)
        began = time.perf_counter()
        if recipe.cca.fit:
            fit_cca(model, loaders[0], recipe.cca, progress=progress)
        objective = build_objective(recipe, model, train_set) if recipe.train.epochs else None
        if here.first:
            about = {"recipe": recipe.name, "seed": recipe.train.seed, "data": train_set.name, "processes": here.world}
            run.begin({**about, "feature_dims": _dims(train_set)}, resume=resume)
        margin = recipe.loss.triplet.margin if recipe.loss.triplet.weight else None
        try:
            if here.first:
                write_text(run.folder / RunFiles.CONFIG, to_toml(recipe))
                vocabulary.save(run.folder / RunFiles.VOCABULARY)
                if train_set.features is not None and train_set.features.projection is not None:
                    train_set.features.projection.save(run.folder / Projection.FILE)
            here.same(None)  # nobody reads the folder before it is there
            tell(
                f"{len(train_set):,} images, {train_set.n_captions:,} captions to train on; "
                f"{len(dev_set):,} to validate"
            )
            if objective is None:
                place = keep_untrained(model, loaders[1], run, here, began=began, tell=tell)
            else:
                place = train(objective, *loaders, recipe.train, run, here, margin=margin, progress=progress, tell=tell)
        except TrainingStopped as problem:
            if here.first:
                run.finish("stopped", problem=str(problem))
            raise
        except BaseException:
            if here.first and not _of_use(run):
                _clear(run)
            raise
        if here.first:
            _finish(run, dev_set, place)
    return place


def _to_validate(recipe: Recipe, dataset: Dataset) -> Dataset:
    first = recipe.data.dev_images
    return dataset.subset(range(first)) if 0 < first < len(dataset) else dataset


def _make_room(run: Run) -> None:
    """Look, before the work, whether the folder is free; what a run without weights left there goes."""
    if not (run.folder / "run.json").exists():
        return
    ended = run.about().get("state") == "stopped" or not (run.folder / RunFiles.CONFIG).exists()
    if _of_use(run) or not ended:  # without weights it may be a run in its first epoch
        raise InputError(
            "holds a run already",
            path=run.folder,
            remedy="name another folder, or continue this run",
            argument="resume",
            value=True,
        )
    _clear(run)


def _of_use(run: Run) -> bool:
    return run.model_file.exists() or (run.folder / "checkpoint.safetensors").exists()


def _clear(run: Run) -> None:
    for name in _LEFT:
        (run.folder / name).unlink(missing_ok=True)
    shutil.rmtree(run.folder / "tensorboard", ignore_errors=True)
    with contextlib.suppress(OSError):  # something else is in it
        run.folder.rmdir()


def _finish(run: Run, dev_set: Dataset, place: TrainState) -> None:
    report = evaluate(load(run.folder).scores(dev_set), dev_set.truth)
    report.to_json(run.folder / "report.json")
    run.finish("finished", best_epoch=place.best_epoch + 1, epochs=place.epoch, seconds=round(place.seconds, 1))


def _check_same(run: Run, recipe: Recipe) -> None:
    path = run.folder / RunFiles.CONFIG
    if not path.exists():
        raise InputError("holds no run to resume", path=run.folder, remedy="begin a new run")
    if read_recipe(path) != recipe:
        raise InputError(
            "was begun with another recipe",
            path=run.folder,
            remedy=f"resume it with its own ({path.name} inside it), or train into another folder",
        )


def _scorer_memory(recipe: Recipe) -> int:
    """Bytes that SGR and SAF may keep for the backward pass.

    The hinge on the hardest negatives touches few pairs: those are computed again, and nothing is kept.
    """
    loss = recipe.loss
    few = loss.triplet.weight and loss.triplet.hardest and not (loss.daa.weight or loss.infonce.weight)
    return 0 if few else 1 << 30


def _dims(dataset: Dataset) -> tuple[int, int]:
    store = dataset.features
    return (0, 0) if store is None else (store.pooled_dim, store.local_dim)
