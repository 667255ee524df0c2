"""The numbers behind the figures, as a loop over thresholds, queries and items counts them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from scipy.sparse import csr_array

from halation._arrays import FloatArray
from halation.data import Dataset
from halation.evaluation import Queries
from halation.report._figure_data import (
    beyond_written,
    called_and_found,
    certainty_extremes,
    class_line,
    positives_to_find,
    precision_line,
    recall_by_sigma,
    sigma_histograms,
)
from studies.positives import class_curve
from worlds import sample_truth


def in_blocks(matrix: FloatArray, rows: int = 7) -> Iterable[tuple[int, FloatArray]]:
    for start in range(0, len(matrix), rows):
        yield start, matrix[start : start + rows]


def test_called_and_found_are_what_every_threshold_counts(rng: np.random.Generator) -> None:
    matrix = rng.integers(0, 50, (23, 31)) / 50  # many equal scores
    pairs = np.argwhere(rng.random(matrix.shape) < 0.1)
    called, found = called_and_found(lambda: in_blocks(matrix), pairs)
    seen = set()
    for threshold in np.unique(matrix):
        total = sum(int(value >= threshold) for value in matrix.ravel())
        right = sum(int(matrix[i, c] >= threshold) for i, c in pairs)
        seen.add((total, right))
    assert set(zip(called.tolist(), found.tolist(), strict=True)) <= seen
    assert found[-1] == len(pairs)  # down to the last
    assert (np.diff(called) > 0).all() and (np.diff(found) > 0).all()


def test_precision_is_the_share_of_called_pairs_that_are_right(rng: np.random.Generator) -> None:
    matrix = rng.normal(size=(12, 20))
    pairs = np.argwhere(rng.random(matrix.shape) < 0.2)
    line = precision_line("a model", lambda: in_blocks(matrix), pairs, run=1)
    order = np.argsort(-matrix.ravel())
    right = np.zeros(matrix.shape, bool)
    right[pairs[:, 0], pairs[:, 1]] = True
    running = np.cumsum(right.ravel()[order])  # sklearn's way: sort all, count
    for found, precision in zip(line.x, line.y, strict=True):
        position = int(np.searchsorted(running, found))
        assert precision == pytest.approx(100 * found / (position + 1))
    assert line.run == 1


def test_what_nobody_wrote_is_looked_for_where_the_truth_knows_it() -> None:
    truth = sample_truth(20)
    data = Dataset("tiny", truth)
    pairs, unwritten = positives_to_find(data)
    assert len(pairs) == truth.n_captions and not unwritten
    wider = truth.gains("i2t")
    wider[0, -1] = 1.0  # true of the first picture, written for the last
    pairs, unwritten = positives_to_find(Dataset("tiny", truth.replace(i2t=csr_array(wider))))
    assert pairs.tolist() == [[0, truth.n_captions - 1]] and unwritten


def test_class_vectors_find_what_the_study_of_positives_says_they_find(rng: np.random.Generator) -> None:
    truth = sample_truth(30)
    pairs = np.argwhere(rng.random((30, truth.n_captions)) < 0.05)
    line, study = class_line(Dataset("tiny", truth), pairs), class_curve(truth, pairs)
    assert line is not None
    assert list(line.x) == study.recovered
    assert line.y == pytest.approx([100 * f / c for f, c in zip(study.recovered, study.called, strict=True)])
    assert class_line(Dataset("tiny", truth.replace(classes=None)), pairs) is None


def test_a_model_that_puts_what_was_written_first_and_what_is_true_next_is_right_all_the_way() -> None:
    image_of = np.array([0, 0, 1, 1, 2, 2])
    pairs = np.array([[0, 2], [1, 5], [2, 0]])  # right, though nobody wrote them
    matrix = np.zeros((3, 6))
    matrix[pairs[:, 0], pairs[:, 1]] = [0.7, 0.6, 0.5]
    matrix[image_of, np.arange(6)] = 0.9
    line = precision_line("a model", lambda: beyond_written(lambda: in_blocks(matrix, 2), image_of), pairs)
    assert set(line.y) == {100.0}
    matrix[0, 4] = 0.8  # wrong, and before them
    line = precision_line("a model", lambda: beyond_written(lambda: in_blocks(matrix, 2), image_of), pairs)
    assert line.y[-1] == pytest.approx(75.0)


def test_class_vectors_that_find_nothing_without_a_difference_begin_where_they_find(rng: np.random.Generator) -> None:
    truth = sample_truth(30)
    assert truth.classes is not None and truth.image_of is not None
    apart = (truth.classes[:, None] != truth.classes[None]).sum(axis=2)  # (30, 30)
    pairs = np.argwhere((apart[:, truth.image_of] > 0) & (rng.random((30, truth.n_captions)) < 0.3))
    line = class_line(Dataset("tiny", truth), pairs)
    assert line is not None and min(line.x) > 0
    called = sum(int(apart[i, truth.image_of[c]] <= 5) for i in range(30) for c in range(truth.n_captions))
    found = sum(int(apart[i, truth.image_of[c]] <= 5) for i, c in pairs)
    assert (line.x[-1], line.y[-1]) == (found, pytest.approx(100 * found / (called - truth.n_captions)))


def queries_of(n: int) -> Queries:
    return Queries(np.arange(n), np.arange(n) // 5, np.zeros(n, int))


def test_fifths_hold_the_queries_in_the_order_of_their_sigma(rng: np.random.Generator) -> None:
    sigma, hits = rng.random(103), (rng.random(103) < 0.4).astype(float)
    bars = recall_by_sigma("a run", hits, sigma, queries_of(103), run=1)
    ranked = sorted(range(103), key=lambda k: sigma[k])
    assert sum(bars.sizes) == 103 and max(bars.sizes) - min(bars.sizes) <= 1
    start = 0
    for size, value, low, high, ends in zip(bars.sizes, bars.values, bars.low, bars.high, bars.ranges, strict=True):
        rows = ranked[start : start + size]
        assert value == pytest.approx(100 * sum(hits[row] for row in rows) / size)
        assert ends == (sigma[rows[0]], sigma[rows[-1]])
        assert low <= value <= high and low < high
        start += size


def test_intervals_of_fifths_move_with_images_not_with_captions() -> None:
    n = 500
    hits = np.repeat([0.0, 1.0] * (n // 10), 5)  # five captions of an image are all hits or all misses
    sigma = np.arange(n) / n
    together = recall_by_sigma("by image", hits, sigma, queries_of(n))
    alone = recall_by_sigma("by caption", hits, sigma, Queries(np.arange(n), np.arange(n), np.zeros(n, int)))
    assert together.high[0] - together.low[0] > 1.6 * (alone.high[0] - alone.low[0])  # √5 times, but for chance


def test_a_handful_of_queries_makes_as_many_groups() -> None:
    assert recall_by_sigma("tiny", np.ones(3), np.array([0.3, 0.1, 0.2]), queries_of(3)).sizes == (1, 1, 1)


def test_histograms_count_every_item_once_and_outliers_at_the_ends(rng: np.random.Generator) -> None:
    sigma = {"images": rng.gamma(5, 0.01, 400), "captions": np.append(rng.gamma(6, 0.01, 999), 50.0)}
    images, captions = sigma_histograms(sigma, bins=20)
    assert images.edges == captions.edges
    assert (sum(images.counts), sum(captions.counts)) == (400, 1000)
    assert captions.edges[-1] < 1 and captions.counts[-1] >= 1  # the outlier does not stretch the axis
    edges = images.edges
    inner = [sum(int(edges[k] <= v < edges[k + 1]) for v in sigma["images"]) for k in range(1, 19)]
    assert list(images.counts[1:19]) == inner


def test_a_constant_sigma_is_a_histogram_of_one_column() -> None:
    (one,) = sigma_histograms({"images": np.full(9, 0.25)})
    assert sorted(one.counts)[-1] == 9


def test_the_most_certain_has_the_smallest_sigma() -> None:
    images, captions = certainty_extremes(
        {"images": np.array([0.3, 0.1, 0.2]), "captions": np.array([5.0, 4.0])}, count=2
    )
    assert (images.most_certain, images.least_certain) == ((1, 2), (0, 2))
    assert (captions.most_certain, captions.least_certain) == ((1, 0), (0, 1))
