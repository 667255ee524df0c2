"""`train` and `resume`: a recipe and data in, a run's folder out."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from halation._errors import InputError
from halation._progress import Log, Progress, no_log, silent
from halation.data import Dataset, FeatureOrigin, Projection, check_origin
from halation.encoders import Vocabulary, build_network, load, loader_for, open_split
from halation.evaluation import evaluate
from halation.training._closed_form import fit_cca, keep_untrained
from halation.training._collapse import TrainingStopped
from halation.training._loop import fit
from halation.training._objective import build_objective
from halation.training._processes import Processes, processes
from halation.training._recipe import Recipe, override, read_recipe
from halation.training._run import Run, TrainState

__all__ = ["resume", "train"]

_CAN_CHANGE = "train.epochs"


def train(
    recipe: str | os.PathLike[str] | Recipe,
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    overrides: Mapping[str, Any] | Iterable[str] | None = None,
    resume: bool = False,
    progress: Progress = silent,
    log: Log = no_log,
) -> TrainState:
    """Train a model; everything worth keeping is in the folder `out`, which `halation.load` opens.

    recipe      the name of a recipe that comes with the package, a TOML file, or a `Recipe`
    data        the folder of the dataset
    out         a new folder for the run
    overrides   settings over the recipe's: {"train.epochs": 2}, or ["train.epochs=2"]
    resume      go on with the run in `out` instead; see `halation.training.resume`, which needs no recipe

    An error before there are weights leaves no run behind, so you can try again.
    """
    chosen = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    chosen = override(chosen, overrides)
    run = Run(out)
    with processes() as group:
        if resume:
            return _go_on(run, chosen, Path(data), group, progress, log)
        if group.first:
            _make_room(run)
        return _train(run, chosen, Path(data), group, progress, log)


def resume(
    run: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | Iterable[str] | None = None,
    progress: Progress = silent,
    log: Log = no_log,
) -> TrainState:
    """Go on with a run that was interrupted, or past the end of one that was finished.

    run         the run's folder; it holds the recipe and remembers the data
    data        where the dataset is now, if its folder was moved
    overrides   {"train.epochs": 30} trains up to epoch 30; nothing else can change

    With unchanged settings an interrupted run ends with the same weights as one that never stopped. With other epochs
    the learning rate follows, from here on, the schedule of a run of that many epochs: it rises again where the shorter
    schedule had fallen. So the result is not that of training that many epochs at once. A finished run without more
    epochs to train is left as it is.
    """
    folder = Run(run)
    recipe = override(folder.recipe(), overrides)
    with processes() as group:
        return _go_on(folder, recipe, _data_folder(folder, data), group, progress, log)


def _go_on(run: Run, recipe: Recipe, data: Path, group: Processes, progress: Progress, log: Log) -> TrainState:
    before, about = run.recipe(), run.about()
    changed = [key for key in _differences(before, recipe) if key != _CAN_CHANGE]
    if changed:
        raise InputError(
            f"was begun with another {changed[0]}; only {_CAN_CHANGE} can change in a run",
            path=run.folder,
            remedy="train into another folder",
        )
    if about.get("state") == "finished":
        if recipe.train.epochs <= before.train.epochs:
            epochs, best = int(about["epochs"]), int(about["best_epoch"])
            trained = f"{epochs} epochs, the best was {best}" if epochs else "no epochs to train"
            log(f"{run.folder} is finished: {trained}. Nothing is left to do.")
            return TrainState(epoch=epochs, best_epoch=best - 1, seconds=float(about.get("seconds", 0.0)))
        if not run.checkpoint_file.exists():
            raise InputError(
                f"is finished and has no {run.checkpoint_file.name} to go on from",
                path=run.folder,
                remedy=f"train {recipe.train.epochs} epochs into another folder",
            )
    return _train(run, recipe, data, group, progress, log)


def _train(run: Run, recipe: Recipe, data: Path, group: Processes, progress: Progress, log: Log) -> TrainState:
    train_set = open_split(recipe, data, recipe.data.train)
    began_on = run.about().get("feature_origin")
    if train_set.features is not None and began_on is not None:
        check_origin(train_set.features, FeatureOrigin.from_dict(began_on), data=data, run=run.folder)
    dev_set = _validation_part(recipe, open_split(recipe, data, recipe.data.dev))
    vocabulary = Vocabulary.build(train_set.captions, min_count=recipe.text.min_count)
    network = build_network(
        recipe, vocabulary, _feature_dims(train_set), seed=recipe.train.seed, memory=_scorer_memory(recipe)
    )
    loaders = loader_for(network, train_set), loader_for(network, dev_set)
    started = time.perf_counter()
    if recipe.cca.fit:
        fit_cca(network, loaders[0], recipe.cca, progress=progress)
    objective = build_objective(recipe, network, train_set) if recipe.train.epochs else None
    try:
        if group.first:
            run.begin(recipe, _facts(recipe, train_set, data, group))
            vocabulary.save(run.files.vocabulary)
            if train_set.features is not None and train_set.features.projection is not None:
                train_set.features.projection.save(run.folder / Projection.FILE)
        group.same(None)  # the other processes read the folder only when it is there
        log(f"{len(train_set):,} images, {train_set.n_captions:,} captions to train on; {len(dev_set):,} to validate")
        if objective is None:
            state = keep_untrained(network, loaders[1], run, group, started=started, log=log)
        else:
            daa, triplet = recipe.loss.daa, recipe.loss.triplet
            options: dict[str, Any] = {
                "relevance": daa.relevance if daa.weight else "tfidf",
                "margin": triplet.margin if triplet.weight else None,
            }
            state = fit(objective, *loaders, recipe.train, run, group, **options, progress=progress, log=log)
    except TrainingStopped as stopped:
        if group.first:
            run.note(state="stopped", problem=str(stopped))
        raise
    except BaseException:
        if group.first and not run.has_weights():
            run.clear()
        raise
    if group.first:
        evaluate(load(run.folder).scores(dev_set), dev_set.truth).to_json(run.folder / "report.json")
        run.finish(state)
    return state


def _facts(recipe: Recipe, dataset: Dataset, data: Path, group: Processes) -> dict[str, Any]:
    """What run.json says of a run from its beginning."""
    return {
        "recipe": recipe.name,
        "seed": recipe.train.seed,
        "data": dataset.name,
        "data_folder": str(data.resolve()),
        "processes": group.world,
        "feature_dims": _feature_dims(dataset),
        "feature_origin": None if dataset.features is None else dataset.features.origin.as_dict(),
    }


def _data_folder(run: Run, chosen: str | os.PathLike[str] | None) -> Path:
    """Where the data of a run is: the folder you name, or the one the run remembers."""
    if chosen is not None:
        return Path(chosen)
    remembered = run.about().get("data_folder")
    if not remembered:
        raise InputError("does not remember where its data is", path=run.folder, argument="data")
    if not Path(remembered).is_dir():
        raise InputError(
            f"was trained on {remembered}, which is not there any more",
            path=run.folder,
            remedy="say where the data is now",
            argument="data",
        )
    return Path(remembered)


def _make_room(run: Run) -> None:
    """Check, before the work, that the folder is free; what a failed run without weights left there is removed."""
    if not run.files.about.exists():
        return
    ended = run.about().get("state") == "stopped" or not run.files.config.exists()
    if run.has_weights() or not ended:  # without weights it may be a run in its first epoch
        raise InputError(
            "holds a run already",
            path=run.folder,
            remedy="name another folder, or continue this run",
            argument="resume",
            value=True,
        )
    run.clear()


def _differences(before: Any, after: Any, prefix: str = "") -> list[str]:
    """The keys in which two recipes differ: ["train.epochs"]."""
    keys = []
    for field in dataclasses.fields(before):
        old, new, key = getattr(before, field.name), getattr(after, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(old):
            keys += _differences(old, new, f"{key}.")
        elif old != new:
            keys.append(key)
    return keys


def _validation_part(recipe: Recipe, dataset: Dataset) -> Dataset:
    first = recipe.data.dev_images
    return dataset.subset(range(first)) if 0 < first < len(dataset) else dataset


def _scorer_memory(recipe: Recipe) -> int:
    """Bytes that SGR and SAF may keep for the backward pass.

    The hinge on the hardest negatives touches few pairs: those are computed again, and nothing is kept.
    """
    loss = recipe.loss
    few = loss.triplet.weight and loss.triplet.hardest and not (loss.daa.weight or loss.infonce.weight)
    return 0 if few else 1 << 30


def _feature_dims(dataset: Dataset) -> tuple[int, int]:
    """Of stored features, pooled and local; zeros without."""
    store = dataset.features
    return (0, 0) if store is None else (store.pooled_dim, store.local_dim)
