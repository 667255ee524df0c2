"""Made-up queries and galleries whose law is known."""

from __future__ import annotations

import numpy as np

from halation.calibration import JudgedScores


def points(
    rng: np.random.Generator,
    images: int = 120,
    captions: int = 3,
    dim: int = 6,
    spread: float = 0.0,
    noise: float = 0.6,
) -> JudgedScores:
    """Captions are their image's point, seen through noise; `spread` > 0: more for some, and σ says how much."""
    places = rng.normal(size=(images, dim))
    own = np.repeat(np.arange(images), captions)
    sigma = noise * np.exp(spread * rng.normal(size=len(own)))
    asked = places[own] + sigma[:, None] * rng.normal(size=(len(own), dim))
    scores = -((asked[:, None] - places[None]) ** 2).sum(axis=2)
    return JudgedScores(scores, own[:, None] == np.arange(images), own, np.arange(images), sigma if spread else None)


def lottery(
    rng: np.random.Generator, queries: int, gallery: int, rate: float | None = None, gap: float = 2.0
) -> JudgedScores:
    """Scores of matches are N(gap, 1), of all others N(0, 1), independently: log-odds are gap·s − gap²/2 + prior.

    One match for each query, or with `rate` each item at random.
    """
    own = rng.integers(gallery, size=queries)
    matches = np.zeros((queries, gallery), dtype=np.bool_) if rate is None else rng.random((queries, gallery)) < rate
    matches[np.arange(queries), own] = True
    scores = rng.normal(size=(queries, gallery)) + gap * matches
    return JudgedScores(scores, matches, own, np.arange(gallery))
