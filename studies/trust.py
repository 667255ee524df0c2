"""Can you trust a run? Probabilities, "nothing here matches" and conformal sets, measured on unseen images.

On drawn scenes, where it is known which caption is true of which picture, and on Flickr8k, where most of what is true
was never annotated. Everything is fitted on the images of the dev split that early stopping did not use (on all of
them if it used all) and measured on the test split. Conformal thresholds come from halves of the test split, since
their promise is about queries from the same distribution.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from halation import InputError
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation.calibration import JudgedScores, fit_calibrator, reliability_plot
from halation.data import Dataset, Direction, read_flickr8k_judgements
from halation.encoders import Model, load
from halation.search import NEAR_RELEVANCE, calibration_split, judge, near_matches, uncalibrated_probability
from halation.training import read_recipe
from studies.jobs import Log, digest, ignore
from studies.trust_measure import CANDIDATES, Measured, abstaining, by_truth, galleries, probabilities, sets, words
from studies.trust_plots import abstention_plot, sets_plot
from studies.trust_tables import page, tables

__all__ = ["TrustStudy", "trust"]

_DEPTH = 10  # best scores that abstention looks at
_EXPERTS = 3.0  # of 4: describes the image with at most minor errors
Folder = str | os.PathLike[str]


@dataclass(eq=False)
class TrustStudy:
    """The measures of each run in each direction."""

    measured: list[Measured]
    caught: dict[str, float]  # share of the pairs experts confirmed that each relevance calls near
    splits: int

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in tables(self.measured, self.splits))

    def to_markdown(self) -> str:
        """Tables, plots and how they were made."""
        return page(self.measured, self.caught, self.splits)

    @classmethod
    def read(cls, path: Folder) -> TrustStudy:
        """The study as its trust.json has it: enough for the page, without the points of the plots."""
        document = read_json(Path(path))
        for part in document["measured"]:
            for row in part["abstention"]:
                row["dev"] = math.nan if row["dev"] is None else row["dev"]  # JSON has no NaN
        measured = [Measured(**part) for part in document["measured"]]
        return cls(measured, document["caught"], document["splits"])

    def write(self, folder: Folder) -> list[Path]:
        """Write trust.md, trust.json and three plots into `folder`; numbers only, no captions."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        names = ("trust.md", "trust.json", "trust_reliability.png", "trust_abstention.png", "trust_sets.png")
        paths = [target / name for name in names]
        write_text(paths[0], self.to_markdown())
        parts = [{k: v for k, v in asdict(one).items() if k not in ("lines", "curves")} for one in self.measured]
        document = {"caught": self.caught, "splits": self.splits, "measured": parts}
        write_text(paths[1], json.dumps(document, indent=1).replace("NaN", "null") + "\n")
        reliability_plot([(one.title, one.lines) for one in self.measured], paths[2])
        abstention_plot(self.measured, paths[3])
        sets_plot(self.measured, paths[4])
        return paths


def trust(
    scenes: Folder | None,
    scenes_run: Folder | None,
    data: Folder | None,
    run: Folder | None,
    *,
    splits: int = 100,
    relevances: tuple[str, ...] = ("sentence", "cider"),
    progress: Progress = silent,
    log: Log = ignore,
) -> TrustStudy:
    """Measure a run on scenes, a run on Flickr8k, or both.

    relevances   if annotations are incomplete, images near a caption by these are taken out with its own
    """
    worlds = (("scenes", scenes, scenes_run), ("Flickr8k", data, run))
    given = [(name, folder, path) for name, folder, path in worlds if folder is not None and path is not None]
    if not given or any((folder is None) != (path is None) for _, folder, path in worlds):
        raise InputError("give --scenes with --scenes-run, --data with --run, or all four")
    measured: list[Measured] = []
    caught: dict[str, float] = {}
    for name, folder, path in given:
        model = load(path)
        splits_of = {"dev": calibration_split(model, folder)[0], "test": model.open_dataset(folder, "test")}
        near = {
            kind: [near_matches(part, kind, progress=progress) for part in splits_of.values()] for kind in relevances
        }
        complete = all(part is None for pair in near.values() for part in pair)
        if not complete and (Path(folder) / "ExpertAnnotations.txt").is_file():
            caught |= {kind: _caught(folder, pair[1]) for kind, pair in near.items()}
        log(f"{name}: {model.folder} on {', '.join(part.name for part in splits_of.values())}")
        measured += _world(name, model, folder, list(splits_of.values()), {} if complete else near, splits, progress)
    return TrustStudy(measured, caught, splits)


def _world(
    name: str,
    model: Model,
    folder: Folder,
    parts: list[Dataset],
    near: dict[str, list[Any]],
    splits: int,
    progress: Progress,
) -> list[Measured]:
    dev, test = (judge(model, part, progress=progress) for part in parts)
    recipe = read_recipe(model.folder)
    about = f"{recipe.name}, seed {recipe.train.seed}, {recipe.train.epochs} epochs, KL {recipe.loss.kl.weight:g}"
    about += f", fitted on {len(parts[0]):,} dev images"
    words_before, before = uncalibrated_probability(recipe, model.learnt)
    measured = []
    sides: tuple[Direction, Direction] = ("t2i", "i2t")
    for side in sides:
        judged = {"exact": (dev[side], test[side])} if not near else _with_near(dev[side], test[side], near)
        first = next(iter(judged.values()))
        fitted = fit_calibrator(first[0], top=CANDIDATES, before=before)
        one = Measured(
            name, side, about, recipe.name, recipe.train.seed, digest(recipe), fitted.calibrator.chosen, words_before
        )
        one.probabilities, one.lines = probabilities(fitted, *first, before)
        bigger = _bigger(model, folder, parts[1], test[side]) if near and side == "t2i" else None
        one.galleries = galleries(fitted.calibrator.probability_map, first[1], bigger)
        for kind, pair in judged.items():
            label = "all that is true" if kind == "exact" else f"own, {kind} ≥ {NEAR_RELEVANCE[kind]:g}"
            rows, thresholds, curves = abstaining(label, *pair, _DEPTH)
            one.abstention += rows
            one.thresholds += thresholds
            one.curves += curves
            progress(f"{one.title}: abstention", len(one.thresholds) // 2, len(judged))
        one.by_truth = [] if near else by_truth(*first, _DEPTH)
        one.sets = [sets(*first, alpha, splits) for alpha in (0.1, 0.05)]
        one.words = words(fitted.calibrator, first[1])
        measured.append(one)
    return measured


def _with_near(
    dev: JudgedScores, test: JudgedScores, near: dict[str, list[Any]]
) -> dict[str, tuple[JudgedScores, JudgedScores]]:
    """The same scores, with the pairs that each relevance calls near."""
    transposed = dev.direction == "t2i"
    return {
        kind: (
            replace(dev, plausible=pair[0].T if transposed else pair[0]),
            replace(test, plausible=pair[1].T if transposed else pair[1]),
        )
        for kind, pair in near.items()
    }


def _bigger(model: Model, folder: Folder, test: Dataset, judged: JudgedScores) -> JudgedScores:
    """The test captions against the images of all splits, eight times as many."""
    _, captions = model.encode_dataset(test)
    more = [
        model.encode_dataset(model.open_dataset(folder, name))[0]
        for name in (model.config.data.dev, model.config.data.train)
    ]
    blocks = [model.network.all_scores(images, captions).numpy().T for images in more]
    scores = np.concatenate([judged.scores, *blocks], axis=1)
    extra = scores.shape[1] - judged.gallery
    matches = np.pad(judged.matches, ((0, 0), (0, extra)))
    items = np.arange(scores.shape[1])
    return JudgedScores(scores, matches, judged.query_image, items, judged.uncertainty, None, judged.direction)


def _caught(folder: Folder, near) -> float:  # type: ignore[no-untyped-def]
    """The share of pairs called near, among those that experts confirm although the caption is another image's."""
    judged = read_flickr8k_judgements(folder, "expert")
    good = (judged.scores.mean(axis=1) >= _EXPERTS) & ~judged.own_caption
    images, captions = judged.pairs[good].T
    return float(np.mean(near[images, captions]))
