"""What is measured of one run in one direction: fitted on its dev split, asked on its test split."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.calibration import (
    Before,
    Calibrator,
    Conformal,
    Fitted,
    JudgedScores,
    ProbabilityMap,
    Shape,
    Trial,
    auroc,
    brier,
    brier_skill,
    choose_abstention,
    coverage_at_precision,
    ece,
    fit_abstention,
    trials,
)
from halation.calibration._abstention import STATISTICS
from halation.calibration._choose import VARIANTS, before_mixed

__all__ = ["Measured", "abstaining", "by_truth", "galleries", "probabilities", "sets", "words"]

_PRECISION = 0.9
_DRAWS = 200
_KINDS = {"among its like": False, "alone": True}
_TRUE_OF = ((1, 1), (2, 5), (6, 20), (21, 100), (101, 300), (301, 10**9))
Row = dict[str, Any]


@dataclass(eq=False)
class Measured:
    """One run, one direction; rows of numbers by name. before: what one would have said without, in words."""

    world: str
    direction: str
    about: str
    recipe: str  # by name, with its seed: what was measured can be looked at again
    seed: int
    digest: str  # of that recipe as it was when the run was trained
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
    fitted: Fitted, dev: JudgedScores, test: JudgedScores, before: Before, top: int
) -> tuple[list[Row], list[Any]]:
    """Every kind, fitted on dev, on the test split; intervals of the ECE resample images. And lines to plot."""
    scores, matches = test.mixed(top)
    there = np.isfinite(scores)
    image = np.repeat(np.tile(test.query_image, 2), scores.shape[1])[there.ravel()]
    said = {"before": before_mixed(before, test, top)[there]}
    for name, kind, relative in VARIANTS:
        calibration = ProbabilityMap.fit(dev, kind, relative=relative, top=top)
        said[name] = calibration(scores, test.gallery)[there]
    labels, rows = matches[there], []
    for name, p in said.items():
        low, high = _interval(p, labels, image)
        found = {"ece": ece(p, labels), "low": low, "high": high, "brier": brier(p, labels)}
        rows.append(
            {"name": name, **found, "skill": brier_skill(p, labels), "chosen": name == fitted.calibrator.chosen}
        )
    return rows, [(name, said[name], labels) for name in ("before", fitted.calibrator.chosen)]


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


def galleries(calibration: ProbabilityMap, test: JudgedScores, bigger: JudgedScores | None, top: int) -> list[Row]:
    """ECE in galleries of other sizes, with the correction and without; `bigger`: the same queries among more items."""
    generator = np.random.default_rng(0)
    images = np.unique(test.item_image)
    parts: list[list[JudgedScores]] = []
    for share in (20, 10, 3, 1):
        count = len(images) // share
        times = min(share, 5)
        parts.append([test.of(generator.permutation(images)[:count]) for _ in range(times)])
    parts += [] if bigger is None else [[bigger]]
    rows = []
    for some in parts:
        tops = [part.mixed(top) for part in some]
        labels = np.concatenate([matches[np.isfinite(scores)] for scores, matches in tops])
        row: Row = {"gallery": some[0].gallery, "base": float(labels.mean())}
        for name, size in (("without", None), ("with", some[0].gallery)):
            said = [calibration(scores, size)[np.isfinite(scores)] for scores, _ in tops]
            row[name] = ece(np.concatenate(said), labels)
        rows.append(row)
    return rows


def abstaining(
    taken_out: str, dev: JudgedScores, test: JudgedScores, top: int
) -> tuple[list[Row], list[Row], list[tuple[str, FloatArray, BoolArray]]]:
    """Every statistic, AUROC held out on dev and on test; and the one chosen at the threshold that dev gave it.

    A query's matches are among their like (the gallery as it is), or one of them is alone there.
    """
    chosen, areas = choose_abstention(dev, depth=top, precision=_PRECISION)
    asked = trials(test, top)
    out = test.matches if test.near is None else test.matches | test.near
    shown: Row = {"taken out": taken_out, "removed": float(out.sum(axis=1).mean())}
    rows: list[Row] = []
    for name in [name for name in STATISTICS if name in areas]:
        fitted = fit_abstention(dev, name, depth=top, precision=_PRECISION)
        row = {**shown, "statistic": name, "dev": areas[name], "chosen": name == chosen.statistic}
        rows.append(row | _told(fitted.evidence(asked.scores, asked.gallery, asked.uncertainty), asked))
    rows.append({**shown, "statistic": "z-score in the whole gallery", "dev": float("nan"), "chosen": False})
    rows[-1] |= _told(_z_in_gallery(test, asked), asked)
    evidence = chosen.evidence(asked.scores, asked.gallery, asked.uncertainty)
    thresholds, curves = [], []
    for kind, alone in _KINDS.items():
        own = asked.against_none(alone=alone)
        row = {"taken out": taken_out, "statistic": chosen.statistic, "kind": kind, "threshold": chosen.threshold}
        if chosen.threshold is not None:
            answered, right = evidence[own] >= chosen.threshold, asked.has_match[own]
            row["precision"] = float(right[answered].mean())
            row["answered"], row["found"] = float(answered.mean()), float(answered[right].mean())
        thresholds.append(row)
        curves.append((f"{taken_out}; {kind}", evidence[own], asked.has_match[own]))
    return rows, thresholds, curves


def _told(evidence: FloatArray, asked: Trial) -> Row:
    """AUROC, and the share of the queries with a match that are answered at 90 % precision, for both kinds."""
    row: Row = {}
    for kind, alone in _KINDS.items():
        own = asked.against_none(alone=alone)
        row[f"auroc, {kind}"] = auroc(evidence[own], asked.has_match[own])
        covered = coverage_at_precision(evidence[own], asked.has_match[own], _PRECISION)
        row[f"answered, {kind}"], row[f"found, {kind}"] = covered.answered, covered.found
    return row


def by_truth(dev: JudgedScores, test: JudgedScores, top: int) -> list[Row]:
    """AUROC of the chosen statistic by how many items answer a query, where that is known."""
    chosen, _ = choose_abstention(dev, depth=top, precision=_PRECISION)
    answers, rows = test.matches.sum(axis=1), []
    for low, high in _TRUE_OF:
        own = np.flatnonzero((answers >= low) & (answers <= high))
        if len(own) > 50:
            asked = trials(test.rows(own), top)
            told = _told(chosen.evidence(asked.scores, asked.gallery, asked.uncertainty), asked)
            rows.append({"low": low, "high": min(high, test.gallery), "queries": len(own), **told})
    return rows


def _z_in_gallery(test: JudgedScores, asked: Trial) -> FloatArray:
    """(best − mean)/sd of a query over the whole gallery: what an index that gives the best few cannot know.

    The mean and the sd of the gallery as it is: what was taken out must not show in them.
    """
    mean, spread = test.scores[asked.query].mean(axis=1), test.scores[asked.query].std(axis=1)
    return np.asarray((asked.scores[:, 0] - mean) / spread)


def sets(dev: JudgedScores, test: JudgedScores, alpha: float, splits: int) -> Row:
    """Coverage and size over image-level splits of the test split; the shape comes from dev. Fifths of uncertainty."""
    shape = Shape.fit(dev, alpha)
    generator = np.random.default_rng(0)
    fifth = np.zeros(len(test), dtype=np.int64)
    if test.uncertainty is not None:
        fifth = np.argsort(np.argsort(test.uncertainty, kind="stable")) * 5 // len(test)
    rounds, parts = [], []
    for _ in range(splits):
        drawn = generator.permutation(test.images)
        half = np.isin(test.query_image, drawn[: len(drawn) // 2])
        conformal = Conformal.fit(test.asked_by(drawn[: len(drawn) // 2]), shape, alpha)
        rest = test.asked_by(drawn[len(drawn) // 2 :])
        inside, size, own = conformal.covered(rest), conformal.sizes(rest), fifth[~half]
        rounds.append((inside.mean(), size.mean(), (inside > 0).mean()))
        parts.append([(inside[own == k].mean(), size[own == k].mean()) for k in range(int(fifth.max()) + 1)])
    once = Conformal.fit(dev, shape, alpha)
    mean = np.mean(rounds, axis=0)
    by_fifth = np.mean(parts, axis=0)
    return {
        "level": 1 - alpha,
        "coverage": float(mean[0]),
        "sd": float(np.std([row[0] for row in rounds])),
        "size": float(mean[1]),
        "any": float(mean[2]),
        "from dev": float(once.covered(test).mean()),
        "fifths": by_fifth.tolist() if test.uncertainty is not None else [],
        "lean": shape.lean,
        "slope": shape.slope,
    }


def words(trust: Calibrator, test: JudgedScores) -> list[Row]:
    """What the words mean on the test split: how many items answer, how large the sets are."""
    if trust.ambiguity is None or test.uncertainty is None or not trust.ambiguity.speaks:
        return []
    said = np.array([trust.ambiguity(float(sigma)) for sigma in test.uncertainty])
    answers = (test.matches if test.near is None else test.matches | test.near).sum(axis=1)
    size = trust.conformal.sizes(test)
    return [
        {
            "word": word,
            "queries": float((said == word).mean()),
            "answers": float(answers[said == word].mean()),
            "median": float(np.median(answers[said == word])),
            "set": float(size[said == word].mean()),
        }
        for word in ("specific", "ordinary", "broad")
        if (said == word).any()
    ]
