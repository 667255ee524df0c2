"""A recipe and data in, a run's folder out; and from a run's folder back to its model."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from halation._arrays import FloatArray
from halation._errors import InputError
from halation._files import write_text
from halation._progress import Progress, silent
from halation._tensors import load_tensors
from halation.data import Dataset
from halation.data._projection import PROJECTION
from halation.encoders import Encoded, Model, Vocabulary, without_gist
from halation.evaluation import evaluate
from halation.training._build import build_loader, build_model, build_objective, open_split
from halation.training._collapse import TrainingStopped
from halation.training._loop import Tell, TrainState, quiet, train
from halation.training._objective import Learnt
from halation.training._processes import processes
from halation.training._recipe import Recipe
from halation.training._run import Run
from halation.training._toml import read_recipe, to_toml
from halation.training._validate import encode

__all__ = ["PROJECTION", "Trained", "open_run", "train_recipe"]

_TABLE = "table.embedding.weight"
_CONFIG, _VOCABULARY = "config.toml", "vocabulary.json"
_LEFT = (_CONFIG, _VOCABULARY, PROJECTION, "run.json", "metrics.jsonl")  # of a run that ended before it had weights


@dataclass(frozen=True)
class Trained:
    """A finished run, ready to encode and score.

    learnt   what training made of the recipe's first scales, shifts and temperatures, by the loss's terms; empty where
             the run did not keep it
    """

    folder: Path
    recipe: Recipe
    model: Model
    learnt: Learnt = field(default_factory=dict)

    def encode(self, dataset: Dataset, *, progress: Progress = silent) -> tuple[Encoded, Encoded]:
        """All images and captions of a split, in order."""
        return encode(self.model, build_loader(self.model, dataset), progress=progress)

    def scores(self, dataset: Dataset, *, progress: Progress = silent) -> FloatArray:
        """(n_images, n_captions) float32, bigger = closer."""
        images, captions = self.encode(dataset, progress=progress)
        scores: FloatArray = self.model.all_scores(images, captions, progress=progress).numpy()
        return scores

    def in_detail(self) -> Trained:
        """The same run without its gist, where it has one: what can be indexed, and what decides the first places."""
        return replace(self, model=without_gist(self.model))

    def open(self, folder: str | os.PathLike[str], split: str) -> Dataset:
        """A split of data, as this run's recipe reads it."""
        return open_split(self.recipe, Path(folder), split)


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
                raise InputError(f"{run.folder} is finished; nothing is left to resume")
        elif here.first:
            _make_room(run)
        train_set = open_split(recipe, Path(data), recipe.data.train)
        dev_set = _to_validate(recipe, open_split(recipe, Path(data), recipe.data.dev))
        vocabulary = Vocabulary.build(train_set.captions, min_count=recipe.text.min_count)
        model = build_model(recipe, vocabulary, _dims(train_set))
        objective = build_objective(recipe, model, train_set)
        loaders = build_loader(model, train_set), build_loader(model, dev_set)
        if here.first:
            about = {"recipe": recipe.name, "seed": recipe.train.seed, "data": train_set.name, "processes": here.world}
            run.begin({**about, "feature_dims": _dims(train_set)}, resume=resume)
        margin = recipe.loss.triplet.margin if recipe.loss.triplet.weight else None
        try:
            if here.first:
                write_text(run.folder / _CONFIG, to_toml(recipe))
                vocabulary.save(run.folder / _VOCABULARY)
                if train_set.features is not None and train_set.features.projection is not None:
                    train_set.features.projection.save(run.folder / PROJECTION)
            here.same(None)  # nobody reads the folder before it is there
            tell(
                f"{len(train_set):,} images, {train_set.n_captions:,} captions to train on; "
                f"{len(dev_set):,} to validate"
            )
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
    ended = run.about().get("state") == "stopped" or not (run.folder / _CONFIG).exists()
    if _of_use(run) or not ended:  # without weights it may be a run in its first epoch
        raise InputError(f"{run.folder} holds a run already; continue it with --resume, or name another folder")
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
    trained = open_run(run.folder)
    report = evaluate(trained.scores(dev_set), dev_set.truth)
    report.to_json(run.folder / "report.json")
    run.finish("finished", best_epoch=place.best_epoch + 1, epochs=place.epoch, seconds=round(place.seconds, 1))


def open_run(folder: str | os.PathLike[str]) -> Trained:
    """The best model of a run, in evaluation mode."""
    run = Run(folder)
    if not run.folder.is_dir():
        raise InputError(f"{run.folder} does not exist")
    if not run.model_file.exists():
        raise InputError(f"{run.folder} holds no model.safetensors; is it a run's folder, and did an epoch finish?")
    recipe = read_recipe(run.folder / _CONFIG)
    dims = run.about().get("feature_dims", (0, 0))
    vocabulary, found = Vocabulary.load(run.folder / _VOCABULARY), load_tensors(run.model_file)
    model = build_model(recipe, vocabulary, (int(dims[0]), int(dims[1])), _word_vectors(found, len(vocabulary)))
    _load(model, found, run.model_file)
    return Trained(run.folder, recipe, model.eval(), _learnt(run, recipe))


def _word_vectors(found: dict[str, Tensor], rows: int) -> Tensor | None:
    """The table of words among a model's weights: what it began from need not be on this machine any more."""
    table = next((value for name, value in found.items() if name.endswith(_TABLE)), None)
    return table if table is not None and table.ndim == 2 and len(table) == rows else None


def _load(model: Model, found: dict[str, Tensor], path: Path) -> None:
    wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in found.items()}
    wrong = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
    if wrong:
        first = wrong[0]
        raise InputError(
            f"{path} is of another model: {len(wrong)} tensors differ from what config.toml beside it describes, "
            f"the first {first}: {given.get(first, 'missing')} instead of {wanted.get(first, 'none')}"
        )
    model.load_state_dict(found)


def _learnt(run: Run, recipe: Recipe) -> Learnt:
    found = run.learnt()
    for name, own in found.items():
        term = getattr(recipe.loss, name, None)
        unknown = [name] if term is None else [f"{name}.{key}" for key in own if not hasattr(term, key)]
        if unknown:
            raise InputError(
                f"{run.model_file} has learnt loss.{unknown[0]}; config.toml beside it knows no such thing"
            )
    return found


def _check_same(run: Run, recipe: Recipe) -> None:
    path = run.folder / _CONFIG
    if not path.exists():
        raise InputError(f"{run.folder} holds no run to resume; train without --resume")
    if read_recipe(path) != recipe:
        raise InputError(
            f"{run.folder} was begun with another recipe; resume it with halation train {path} --resume, or "
            "train into another folder"
        )


def _dims(dataset: Dataset) -> tuple[int, int]:
    store = dataset.features
    return (0, 0) if store is None else (store.pooled_dim, store.local_dim)
