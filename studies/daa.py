"""Does training the semantic ranking help, and what does it cost? The claims of PCME and DAA, tested on Flickr8k.

Tables of every model with and without DAA, of the relevance to train by and of the captions an image needs, and the
front between recall and ASP as the weight of DAA grows. Every run is a file of numbers, so the study can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halation._files import read_json, write_text
from halation._progress import Progress, silent
from studies.daa_tables import (
    LARGE_WEIGHT,
    caption_tables,
    certainty_table,
    change_table,
    cost_table,
    front,
    front_plot,
    models_tables,
    relevance_tables,
    trials_tables,
    unconfirmed,
)
from studies.jobs import Job, Log, finished, ignore, run_at_once, run_job
from studies.page import Table, join, paragraph

__all__ = ["DaaStudy", "daa", "jobs"]

CLOSED_FORM = ("cca",)  # without training, so one seed and no DAA
MODELS = ("infonce", "committee", "vse", "pvse", "pcme", "pcmepp", "sgr", "saf")
QUICK = ("infonce", "pcme", "sgr")
SEEDS = (0, 1, 2)
RELEVANCES = ("tfidf", "cider", "bleu4", "rouge-l")
RATIOS = (1, 2, 3, 4)
WEIGHTS = (1, 2, 5, 10, 20, 40)


_HEAD = """\
# Results on Flickr8k

What does training the semantic ranking gain, and what does it cost? Every model is trained with and without DAA on
frozen EfficientNet-Lite0 features, and measured on the 1,000 images × 5 captions of the official test split. The dev
split chose the epoch and the settings. Numbers are mean ± standard deviation over seeds.

“+ DAA” adds [DAA](losses.md) to the loss of the same model. It trains the score that search uses."""

_MADE = """\
Made by `python -m studies daa --data flickr8k --out docs`. The numbers and the command of each run are in
`docs/results/`. Correcting for hubs at search time adds more than ten points of R-sum for InfoNCE
([the index](index_backends.md#hubs)). `committee` is three InfoNCE heads joined into one point, `cca` a closed-form
baseline without training."""

_RELEVANCES = """\
InfoNCE + DAA, trained by one relevance and measured by five. A relevance mostly gains its own ASP, which is why a gain
in one ASP alone proves little."""

_TRIALS = """\
Everything that was tried, so that you can judge what was chosen. Pairs are image → text / text → image. “Images” is how
many dev images were measured; empty means all 1,000. Fewer images give higher recall, so compare only equal numbers.
R-P(people) is empty where it was not measured. Trials with `rsum+people` were judged by R-sum plus both R-P(people).
“By gist” means that DAA trained a second embedding, which an index could not search. It was removed."""


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
        tables = [*self._models(), *self._relevances(), *self._captions(), *trials_tables(self.trials)]
        return "\n\n".join([*(table.text() for table in tables if table.rows), *self._not_run()])

    def to_markdown(self) -> str:
        """The page docs/results.md."""
        plot = "![R-sum against ASP as the weight of DAA grows](results/front.png)"
        relevances, trials = self._relevances(), trials_tables(self.trials)
        parts = [
            _HEAD,
            paragraph(unconfirmed(self.results, self.models, self.seeds)),
            _MADE,
            *self._not_run(),
            *(table.markdown() for table in self._models() if table.rows),
            f"## Recall against ASP\n\n{plot}" if front(self.results, WEIGHTS) else "",
            f"## Which relevance to train by\n\n{_RELEVANCES}" if relevances else "",
            *(table.markdown(3) for table in relevances),
            *(table.markdown() for table in self._captions()),
            f"## All trials on the dev split\n\n{_TRIALS}" if trials else "",
            *(table.markdown(3) for table in trials),
        ]
        return join(parts)

    def _models(self) -> list[Table]:
        every = (*CLOSED_FORM, *self.models)
        return [
            change_table(self.results, self.models, self.seeds),
            *models_tables(self.results, every, self.seeds),
            cost_table(self.results, every, self.seeds),
            certainty_table(self.results, self.models, self.seeds),
        ]

    def _relevances(self) -> list[Table]:
        return relevance_tables(self.results, RELEVANCES, self.seeds)

    def _captions(self) -> list[Table]:
        return caption_tables(self.results, (*RATIOS, 5), self.seeds)

    def _not_run(self) -> list[str]:
        if not self.missing:
            return []
        first = ", ".join(self.missing[:6]) + (", …" if len(self.missing) > 6 else "")
        return [paragraph(f"Not yet run with today's recipe: {len(self.missing)} runs ({first}).")]

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
    planned += [_weighted(weight, seed) for weight in WEIGHTS for seed in (seeds if weight == LARGE_WEIGHT else (0,))]
    for seed in seeds:
        planned += [Job("flickr8k_infonce_daa", (f"loss.daa.relevance={name}",), seed, name) for name in RELEVANCES[1:]]
    for seed in seeds:
        for captions in RATIOS:
            for kind in ("", "_daa"):
                settings = (f"data.captions={captions}",)
                planned.append(Job(f"flickr8k_infonce{kind}", settings, seed, f"captions{captions}"))
    return planned


def _weighted(weight: int, seed: int) -> Job:
    """InfoNCE with this much DAA."""
    settings = (f"loss.daa.weight={weight}", "loss.daa.temperature=0.01")
    return Job("flickr8k_infonce_daa", settings, seed, f"weight{weight}")


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
