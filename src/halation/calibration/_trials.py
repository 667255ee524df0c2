"""Trials of abstention: every query with its matches in the gallery and without; which statistic tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation._errors import InputError
from halation.calibration._abstention import STATISTICS, Abstention
from halation.calibration._candidates import best_first
from halation.calibration._judged import JudgedScores
from halation.calibration._roc import auroc

__all__ = ["Trial", "choose_abstention", "fit_abstention", "trials"]

_WORTH = 0.005  # AUROC a less simple statistic must gain


@dataclass(frozen=True, eq=False)
class Trial:
    """The same queries three times: with the gallery as it is, with one match alone, and with nothing that matches.

    The last counts twice, so that half have a match. What tells "among its like" from "nothing like it" is not what
    tells a single right answer from none: who learnt from the first and the last alone would only look how many are
    near, and call a gallery with one perfect answer empty. The weights are learnt from all three, the threshold is
    read from galleries as they are against none.
    """

    scores: FloatArray  # (t, depth) best first; −inf where the gallery has no more
    gallery: FloatArray  # (t,)
    uncertainty: FloatArray | None  # (t,)
    query: IntArray  # (t,) row of the judged scores
    has_match: BoolArray  # (t,)
    alone: BoolArray  # (t,) one match, and nothing else that matches or may

    def area(self, abstention: Abstention) -> float:
        """AUROC of "has a match", over all."""
        return auroc(abstention.evidence(self.scores, self.gallery, self.uncertainty), self.has_match)

    def against_none(self, *, alone: bool) -> IntArray:
        """Rows of one kind that has a match, and as many that have none."""
        return np.flatnonzero((self.alone == alone) | ~self.has_match)[: 2 * int(self.alone.sum())]


def trials(judged: JudgedScores, depth: int = 10, seed: int = 0) -> Trial:
    """Every query with its gallery, with one of its matches alone, and with all that matches or may match taken out."""
    out = judged.matches if judged.near is None else judged.matches | judged.near
    rows = np.flatnonzero((~out).sum(axis=1) >= min(depth, judged.gallery // 2))
    if not len(rows):
        raise InputError("taking out what matches leaves nothing to search; are all items near each other?")
    query, item = np.nonzero(judged.matches[rows])
    first = np.searchsorted(query, np.arange(len(rows)))
    many = np.diff(np.append(first, len(query)))
    one = item[first + (np.random.default_rng(seed).random(len(rows)) * many).astype(np.int64)]
    full = judged.scores[rows]
    none = full.copy()
    none[out[rows]] = -np.inf
    alone = none.copy()
    alone[np.arange(len(rows)), one] = full[np.arange(len(rows)), one]
    best = [np.take_along_axis(kind, best_first(kind, depth), axis=1) for kind in (full, alone, none)]
    kind = np.repeat([0, 1, 2, 2], len(rows))
    sigma = None if judged.uncertainty is None else np.tile(judged.uncertainty[rows], 4)
    sizes = np.full(len(kind), judged.gallery, dtype=np.float64)
    return Trial(
        np.concatenate([*best, best[2]]).astype(np.float64), sizes, sigma, np.tile(rows, 4), kind < 2, kind == 1
    )


def choose_abstention(
    judged: JudgedScores, *, depth: int = 10, precision: float = 0.9, seed: int = 0
) -> tuple[Abstention, dict[str, float]]:
    """The statistic with the best AUROC on images it was not fitted on, fitted on all; and the AUROC of each.

    A less simple statistic has to gain 0.005.
    """
    names = [name for name in STATISTICS if "σ" not in name or _has_sigma(judged)]
    halves = judged.halves(seed)
    found: dict[str, float] = {}
    for name in names:
        areas = []
        for taught, asked in (halves, halves[::-1]):
            fitted = _fit([trials(judged.of(taught), depth)], name, precision)
            areas.append(trials(judged.of(asked), depth).area(fitted))
        found[name] = float(np.mean(areas))
    chosen = names[0]
    for name in names[1:]:
        if found[name] > found[chosen] + _WORTH:
            chosen = name
    return fit_abstention(judged, chosen, depth=depth, precision=precision, seed=seed), found


def fit_abstention(
    judged: JudgedScores, statistic: str = "best score", *, depth: int = 10, precision: float = 0.9, seed: int = 0
) -> Abstention:
    """One statistic, on the gallery and on parts of it."""
    return _fit([trials(part, depth) for part in judged.smaller(10 * depth, seed)], statistic, precision)


def _has_sigma(judged: JudgedScores) -> bool:
    return judged.uncertainty is not None and bool((judged.uncertainty > 0).all())


def _fit(parts: Sequence[Trial], statistic: str, precision: float) -> Abstention:
    """The first part is the whole gallery, from which the threshold comes."""
    sigmas = [part.uncertainty for part in parts if part.uncertainty is not None]
    read = np.zeros(sum(len(part.scores) for part in parts), dtype=np.bool_)
    read[parts[0].against_none(alone=False)] = True
    return Abstention.fit(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.has_match for part in parts]),
        precision,
        gallery=np.concatenate([part.gallery for part in parts]),
        uncertainty=np.concatenate(sigmas) if sigmas else None,
        statistic=statistic,
        threshold_from=read,
    )
