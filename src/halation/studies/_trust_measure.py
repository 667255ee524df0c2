"""What is measured of one run in one direction: fitted on its dev split, asked on its test split."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation.calibration import (
    STATISTICS,
    Calibration,
    Conformal,
    Fitted,
    Judged,
    Shape,
    Trust,
    auroc,
    brier,
    brier_skill,
    choose_abstention,
    coverage_at_precision,
    ece,
    fit_abstention,
    trials,
)
from halation.calibration._choose import VARIANTS, Before

__all__ = ["Measured", "abstaining", "by_truth", "galleries", "probabilities", "sets", "words"]

_PRECISION = 0.9
_DRAWS = 200
_TRUE_OF = ((1, 1), (2, 5), (6, 20), (21, 100), (101, 300), (301, 10**9))
Row = dict[str, Any]


@dataclass(eq=False)
class Measured:
    """One run, one direction; rows of numbers by name."""

    world: str
    direction: str
    about: str
    chosen: str
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


def probabilities(fitted: Fitted, dev: Judged, test: Judged, before: Before, top: int) -> tuple[list[Row], list[Any]]:
    """Every kind, fitted on dev, on the test split; intervals of the ECE resample images. And lines to plot."""
    scores, matches = test.top(top)
    image = np.repeat(test.query_image, scores.shape[1])
    said = {"before": -np.sort(-before(test.scores), axis=1)[:, :top].ravel()}
    for name, kind, relative in VARIANTS:
        calibration = Calibration.fit(dev, kind, relative=relative, top=top)
        said[name] = calibration(scores, test.gallery).ravel()
    labels, rows = matches.ravel(), []
    for name, p in said.items():
        low, high = _interval(p, labels, image)
        found = {"ece": ece(p, labels), "low": low, "high": high, "brier": brier(p, labels)}
        rows.append({"name": name, **found, "skill": brier_skill(p, labels), "chosen": name == fitted.trust.chosen})
    return rows, [(name, said[name], labels) for name in ("before", fitted.trust.chosen)]


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


def galleries(calibration: Calibration, test: Judged, bigger: Judged | None, top: int) -> list[Row]:
    """ECE in galleries of other sizes, with the correction and without; `bigger`: the same queries among more items."""
    generator = np.random.default_rng(0)
    images = np.unique(test.item_image)
    parts: list[list[Judged]] = []
    for share in (20, 10, 3, 1):
        count = len(images) // share
        times = min(share, 5)
        parts.append([test.of(generator.permutation(images)[:count]) for _ in range(times)])
    parts += [] if bigger is None else [[bigger]]
    rows = []
    for some in parts:
        tops = [part.top(top) for part in some]
        labels = np.concatenate([matches.ravel() for _, matches in tops])
        row: Row = {"gallery": some[0].gallery, "base": float(labels.mean())}
        for name, size in (("without", None), ("with", some[0].gallery)):
            row[name] = ece(np.concatenate([calibration(scores, size).ravel() for scores, _ in tops]), labels)
        rows.append(row)
    return rows


def abstaining(
    taken_out: str, dev: Judged, test: Judged, top: int
) -> tuple[list[Row], Row, tuple[str, FloatArray, BoolArray]]:
    """Every statistic: AUROC held out on dev and on test, what is answered at 90 % precision; the threshold of dev."""
    chosen, areas = choose_abstention(dev, depth=top, precision=_PRECISION)
    asked = trials(test, top)
    out = test.matches if test.near is None else test.matches | test.near
    shown: Row = {"taken out": taken_out, "removed": float(out.sum(axis=1).mean())}
    rows: list[Row] = []
    for name in [name for name in STATISTICS if name in areas]:
        fitted = fit_abstention(dev, name, depth=top, precision=_PRECISION)
        evidence = fitted.evidence(asked.scores, asked.gallery, asked.uncertainty)
        rows.append(_row(shown, name, areas[name], evidence, asked.has_match, name == chosen.statistic))
    best, has_match = _z_in_gallery(test, out)
    rows.append(_row(shown, "z-score in the whole gallery", float("nan"), best, has_match, False))
    evidence = chosen.evidence(asked.scores, asked.gallery, asked.uncertainty)
    row: Row = {"taken out": taken_out, "statistic": chosen.statistic, "threshold": chosen.threshold}
    if chosen.threshold is not None:
        answered = evidence >= chosen.threshold
        row["precision"] = float(asked.has_match[answered].mean())
        row["answered"], row["found"] = float(answered.mean()), float(answered[asked.has_match].mean())
    return rows, row, (taken_out, evidence, asked.has_match)


def by_truth(dev: Judged, test: Judged, top: int) -> list[Row]:
    """AUROC of the chosen statistic by how many items answer a query, where that is known."""
    chosen, _ = choose_abstention(dev, depth=top, precision=_PRECISION)
    answers, rows = test.matches.sum(axis=1), []
    for low, high in _TRUE_OF:
        own = np.flatnonzero((answers >= low) & (answers <= high))
        if len(own) > 50:
            asked = trials(test.rows(own), top)
            area = auroc(chosen.evidence(asked.scores, asked.gallery, asked.uncertainty), asked.has_match)
            rows.append({"low": low, "high": min(high, test.gallery), "queries": len(own), "auroc": area})
    return rows


def _row(shown: Row, name: str, dev: float, evidence: FloatArray, has_match: BoolArray, chosen: bool) -> Row:
    covered = coverage_at_precision(evidence, has_match, _PRECISION)
    found = {"answered": covered.answered, "found": covered.found, "chosen": chosen}
    return {**shown, "statistic": name, "dev": dev, "test": auroc(evidence, has_match), **found}


def _z_in_gallery(test: Judged, out: BoolArray) -> tuple[FloatArray, BoolArray]:
    """(best − mean)/sd over all that is left of the gallery: what an index of the best few cannot know."""
    values = []
    for left in (np.ones_like(out), ~out):
        count = left.sum(axis=1)
        mean = np.where(left, test.scores, 0).sum(axis=1) / count
        spread = np.sqrt(np.where(left, (test.scores - mean[:, None]) ** 2, 0).sum(axis=1) / count)
        best = np.where(left, test.scores, -np.inf).max(axis=1)
        values.append((best - mean) / spread)
    return np.concatenate(values), np.repeat([True, False], len(out))


def sets(dev: Judged, test: Judged, alpha: float, splits: int) -> Row:
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


def words(trust: Trust, test: Judged) -> list[Row]:
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
