"""How much recall hubness correction gains on Flickr8k's test split, and what it does to match probabilities.

`python -m bench hubness` uses the runs of `make studies` (HALATION_RUNS is their folder; default: runs/). The bank of
queries comes from the training split, up to 10,000; test queries are never in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.gallery import FLICKR8K, ROOT
from bench.results import Row
from halation.calibration import JudgedScores, ece, fit_calibrator
from halation.data import Direction
from halation.encoders import Model, load
from halation.evaluation import evaluate
from halation.index import HubnessKind, Index
from halation.search import choose_judge, judge_run, judged_truth
from halation.similarity import Gaussian

GROUP = "hubness"
RUNS = Path(os.environ.get("HALATION_RUNS", ROOT / "runs"))
MODELS = (*(f"flickr8k_infonce-seed{seed}" for seed in range(3)), "flickr8k_pcme-seed0", "flickr8k_pcmepp-seed0")
KINDS: tuple[HubnessKind | None, ...] = (None, "csls", "dual_softmax")
METRICS = ("R@1", "R@5", "R@10")
TOP = 24  # hits that are calibrated


def run() -> Iterator[Row]:
    present = [name for name in MODELS if (RUNS / name).is_dir()] if FLICKR8K.is_dir() else []
    if not present:
        yield Row(GROUP, "gain in recall", "not measured: no runs on Flickr8k (HALATION_RUNS: their folder)")
    for name in present:
        yield from _rows(name, load(RUNS / name))


@dataclass(frozen=True)
class Side:
    """The items to search, the test queries, and the bank of earlier queries that corrects for hubs."""

    items: Gaussian
    queries: Gaussian
    bank: Gaussian


def _rows(name: str, model: Model) -> Iterator[Row]:
    test = model.open_dataset(FLICKR8K, "test")
    images, captions = model.encode_dataset(test)
    bank_images, bank_captions = model.encode_dataset(model.open_dataset(FLICKR8K, "train"))
    assert isinstance(images, Gaussian) and isinstance(captions, Gaussian)
    assert isinstance(bank_images, Gaussian) and isinstance(bank_captions, Gaussian)
    similarity = model.indexed_similarity
    sides: dict[Direction, Side] = {
        "i2t": Side(captions, images, bank_images),
        "t2i": Side(images, captions, bank_captions),
    }
    calibrated = _Calibrated(model, FLICKR8K)
    base = 0.0
    for kind in KINDS:
        recalls, errors = {}, {}
        for direction, side in sides.items():
            names = [str(number) for number in range(len(side.items))]
            index = Index(names, side.items, similarity, "exact", hubness=kind, queries=side.bank)
            ranking = index.search(side.queries, len(index))
            scores = np.empty_like(ranking.scores)
            np.put_along_axis(scores, ranking.rows, ranking.scores, axis=1)
            by_image = scores if direction == "i2t" else scores.T  # (images, captions)
            measured = evaluate(by_image, test.truth, METRICS, resamples=0)
            recalls[direction] = measured.i2t if direction == "i2t" else measured.t2i
            errors[direction] = calibrated.ece(direction, ranking.rows)
        total = sum(recalls[direction][metric] for direction in recalls for metric in METRICS)
        base = base or total
        shown = ", ".join(f"{metric} {recalls['i2t'][metric]:.1f}/{recalls['t2i'][metric]:.1f}" for metric in METRICS)
        yield Row(
            GROUP,
            f"{name}, {(kind or 'no correction').replace('_', '-')}: i2t/t2i",
            f"{shown}, rsum {total:.1f}; ECE of the {TOP} first {errors['i2t']:.4f}/{errors['t2i']:.4f}",
            "" if kind is None else f"without: rsum {base:.1f}",
            None if kind is None else total / base,
        )


class _Calibrated:
    """Match probabilities fitted on dev's uncorrected scores, measured on the first test hits in any order."""

    def __init__(self, model: Model, folder: Path) -> None:
        judgements = []
        for split in ("dev", "test"):
            data = model.open_dataset(folder, split)
            judgements.append(judge_run(model, data, judged_truth(data, choose_judge(data))))
        dev, self._test = judgements
        self._calibrators = {direction: fit_calibrator(judged, top=TOP).calibrator for direction, judged in dev.items()}

    def ece(self, direction: Direction, order: np.ndarray) -> float:
        """The ECE of the first hits in this order (q, n)."""
        judged: JudgedScores = self._test[direction]
        first = np.take_along_axis(judged.scores, order[:, :TOP], axis=1)
        best = -np.sort(-judged.scores, axis=1)[:, :TOP]  # what a probability is relative to
        both = np.concatenate([first, best], axis=1)
        predicted = self._calibrators[direction].probability(both, judged.gallery, judged.uncertainty)[:, :TOP]
        return ece(predicted.ravel(), np.take_along_axis(judged.truth, order[:, :TOP], axis=1).ravel())
