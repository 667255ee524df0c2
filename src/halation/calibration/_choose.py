"""Which calibration? Every kind is fitted on one half of the images and measured on the other; the best is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from halation._arrays import BoolArray, FloatArray
from halation.calibration._judged import JudgedScores
from halation.calibration._probability_map import Kind, ProbabilityMap
from halation.calibration._quality import brier, brier_skill, ece

__all__ = ["VARIANTS", "Before", "Choice", "Figures", "before_mixed", "choose"]

Before = Callable[[FloatArray], FloatArray]
"""Scores of queries against all items (q, n) → what one would have called their probabilities without calibration."""

VARIANTS: tuple[tuple[str, Kind, bool], ...] = (  # the simplest first
    ("Platt", "platt", False),
    ("isotonic", "isotonic", False),
    ("Platt, relative to the best", "platt", True),
    ("isotonic, relative to the best", "isotonic", True),
)
_WORTH = 0.001  # skill a less simple kind must gain


@dataclass(frozen=True)
class Figures:
    """One way to a probability, measured on candidates of images it was not fitted on."""

    name: str
    ece: float
    brier: float
    skill: float

    @classmethod
    def of(cls, name: str, probabilities: FloatArray, is_match: BoolArray) -> Figures:
        return cls(
            name, ece(probabilities, is_match), brier(probabilities, is_match), brier_skill(probabilities, is_match)
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """The calibration, fitted on everything, and the held-out figures it was chosen by.

    said, was   held-out probabilities and labels, by name; for the reliability plot
    """

    calibration: ProbabilityMap
    name: str
    why: str
    figures: tuple[Figures, ...]
    said: dict[str, FloatArray]
    was: BoolArray


def choose(judged: JudgedScores, *, top: int = 10, before: Before | None = None, seed: int = 0) -> Choice:
    """Fit Platt and isotonic, plain and relative to the query's best; keep the one with the smallest held-out Brier.

    Two halves by image, each measured by what the other taught, each with its own images as the gallery. A less
    simple kind has to gain at least 0.001 of skill. Fitted and measured on galleries as they are and, as often, with
    what matches taken out. The one chosen is then fitted on all images.
    """
    said: dict[str, list[FloatArray]] = {}
    was = []
    first, second = judged.halves(seed)
    for taught, asked in ((first, second), (second, first)):
        fitted_on, measured_on = judged.of(taught), judged.of(asked)
        scores, matches = measured_on.mixed(top)
        there = np.isfinite(scores)
        if before is not None:
            said.setdefault("before", []).append(before_mixed(before, measured_on, top)[there])
        for name, kind, relative in VARIANTS:
            calibration = ProbabilityMap.fit(fitted_on, kind, relative=relative, top=top, seed=seed)
            said.setdefault(name, []).append(calibration(scores, measured_on.gallery)[there])
        was.append(matches[there])
    labels = np.concatenate(was)
    together = {name: np.concatenate(parts) for name, parts in said.items()}
    figures = tuple(Figures.of(name, p, labels) for name, p in together.items())
    name, why = _best([row for row in figures if row.name != "before"])
    _, kind, relative = next(row for row in VARIANTS if row[0] == name)
    final = ProbabilityMap.fit(judged, kind, relative=relative, top=top, seed=seed)
    return Choice(final, name, why, figures, together, labels)


def before_mixed(before: Before, judged: JudgedScores, top: int) -> FloatArray:
    """What `before` says of the candidates of `JudgedScores.mixed`; it ranks as the scores do."""
    both = [before(scores.astype(np.float64)) for scores in (judged.scores, judged.taken_out)]
    return np.concatenate([-np.sort(-np.nan_to_num(said), axis=1)[:, :top] for said in both])


def _best(figures: list[Figures]) -> tuple[str, str]:
    chosen = figures[0]
    for row in figures[1:]:
        if row.skill > chosen.skill + _WORTH:
            chosen = row
    others = ", ".join(f"{row.name} {row.brier:.4f}" for row in figures if row is not chosen)
    return chosen.name, f"Brier {chosen.brier:.4f} on held-out images (others: {others})"
