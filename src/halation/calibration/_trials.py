"""Trials of abstention: every query with its matches in the gallery and without; which statistic tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halation._arrays import BoolArray, FloatArray
from halation._errors import InputError
from halation.calibration._abstention import STATISTICS, Abstention
from halation.calibration._candidates import best_first
from halation.calibration._judged import Judged
from halation.calibration._roc import auroc

__all__ = ["Trial", "choose_abstention", "fit_abstention", "trials"]

_WORTH = 0.005  # AUROC a less simple statistic must gain


@dataclass(frozen=True, eq=False)
class Trial:
    """Queries with a match in the gallery, and queries without: the best scores of each."""

    scores: FloatArray  # (t, depth) best first; −inf where the gallery has no more
    gallery: FloatArray  # (t,)
    uncertainty: FloatArray | None  # (t,)
    has_match: BoolArray  # (t,)


def trials(judged: Judged, depth: int = 10) -> Trial:
    """Every query twice: with the gallery as it is, and with all that matches or may match taken out."""
    out = judged.matches if judged.near is None else judged.matches | judged.near
    left = (~out).sum(axis=1)
    rows = np.flatnonzero(left >= min(depth, judged.gallery // 2))
    if not len(rows):
        raise InputError("taking out what matches leaves nothing to search; are all items near each other?")
    full = judged.scores[rows].astype(np.float64)
    both = [full, np.where(out[rows], -np.inf, full)]
    order = [best_first(scores, depth) for scores in both]
    scores = np.concatenate([np.take_along_axis(s, o, axis=1) for s, o in zip(both, order, strict=True)])
    sigma = None if judged.uncertainty is None else np.tile(judged.uncertainty[rows], 2)
    sizes = np.full(2 * len(rows), judged.gallery, dtype=np.float64)
    return Trial(scores, sizes, sigma, np.arange(2 * len(rows)) < len(rows))


def choose_abstention(
    judged: Judged, *, depth: int = 10, precision: float = 0.9, seed: int = 0
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
            fitted = _fit([trials(judged.of(taught), depth)], name, precision, None)
            test = trials(judged.of(asked), depth)
            areas.append(auroc(fitted.evidence(test.scores, test.gallery, test.uncertainty), test.has_match))
        found[name] = float(np.mean(areas))
    chosen = names[0]
    for name in names[1:]:
        if found[name] > found[chosen] + _WORTH:
            chosen = name
    return fit_abstention(judged, chosen, depth=depth, precision=precision, seed=seed), found


def fit_abstention(
    judged: Judged, statistic: str = "best score", *, depth: int = 10, precision: float = 0.9, seed: int = 0
) -> Abstention:
    """One statistic, on the gallery and on parts of it."""
    parts = [trials(part, depth) for part in judged.smaller(10 * depth, seed)]
    return _fit(parts, statistic, precision, judged.gallery)


def _has_sigma(judged: Judged) -> bool:
    return judged.uncertainty is not None and bool((judged.uncertainty > 0).all())


def _fit(parts: Sequence[Trial], statistic: str, precision: float, at: int | None) -> Abstention:
    sigmas = [part.uncertainty for part in parts if part.uncertainty is not None]
    return Abstention.fit(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.has_match for part in parts]),
        precision,
        gallery=np.concatenate([part.gallery for part in parts]),
        uncertainty=np.concatenate(sigmas) if sigmas else None,
        statistic=statistic,
        at=at,
    )
