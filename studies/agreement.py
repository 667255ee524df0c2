"""Rank correlations between scores of image–caption pairs and human judgements, over all pairs and within images."""

from __future__ import annotations

import numpy as np

from halation._arrays import FloatArray
from halation.data import Judgements

__all__ = ["mean_with_interval", "together", "within"]

_DRAWS = 1000


def mean_with_interval(values: FloatArray, seed: int) -> list[float]:
    """Mean × 100 and its 95 % interval over bootstrap draws of images."""
    means = 100 * np.random.default_rng(seed).choice(values, (_DRAWS, len(values))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return [float(100 * values.mean()), float(low), float(high)]


def together(relevance: FloatArray, scores: FloatArray) -> float:
    """Kendall τ × 100 over all pairs, each annotator's score by itself; τ_c for several annotators, else τ_b."""
    annotators = scores.shape[1]
    return _kendall(np.repeat(relevance, annotators), scores.ravel(), "c" if annotators > 1 else "b")


def within(relevance: FloatArray, judged: Judgements) -> FloatArray:
    """Kendall τ_b between relevance and mean judgement within each image's candidates, if people saw a difference."""
    image = judged.pairs[:, 0]
    order = np.argsort(image, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(image[order])) + 1)
    people = judged.gains
    taus = [_kendall(relevance[group], people[group], "b") / 100 for group in groups if np.ptp(people[group]) > 0]
    return np.asarray(np.nan_to_num(np.array(taus)))  # 0 for a relevance that ties all candidates of an image


def _kendall(a: FloatArray, b: FloatArray, variant: str) -> float:
    from scipy.stats import kendalltau

    return float(100 * kendalltau(a, b, variant=variant).statistic)
