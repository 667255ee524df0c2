"""One training run of a study: a recipe, settings and a seed give a file of numbers. No run is done twice."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from halation._arrays import FloatArray
from halation._files import read_json, write_text
from halation._parallel import threads
from halation._progress import Progress, silent
from halation.data import read_flickr8k_judgements
from halation.encoders import Encoded, Model, load
from halation.evaluation import Report, evaluate
from halation.similarity import Gaussian
from halation.training import Recipe, Run, read_recipe, train
from studies.agreement import together, within

__all__ = ["Job", "Log", "digest", "finished", "ignore", "run_at_once", "run_job"]

Log = Callable[[str], None]
"""Called with a line about the progress of a study."""

RELEVANCES = ("tfidf", "cider", "bleu4", "rouge-l", "mean")
METRICS = ("R@1", "R@5", "R@10", "R-P", *(f"ASP({name})" for name in RELEVANCES))


def ignore(line: str) -> None:
    """Ignore a line of the log; the default."""


@dataclass(frozen=True)
class Job:
    """A run of a study: what to train, and how its file is named."""

    recipe: str
    settings: tuple[str, ...] = ()
    seed: int = 0
    label: str = ""  # names a job whose settings differ from the recipe

    @property
    def name(self) -> str:
        """The name of its file, without suffix."""
        return "-".join(part for part in (self.recipe, self.label, f"seed{self.seed}") if part)

    def read(self) -> Recipe:
        """The recipe with the job's settings and seed."""
        return read_recipe(self.recipe, (*self.settings, f"train.seed={self.seed}"))

    @property
    def command(self) -> str:
        """The command that trains it."""
        sets = "".join(f" --set {setting}" for setting in (*self.settings, f"train.seed={self.seed}"))
        return f"halation train {self.recipe} --data flickr8k{sets} --out RUN"


def run_job(
    job: Job, data: Path, results: Path, runs: Path, *, progress: Progress = silent, log: Log = ignore
) -> dict[str, Any]:
    """Train, measure on the test split and write the numbers; or read them if the job is done."""
    done = finished(job, results)
    if done is not None:
        return done
    started_at = time.perf_counter()
    folder, recipe = runs / job.name, job.read()
    started = (folder / "config.toml").exists() and read_recipe(folder / "config.toml") == recipe
    if folder.exists() and not started:  # from an earlier recipe, finished or not
        shutil.rmtree(folder)
    if Run(folder).about().get("state") != "finished":
        train(recipe, data, folder, resume=started, progress=progress, log=log)
    model = load(folder)
    seconds = trained_seconds(folder)
    result: dict[str, Any] = {
        "recipe": job.recipe,
        "settings": list(job.settings),
        "seed": job.seed,
        "command": job.command,
        "digest": digest(recipe),
        "seconds": round(seconds, 1),
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "dev": best_dev(folder),
        "test": measured(model, data),
    }
    result["measuring_seconds"] = round(time.perf_counter() - started_at - seconds, 1)
    write_text(results / f"{job.name}.json", json.dumps(result) + "\n")
    return result


def run_at_once(
    jobs: Sequence[Job],
    at_once: int,
    data: Path,
    results: Path,
    runs: Path,
    *,
    progress: Progress = silent,
    log: Log = ignore,
) -> None:
    """Run every job, `at_once` of them in parallel. After an error, no new job starts and the running ones finish."""
    share = max(1, threads() // at_once)
    spawn = multiprocessing.get_context("spawn")  # a forked child would wait for torch's threads, which it lacks
    with ProcessPoolExecutor(at_once, spawn, _with_threads, (share,)) as pool:
        running = {pool.submit(run_job, job, data, results, runs): job for job in jobs}
        try:
            for number, done in enumerate(as_completed(running), 1):
                result, name = done.result(), running[done].name
                minutes = f"{result['seconds'] / 60:.1f} minutes of training"
                log(f"[{number}/{len(jobs)}] {name}: {minutes}, R-sum {result['test']['rsum']:.1f}")
                progress("runs", number, len(jobs))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _with_threads(share: int) -> None:
    os.environ["HALATION_THREADS"] = str(share)
    torch.set_num_threads(share)


def finished(job: Job, results: Path) -> dict[str, Any] | None:
    """The numbers of a job that was run with today's recipe; None if there are none."""
    path = results / f"{job.name}.json"
    result: dict[str, Any] = read_json(path) if path.exists() else {}
    return result if result.get("digest") == digest(job.read()) else None


def digest(recipe: Recipe) -> str:
    """A short hash of every value that differs from its default. A job whose recipe changed runs again."""
    values, defaults = (_flat(dataclasses.asdict(each)) for each in (recipe, Recipe()))
    changed = {key: value for key, value in values.items() if value != defaults[key]}
    return hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:16]


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def trained_seconds(folder: Path) -> float:
    """Seconds that the training took."""
    return float(Run(folder).about().get("seconds", 0.0))


def best_dev(folder: Path) -> dict[str, float]:
    """The dev figures of the epoch whose model was kept."""
    selected = [line["dev"] for line in Run(folder).history() if line.get("selected")]
    return dict(selected[-1])


def measured(model: Model, data: Path) -> dict[str, Any]:
    """All numbers of the tables, measured on the test split."""
    dataset = model.open_dataset(data, "test")
    images, captions = model.encode_dataset(dataset)
    scores: FloatArray = model.network.all_scores(images, captions).numpy()
    report = evaluate(scores, dataset.truth, METRICS, resamples=0)
    judged = read_flickr8k_judgements(data, "expert")
    pairs = scores[judged.pairs[:, 0], judged.pairs[:, 1]].astype(np.float64)
    return {
        **{side: {name: round(report.results(side)[name], 4) for name in METRICS} for side in ("i2t", "t2i")},
        "rsum": round(report.rsum, 4),
        "expert_tau_c": round(together(pairs, judged.scores), 4),
        "expert_within": round(100 * float(within(pairs, judged).mean()), 4),
        "rsum_by_image": rsum_by_image(report),
        "fifths": {"images": fifths(images, report, "i2t"), "captions": fifths(captions, report, "t2i")},
    }


def rsum_by_image(report: Report) -> list[int]:
    """What each image adds to R-sum, in fifths of a hit. The mean over images × 20 is R-sum (five captions each)."""
    hits = {side: _hits(report, side) for side in ("i2t", "t2i")}
    captions = hits["t2i"].reshape(len(hits["i2t"]), -1)  # (images, 5)
    assert captions.shape[1] == 5
    return [int(value) for value in np.rint(5 * hits["i2t"] + captions.sum(axis=1))]


def _hits(report: Report, side: str) -> FloatArray:
    columns = report.per_query[side]
    return np.asarray(sum(columns[name] for name in ("R@1", "R@5", "R@10")))


def fifths(encoded: Encoded, report: Report, side: str) -> list[float] | None:
    """R@1 by fifth of the queries, from the most to the least certain; None for points."""
    if not isinstance(encoded, Gaussian) or encoded.is_point:
        return None
    order = np.argsort(encoded.uncertainty().numpy(), kind="stable")
    hits = np.asarray(report.per_query[side]["R@1"])[order]
    return [round(100 * float(part.mean()), 2) for part in np.array_split(hits, 5)]
