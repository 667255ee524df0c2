"""Fitting an abstention: every query with its matches in the gallery and without; the statistic that separates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray
from halation._errors import InputError
from halation.calibration._abstention import STATISTICS, Abstention
from halation.calibration._judged_scores import FAR, POSSIBLE, JudgedScores, best_first
from halation.calibration._quality import auroc

__all__ = ["AbstentionTrials", "choose_abstention", "fit_abstention"]

_WORTH = 0.005  # AUROC that a less simple statistic must gain


@dataclass(frozen=True, eq=False)
class AbstentionTrials:
    """The same queries four times: in the gallery as it is, with a single match in it, and twice with none.

    Without a match, once everything that may match is taken out, and once everything that comes near: people search for
    what is almost there, and for what is not there at all. The single match is there because many matches make many
    items score well: an abstention that learnt from these alone would call a gallery with one perfect answer empty. The
    weights are learnt from all four, the thresholds from galleries as they are against those without a match.
    """

    scores: FloatArray  # (t, depth) best first; −inf where the gallery has no more
    gallery: FloatArray  # (t,)
    uncertainty: FloatArray | None  # (t,)
    query: IntArray  # (t,) row of the judged scores
    has_match: BoolArray  # (t,)
    single: BoolArray  # (t,) one match, and nothing else that comes near

    @classmethod
    def of(cls, judged: JudgedScores, depth: int = 10, seed: int = 0) -> AbstentionTrials:
        """Trials of these queries, with the `depth` best scores of each; `seed` draws the single matches."""
        left = (judged.truth < FAR).sum(axis=1)
        rows = np.flatnonzero(left >= min(depth, judged.gallery // 2))
        if not len(rows):
            raise InputError("without what matches there is nothing left to search; does every item match every query?")
        query, item = np.nonzero(judged.matches[rows])
        first = np.searchsorted(query, np.arange(len(rows)))
        count = np.diff(np.append(first, len(query)))
        one = item[first + (np.random.default_rng(seed).random(len(rows)) * count).astype(np.int64)]
        full, almost, far = judged.scores[rows], judged.without(POSSIBLE)[rows], judged.without(FAR)[rows]
        single = far.copy()
        single[np.arange(len(rows)), one] = full[np.arange(len(rows)), one]
        best = [np.take_along_axis(part, best_first(part, depth), axis=1) for part in (full, single, almost, far)]
        sigma = None if judged.uncertainty is None else np.tile(judged.uncertainty[rows], 4)
        sizes = np.full(4 * len(rows), judged.gallery, dtype=np.float64)
        has_match = np.repeat([True, True, False, False], len(rows))
        single_match = np.repeat([False, True, False, False], len(rows))
        return cls(np.concatenate(best).astype(np.float64), sizes, sigma, np.tile(rows, 4), has_match, single_match)

    def auroc(self, abstention: Abstention) -> float:
        """How well the evidence separates trials with a match from those without: the area under the ROC curve."""
        return auroc(abstention.evidence(self.scores, self.gallery, self.uncertainty), self.has_match)


def choose_abstention(
    judged: JudgedScores, *, depth: int = 10, precision: float = 0.9, seed: int = 0
) -> tuple[Abstention, dict[str, float]]:
    """The statistic with the best AUROC on images it was not fitted on, fitted on all; and the AUROC of each.

    A less simple statistic has to gain 0.005.
    """
    names = [name for name in STATISTICS if "σ" not in name or judged.has_sigma]
    halves = judged.halves(seed)
    aurocs: dict[str, float] = {}
    for name in names:
        areas = []
        for fit_on, measure_on in (halves, halves[::-1]):
            fitted = _fit([AbstentionTrials.of(judged.of_images(fit_on), depth)], name, precision)
            areas.append(AbstentionTrials.of(judged.of_images(measure_on), depth).auroc(fitted))
        aurocs[name] = float(np.mean(areas))
    chosen = names[0]
    for name in names[1:]:
        if aurocs[name] > aurocs[chosen] + _WORTH:
            chosen = name
    return fit_abstention(judged, chosen, depth=depth, precision=precision, seed=seed), aurocs


def fit_abstention(
    judged: JudgedScores, statistic: str = "best score", *, depth: int = 10, precision: float = 0.9, seed: int = 0
) -> Abstention:
    """The abstention by one statistic, fitted on the gallery and on parts of it."""
    parts = judged.smaller_galleries(10 * depth, seed)
    return _fit([AbstentionTrials.of(part, depth) for part in parts], statistic, precision)


def _fit(parts: Sequence[AbstentionTrials], statistic: str, precision: float) -> Abstention:
    """Fitted on all parts; the first is the whole gallery, and sets the thresholds."""
    sets_thresholds = np.zeros(sum(len(part.scores) for part in parts), dtype=np.bool_)
    sets_thresholds[: len(parts[0].scores)] = ~parts[0].single
    sigmas = [part.uncertainty for part in parts if part.uncertainty is not None]
    return Abstention.fit(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.has_match for part in parts]),
        precision,
        gallery=np.concatenate([part.gallery for part in parts]),
        uncertainty=np.concatenate(sigmas) if sigmas else None,
        statistic=statistic,
        threshold_from=sets_thresholds,
    )
