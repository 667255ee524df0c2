"""Does training the semantic ranking help, and what does it cost? The claims of PCME and DAA, tested on Flickr8k.

Three tables (every model with and without DAA; which relevance to train by; how many captions an image needs) and the
front between recall and ASP as the weight of DAA grows. Every run is a file of numbers, so the study can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halation import _table
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from studies.daa_tables import (
    ablation_table,
    front,
    front_plot,
    models_table,
    ratio_table,
    trials_table,
    verdicts,
)
from studies.jobs import Job, Log, finished, ignore, run_at_once, run_job

__all__ = ["DaaStudy", "daa", "jobs"]

CLOSED_FORM = ("cca",)  # without training, so one seed and no DAA
MODELS = ("infonce", "committee", "vse", "pvse", "pcme", "pcmepp", "sgr", "saf")
QUICK = ("infonce", "pcme", "sgr")
SEEDS = (0, 1, 2)
RELEVANCES = ("tfidf", "cider", "bleu4", "rouge-l")
RATIOS = (1, 2, 3, 4)
WEIGHTS = (1, 2, 5, 20, 40)


_HEAD = """\
# Results on Flickr8k

1,000 test photographs × 5 captions, official split, frozen EfficientNet-Lite0 features; mean ± sd over seeds. The
epoch is chosen on the dev split, and nothing on the test split. Made by
`python -m studies daa --data flickr8k --out docs`; the numbers and the command of each run are in `docs/results/`.
Minutes are for one thread. The rows were run on different machines, some of them busy: trust only large ratios.

“+ DAA” is DAA by gist ([training](training.md)): annotated matches train the model as they do without it, bit for bit,
and its own score decides the first places, so recall is that of the base by construction; DAA orders the rest. “On its
own score” is DAA as published, for comparison. Correcting for hubs at search time adds more than ten points of R-sum
for InfoNCE: [index backends](index_backends.md#hubs)."""


@dataclass(frozen=True)
class DaaStudy:
    """The results so far, by job name."""

    results: Mapping[str, Mapping[str, Any]]
    trials: Sequence[Mapping[str, Any]] = ()
    missing: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    models: tuple[str, ...] = MODELS
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        parts = [_table.text(*table, title=title) for title, table in self._tables()]
        return "\n\n".join([*parts, *verdicts(self.results, self.models, self.seeds), *self._not_run()])

    def to_markdown(self) -> str:
        """The page docs/results.md."""
        first, *others = [_table.markdown(*table, title=f"## {title}") for title, table in self._tables()] or [""]
        lines = verdicts(self.results, self.models, self.seeds)
        plot = ["![R-sum against ASP as the weight of DAA grows, and DAA by gist](results/front.png)"]
        plot = plot if front(self.results, WEIGHTS) else []
        return "\n\n".join(part for part in [_HEAD, first, *lines, *plot, *self._not_run(), *others] if part) + "\n"

    def _tables(self) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
        tables = [
            ("Every model, base and with DAA", models_table(self.results, (*CLOSED_FORM, *self.models), self.seeds)),
            ("Which relevance to train by", ablation_table(self.results, RELEVANCES, self.seeds)),
            ("How many captions an image needs", ratio_table(self.results, (*RATIOS, 5), self.seeds)),
        ]
        if self.trials:
            tables.append(("All trials on the dev split", trials_table(self.trials)))
        return [(title, table) for title, table in tables if table[1]]

    def _not_run(self) -> list[str]:
        if not self.missing:
            return []
        first = ", ".join(self.missing[:6]) + (", …" if len(self.missing) > 6 else "")
        return [f"Not yet run with today's recipe: {len(self.missing)} runs ({first})."]

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write results.md and the plot of the front into `folder`."""
        target = Path(folder)
        paths = [target / "results.md", target / "results" / "front.png"]
        write_text(paths[0], self.to_markdown())
        return paths if front_plot(self.results, WEIGHTS, paths[1]) else paths[:1]


def jobs(*, quick: bool = False) -> list[Job]:
    """All runs of the study, those that say most first."""
    models, seeds = (QUICK, SEEDS[:1]) if quick else (MODELS, SEEDS)
    planned = [Job(f"flickr8k_{model}{kind}", seed=seed) for seed in seeds for model in models for kind in ("", "_daa")]
    planned += [Job(f"flickr8k_{model}") for model in CLOSED_FORM]
    if quick:
        return planned
    planned += [_plain(10, seed, "plain") for seed in seeds]
    planned += [_plain(weight, 0, f"weight{weight}") for weight in WEIGHTS]
    for seed in seeds:
        planned += [Job("flickr8k_infonce_daa", (f"loss.daa.relevance={name}",), seed, name) for name in RELEVANCES[1:]]
    for seed in seeds:
        for captions in RATIOS:
            for kind in ("", "_daa"):
                settings = (f"data.captions={captions}",)
                planned.append(Job(f"flickr8k_infonce{kind}", settings, seed, f"captions{captions}"))
    return planned


def _plain(weight: float, seed: int, label: str) -> Job:
    """DAA on the model's own score, without a gist, as in the paper."""
    settings = ("model.gist=0", f"loss.daa.weight={weight}", "loss.daa.temperature=0.01")
    return Job("flickr8k_infonce_daa", settings, seed, label)


def daa(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    runs: str | os.PathLike[str],
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    at_once: int = 1,
    progress: Progress = silent,
    log: Log = ignore,
) -> DaaStudy:
    """Run the jobs that have no result yet, and collect the tables.

    only      runs whose name contains one of these
    at_once   processes, each with its share of the threads; small models train faster that way than one after another
              on all threads
    """
    results = Path(out) / "results"
    results.mkdir(parents=True, exist_ok=True)
    Path(runs).mkdir(parents=True, exist_ok=True)
    planned = jobs(quick=quick)
    wanted = [job for job in planned if not only or any(part in job.name for part in only)]
    if at_once > 1:
        run_at_once(wanted, at_once, Path(data), results, Path(runs), progress=progress, log=log)
        return collect(out, quick=quick)
    for number, job in enumerate(wanted):
        log(f"[{number + 1}/{len(wanted)}] {job.name}")
        run_job(job, Path(data), results, Path(runs), progress=progress, log=log)
        progress("runs", number + 1, len(wanted))
    return collect(out, quick=quick)


def collect(out: str | os.PathLike[str], *, quick: bool = False) -> DaaStudy:
    """The study as its files have it."""
    results = Path(out) / "results"
    planned = jobs(quick=quick)
    every = ((job.name, finished(job, results)) for job in jobs())
    results_by_name = {name: result for name, result in every if result is not None}
    missing = tuple(job.name for job in planned if job.name not in results_by_name)
    trials = read_json(results / "trials.json") if (results / "trials.json").exists() else []
    return DaaStudy(results_by_name, trials, missing, SEEDS[:1] if quick else SEEDS, QUICK if quick else MODELS)
