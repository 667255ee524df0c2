"""The measures of one run in one direction: fitted on its dev split, measured on its test split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.calibration import (
    AbstentionTrials,
    Calibrator,
    CalibratorFit,
    Conformal,
    JudgedScores,
    Nonconformity,
    ProbabilityMap,
    auroc,
    brier,
    brier_skill,
    choose_abstention,
    coverage_at_precision,
    ece,
    fit_abstention,
    probability_maps,
)

__all__ = ["CANDIDATES", "Measured", "abstaining", "by_truth", "galleries", "probabilities", "sets", "words"]

CANDIDATES = 24  # of each query, whose probabilities are measured: a page of hits

_PRECISION = 0.9
_DRAWS = 200
_KINDS = {"all matches": False, "one match": True}  # left in the gallery for a query that has any
_ANSWERS = ((1, 1), (2, 5), (6, 20), (21, 100), (101, 300), (301, 10**9))
Row = dict[str, Any]


@dataclass(eq=False)
class Measured:
    """One run in one direction: rows of numbers by name.

    before   in words, the probability you would use without calibration
    """

    world: str
    direction: str
    about: str
    recipe: str  # its name; with the seed, what you need to train the run again
    seed: int
    digest: str  # of the recipe at the time of training
    chosen: str
    before: str
    probabilities: list[Row] = field(default_factory=list)
    galleries: list[Row] = field(default_factory=list)
    abstention: list[Row] = field(default_factory=list)
    thresholds: list[Row] = field(default_factory=list)
    by_truth: list[Row] = field(default_factory=list)
    sets: list[Row] = field(default_factory=list)
    words: list[Row] = field(default_factory=list)
    lines: list[tuple[str, FloatArray, BoolArray]] = field(default_factory=list)  # for the reliability plot
    curves: list[tuple[str, FloatArray, BoolArray]] = field(default_factory=list)  # evidence, has a match

    @property
    def title(self) -> str:
        return f"{self.world}, {'text → image' if self.direction == 't2i' else 'image → text'}"


def probabilities(
    fitted: CalibratorFit, dev: JudgedScores, test: JudgedScores, before: Callable[[FloatArray], FloatArray]
) -> tuple[list[Row], list[Any]]:
    """Every kind of calibration, fitted on dev and measured on the test split; and two lines to plot.

    Intervals of the ECE resample images.
    """
    scores, matches = test.mixed(CANDIDATES)
    exists = np.isfinite(scores)
    labels = matches[exists]
    by_name = {"before": test.mixed_values(before, CANDIDATES)[exists]}
    for name, probability_map in probability_maps(dev, top=CANDIDATES).items():
        by_name[name] = probability_map(scores, test.gallery)[exists]
    image = np.repeat(np.tile(test.query_image, 2), exists.shape[1])[exists.ravel()]
    rows = []
    for name, p in by_name.items():
        low, high = _interval(p, labels, image)
        figures = {"ece": ece(p, labels), "low": low, "high": high, "brier": brier(p, labels)}
        rows.append(
            {"name": name, **figures, "skill": brier_skill(p, labels), "chosen": name == fitted.calibrator.chosen}
        )
    return rows, [(name, by_name[name], labels) for name in ("before", fitted.calibrator.chosen)]


def _interval(p: FloatArray, labels: BoolArray, image: IntArray) -> tuple[float, float]:
    """The middle 95 % of the ECE over draws of images."""
    generator = np.random.default_rng(0)
    order = np.argsort(image, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(image[order]) != 0))
    groups = np.split(order, starts[1:])
    values = []
    for _ in range(_DRAWS):
        rows = np.concatenate([groups[k] for k in generator.integers(len(groups), size=len(groups))])
        values.append(ece(p[rows], labels[rows]))
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def galleries(calibration: ProbabilityMap, test: JudgedScores, bigger: JudgedScores | None) -> list[Row]:
    """ECE in galleries of other sizes, with and without the correction for size.

    bigger   the same queries among more items
    """
    generator = np.random.default_rng(0)
    images = np.unique(test.item_image)
    parts: list[list[JudgedScores]] = []
    for share in (20, 10, 3, 1):
        count = len(images) // share
        times = min(share, 5)
        parts.append([test.of_images(generator.permutation(images)[:count]) for _ in range(times)])
    parts += [] if bigger is None else [[bigger]]
    rows = []
    for some in parts:
        candidates = [part.mixed(CANDIDATES) for part in some]
        labels = np.concatenate([matches[np.isfinite(scores)] for scores, matches in candidates])
        row: Row = {"gallery": some[0].gallery, "base": float(labels.mean())}
        for name, size in (("without", None), ("with", some[0].gallery)):
            parts_of = [calibration(scores, size)[np.isfinite(scores)] for scores, _ in candidates]
            row[name] = ece(np.concatenate(parts_of), labels)
        rows.append(row)
    return rows


def abstaining(
    taken_out: str, dev: JudgedScores, test: JudgedScores, top: int
) -> tuple[list[Row], list[Row], list[tuple[str, FloatArray, BoolArray]]]:
    """AUROC of every statistic, held out on dev and on test; and the chosen one at the threshold fitted on dev.

    A query that has a match has all of them in the gallery, or one of them alone.
    """
    chosen, areas = choose_abstention(dev, depth=top, precision=_PRECISION)
    trial = AbstentionTrials.of(test, top)
    out = test.matching_or_plausible
    first: Row = {"taken out": taken_out, "removed": float(out.sum(axis=1).mean())}
    rows: list[Row] = []
    for name in areas:
        fitted = fit_abstention(dev, name, depth=top, precision=_PRECISION)
        row = {**first, "statistic": name, "dev": areas[name], "chosen": name == chosen.statistic}
        rows.append(row | _detection(fitted.evidence(trial.scores, trial.gallery, trial.uncertainty), trial))
    rows.append({**first, "statistic": "z-score in the whole gallery", "dev": float("nan"), "chosen": False})
    rows[-1] |= _detection(_z_in_gallery(test, trial), trial)
    evidence = chosen.evidence(trial.scores, trial.gallery, trial.uncertainty)
    thresholds, curves = [], []
    for kind, alone in _KINDS.items():
        queries = trial.against_none(single=alone)
        row = {"taken out": taken_out, "statistic": chosen.statistic, "kind": kind, "threshold": chosen.threshold}
        if chosen.threshold is not None:
            answered, right = evidence[queries] >= chosen.threshold, trial.has_match[queries]
            row["precision"] = float(right[answered].mean())
            row["answered"], row["found"] = float(answered.mean()), float(answered[right].mean())
        thresholds.append(row)
        curves.append((f"{taken_out}; {kind}", evidence[queries], trial.has_match[queries]))
    return rows, thresholds, curves


def _detection(evidence: FloatArray, trial: AbstentionTrials) -> Row:
    """AUROC, and the share of the queries with a match that are answered at 90 % precision, for both kinds."""
    row: Row = {}
    for kind, alone in _KINDS.items():
        queries = trial.against_none(single=alone)
        row[f"auroc, {kind}"] = auroc(evidence[queries], trial.has_match[queries])
        covered = coverage_at_precision(evidence[queries], trial.has_match[queries], _PRECISION)
        row[f"answered, {kind}"], row[f"found, {kind}"] = covered.answered, covered.recall
    return row


def by_truth(dev: JudgedScores, test: JudgedScores, top: int) -> list[Row]:
    """AUROC of the chosen statistic by how many items answer a query, where that is known."""
    chosen, _ = choose_abstention(dev, depth=top, precision=_PRECISION)
    answers, rows = test.matches.sum(axis=1), []
    for low, high in _ANSWERS:
        queries = np.flatnonzero((answers >= low) & (answers <= high))
        if len(queries) > 50:
            trial = AbstentionTrials.of(test.queries(queries), top)
            figures = _detection(chosen.evidence(trial.scores, trial.gallery, trial.uncertainty), trial)
            rows.append({"low": low, "high": min(high, test.gallery), "queries": len(queries), **figures})
    return rows


def _z_in_gallery(test: JudgedScores, trial: AbstentionTrials) -> FloatArray:
    """(best − mean)/sd of a query's scores over the whole gallery, which an index that returns few hits cannot know.

    Mean and sd are of the full gallery, so that they do not reveal that matches were taken out.
    """
    mean, spread = test.scores[trial.query].mean(axis=1), test.scores[trial.query].std(axis=1)
    return np.asarray((trial.scores[:, 0] - mean) / spread)


def sets(dev: JudgedScores, test: JudgedScores, alpha: float, splits: int) -> Row:
    """Coverage and size over image-level splits of the test split, also by fifth of uncertainty; shape from dev."""
    shape = Nonconformity.fit(dev, alpha)
    generator = np.random.default_rng(0)
    fifth = np.zeros(len(test), dtype=np.int64)
    if test.uncertainty is not None:
        fifth = np.argsort(np.argsort(test.uncertainty, kind="stable")) * 5 // len(test)
    rounds, parts = [], []
    for _ in range(splits):
        drawn = generator.permutation(test.images)
        half = np.isin(test.query_image, drawn[: len(drawn) // 2])
        conformal = Conformal.fit(test.queries_of(drawn[: len(drawn) // 2]), shape, alpha)
        rest = test.queries_of(drawn[len(drawn) // 2 :])
        inside, size, fifth_of = conformal.coverage(rest), conformal.sizes(rest), fifth[~half]
        rounds.append((inside.mean(), size.mean(), (inside > 0).mean()))
        parts.append([(inside[fifth_of == k].mean(), size[fifth_of == k].mean()) for k in range(int(fifth.max()) + 1)])
    once = Conformal.fit(dev, shape, alpha)
    mean = np.mean(rounds, axis=0)
    by_fifth = np.mean(parts, axis=0)
    return {
        "level": 1 - alpha,
        "coverage": float(mean[0]),
        "sd": float(np.std([row[0] for row in rounds])),
        "size": float(mean[1]),
        "any": float(mean[2]),
        "from dev": float(once.coverage(test).mean()),
        "fifths": by_fifth.tolist() if test.uncertainty is not None else [],
        "lean": shape.best_weight,
        "slope": shape.slope,
    }


def words(calibrator: Calibrator, test: JudgedScores) -> list[Row]:
    """How many items answer the queries that each word describes on the test split, and how large their sets are."""
    if calibrator.ambiguity is None or test.uncertainty is None or not calibrator.ambiguity.is_informative:
        return []
    word_of = np.array([calibrator.ambiguity(float(sigma)) for sigma in test.uncertainty])
    answers = test.matching_or_plausible.sum(axis=1)
    size = calibrator.conformal.sizes(test)
    return [
        {
            "word": word,
            "queries": float((word_of == word).mean()),
            "answers": float(answers[word_of == word].mean()),
            "median": float(np.median(answers[word_of == word])),
            "set": float(size[word_of == word].mean()),
        }
        for word in ("specific", "ordinary", "broad")
        if (word_of == word).any()
    ]
