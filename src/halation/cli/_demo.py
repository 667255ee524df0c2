"""The demo: PCME with and without DAA, from nothing to a comparison and an index."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which

import numpy as np

from halation._errors import InputError
from halation._progress import Log, Progress
from halation.data import cache_features, draw_scenes, open_features, read_scenes, vagueness
from halation.encoders import Model, frozen_backbone, load
from halation.evaluation import Report, compare, evaluate
from halation.search import calibrate_run, embed, make_index
from halation.similarity import Gaussian
from halation.training import Run, read_recipe, train

__all__ = ["run_demo"]

_METRICS = ("R@1", "R-P", "mAP@R", "ASP(tfidf)")
_IMAGES = 6000
_LEAST = {"train": 100, "dev": 50, "test": 50}  # enough for a batch, to calibrate on and to compare
_BACKBONE, _CELLS = "efficientnet_lite0", 128  # what the recipes on photographs were made for


def run_demo(
    out: Path, data: Path | None, images: int | None, settings: tuple[str, ...], progress: Progress, log: Log
) -> str:
    """Train two models, compare them on the test split and index it; returns the text to print.

    images   how many to draw for training (default 6,000); dev and test are drawn in proportion
    """
    out.mkdir(parents=True, exist_ok=True)
    folder = data or out / "scenes"
    if data is None:
        _draw(folder, images, progress, log)
    elif images is not None:
        problem = f"--images is for drawn scenes, and {data} has its own pictures"
        raise InputError(problem, remedy="leave out --images or --data")
    world = "scenes" if (folder / "scenes.json").exists() else "flickr8k"
    names = (f"{world}_pcme", f"{world}_pcme_daa")
    settings += _features(folder, out, names[0], settings, progress, log)
    models = {}
    for name in names:
        run, recipe = out / name, read_recipe(name, settings)
        if Run(run).about().get("state") != "finished":
            log(f"\ntraining {name} ({recipe.train.epochs} epochs)")
            train(recipe, folder, run, resume=(run / "config.toml").exists(), progress=progress, log=log)
        models[name] = load(run)
    reports = [_measured(model, folder, progress) for model in models.values()]
    runs = [out / name for name in names]
    lines = ["", f"{' and '.join(models)}, measured on the test split:", ""]
    lines += [str(reports[1]), "", f"A = {runs[0]}\nB = {runs[1]}", ""]
    lines += [str(compare(*reports, resamples=2000))]
    if world == "scenes":
        lines += ["", *(_uncertainty(name, model, folder) for name, model in models.items())]
    index = _indexed(runs[1], folder, out / "index", progress, log)
    words = "a red circle" if world == "scenes" else "two dogs in the snow"
    return "\n".join([*lines, "", *_next(runs, folder, index, words)])


def _features(
    folder: Path, out: Path, name: str, settings: tuple[str, ...], progress: Progress, log: Log
) -> tuple[str, ...]:
    """Compute the features that the recipe reads, if the dataset has none; returns the settings that point to them.

    They are written below the dataset's folder, as the recipe has it, or below `out` if that folder is read-only.
    """
    features = read_recipe(name, settings).data.features
    if not features or features != read_recipe(name).data.features or _are_complete(folder / features):
        return ()
    target = folder / features if os.access(folder, os.W_OK) else out / features
    log(f"\ncomputing features with {_BACKBONE}, once: {target} (if interrupted, run the same command again)")
    cache_features(folder, frozen_backbone(_BACKBONE), target, batch_size=32, cells=_CELLS, progress=progress)
    return () if target == folder / features else (f"data.features={target.resolve()}",)


def _are_complete(path: Path) -> bool:
    """Whether features exist at this path, a folder or the beginning of file names, and are complete."""
    try:
        open_features(path)
    except InputError:
        return False
    return True


def _next(runs: list[Path], folder: Path, index: Path, words: str) -> list[str]:
    """The commands to try next."""
    program, (plain, daa) = _program(), runs
    make_argument = "" if index == Path("demo/index") else f" INDEX={index}"
    return [
        "next:",
        f"  one page of both:  {program} report {daa} --against {plain} --data {folder} -o {index.parent / 'report'}",
        f"  every metric:      {program} evaluate {daa} --data {folder}",
        f'  search, in words:  {program} search {index} "{words}"',
        f"  in the browser:    {program} serve {index}   (or: make serve{make_argument})",
    ]


def _draw(folder: Path, images: int | None, progress: Progress, log: Log) -> None:
    """Draw the scenes, unless the folder already has that many."""
    if images is not None and images < _LEAST["train"]:
        raise InputError(f"--images is {images}; the demo needs at least {_LEAST['train']} pictures to train on")
    if (folder / "scenes.json").exists():
        if images is not None and (existing := len(read_scenes(folder, "train").images)) != images:
            problem = f"has {existing:,} pictures to train on, not {images:,}"
            raise InputError(problem, path=folder, remedy="give another --out")
        return
    drawn = images or _IMAGES
    sizes = {"train": drawn, "dev": max(_LEAST["dev"], drawn // 12), "test": max(_LEAST["test"], drawn // 6)}
    log(f"drawing {sum(sizes.values()):,} scenes into {folder}")
    draw_scenes(folder, **sizes, progress=progress)


def _program() -> str:
    """The command that starts this program: its path if the shell would not find it, as after `make demo`."""
    path = Path(sys.argv[0])
    return str(path) if path.name == "halation" and which("halation") is None else "halation"


def _indexed(run: Path, folder: Path, index: Path, progress: Progress, log: Log) -> Path:
    """Calibrate the run, then embed and index the test split; returns the index's folder."""
    log("\ncalibrating, embedding and indexing the test split")
    if not (run / "calibration.json").is_file():
        calibrate_run(run, folder, progress=progress)
    return make_index(embed(run, folder, run / "embeddings", split="test", progress=progress), index, progress=progress)


def _measured(model: Model, folder: Path, progress: Progress) -> Report:
    dataset = model.open_dataset(folder, "test")
    return evaluate(model.scores(dataset, progress=progress), dataset.truth, _METRICS)


def _uncertainty(name: str, model: Model, folder: Path) -> str:
    """A line on whether vaguer captions get a larger σ, for caption templates never seen in training."""
    from scipy.stats import spearmanr

    scenes = read_scenes(folder, "test")
    _, captions = model.encode_dataset(model.open_dataset(folder, "test"))
    assert isinstance(captions, Gaussian)
    unseen = np.asarray(scenes.held_out)
    true_of = vagueness(scenes.truth())[unseen]
    sigma = float(spearmanr(captions.uncertainty().numpy()[unseen], true_of).statistic)
    lengths = np.array([len(caption.split()) for caption in scenes.captions])[unseen]
    length = float(spearmanr(-lengths, true_of).statistic)
    return (
        f"{name}: σ against the number of images a caption is true of, on caption templates never seen in training: "
        f"Spearman {sigma:.2f} (shortness alone: {length:.2f})"
    )
