"""Fifths and histograms of σ, counted one query at a time."""

from __future__ import annotations

import numpy as np
import pytest

from halation.evaluation import Queries
from halation.report._sigma import certain, fifths, spread


def asked(n: int) -> Queries:
    return Queries(np.arange(n), np.arange(n) // 5, np.zeros(n, int))


def test_fifths_hold_the_queries_in_the_order_of_their_sigma(rng: np.random.Generator) -> None:
    sigma, hits = rng.random(103), (rng.random(103) < 0.4).astype(float)
    bars = fifths("a run", hits, sigma, asked(103), run=1)
    ranked = sorted(range(103), key=lambda k: sigma[k])
    assert sum(bars.sizes) == 103 and max(bars.sizes) - min(bars.sizes) <= 1
    start = 0
    for size, value, low, high, ends in zip(bars.sizes, bars.values, bars.low, bars.high, bars.ends, strict=True):
        rows = ranked[start : start + size]
        assert value == pytest.approx(100 * sum(hits[row] for row in rows) / size)
        assert ends == (sigma[rows[0]], sigma[rows[-1]])
        assert low <= value <= high and low < high
        start += size


def test_intervals_of_fifths_move_with_images_not_with_captions() -> None:
    n = 500
    hits = np.repeat([0.0, 1.0] * (n // 10), 5)  # five captions of an image are all hits or all misses
    sigma = np.arange(n) / n
    together = fifths("by image", hits, sigma, asked(n))
    alone = fifths("by caption", hits, sigma, Queries(np.arange(n), np.arange(n), np.zeros(n, int)))
    assert together.high[0] - together.low[0] > 1.6 * (alone.high[0] - alone.low[0])  # √5 times, but for chance


def test_a_handful_of_queries_makes_as_many_groups() -> None:
    assert fifths("tiny", np.ones(3), np.array([0.3, 0.1, 0.2]), asked(3)).sizes == (1, 1, 1)


def test_histograms_count_every_item_once_and_outliers_at_the_ends(rng: np.random.Generator) -> None:
    sigma = {"images": rng.gamma(5, 0.01, 400), "captions": np.append(rng.gamma(6, 0.01, 999), 50.0)}
    images, captions = spread(sigma, bins=20)
    assert images.edges == captions.edges
    assert (sum(images.counts), sum(captions.counts)) == (400, 1000)
    assert captions.edges[-1] < 1 and captions.counts[-1] >= 1  # the outlier does not stretch the axis
    edges = images.edges
    inner = [sum(int(edges[k] <= v < edges[k + 1]) for v in sigma["images"]) for k in range(1, 19)]
    assert list(images.counts[1:19]) == inner


def test_a_constant_sigma_is_a_histogram_of_one_column() -> None:
    (one,) = spread({"images": np.full(9, 0.25)})
    assert sorted(one.counts)[-1] == 9


def test_the_most_certain_has_the_smallest_sigma() -> None:
    images, captions = certain({"images": np.array([0.3, 0.1, 0.2]), "captions": np.array([5.0, 4.0])}, count=2)
    assert (images.most, images.least) == ((1, 2), (0, 2))
    assert (captions.most, captions.least) == ((1, 0), (0, 1))
