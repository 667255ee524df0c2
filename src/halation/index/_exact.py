"""Backend `exact`: every query against every point. Approximate backends are tuned against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from halation._errors import InputError
from halation._tensors import map_arrays, write_arrays
from halation.index._backend import Keys, Points
from halation.index._items import Table

__all__ = ["RECALL_AT", "Exact", "as_recall", "by_distance", "fewest_probes", "n_lists", "nearest", "overlap"]

RECALL_AT = 10  # recall is measured on the ten nearest
_FILE = "points.safetensors"
_QUERIES, _ROWS = 256, 32_768  # of one product: 32 MB
_ROUNDING = 1e-6
_STANDARD_ERRORS = 2.0  # between the recall measured and the recall promised


class Exact:
    """All distances by blocked matrix products: no approximation, nothing to tune, time in proportion to the size.

    >>> backend = Exact()
    >>> backend.add(np.array([3, 5]), np.array([[0.0, 0.0], [1.0, 0.0]], np.float32))
    >>> backend.search(np.array([[0.9, 0.0]], np.float32), k=1)[0]
    array([[5]])
    """

    name = "exact"

    def __init__(self) -> None:
        self._table: Table | None = None

    def add(self, keys: Keys, points: Points) -> None:
        """Store points; see `Backend`."""
        if self._table is None:
            self._table = Table({"points": points.shape[1]})
        self._table.put(keys, {"points": points})

    def remove(self, keys: Keys) -> None:
        """Forget keys."""
        if self._table is not None:
            self._table.drop(keys)

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """The k nearest, all points compared."""
        table = self._table or Table({"points": points.shape[1]})
        return nearest(((keys, columns["points"]) for keys, columns in table.blocks()), points, k)

    def save(self, folder: Path) -> None:
        """Write one safetensors file of keys and points."""
        write_arrays(folder / _FILE, (self._table or Table({"points": 0})).for_file())

    def load(self, folder: Path) -> None:
        """Map that file."""
        arrays = map_arrays(folder / _FILE)
        empty = arrays["points"].shape[1] == 0  # nothing was ever added, so the width is unknown
        self._table = None
        if not empty:
            self._table = Table({"points": arrays["points"].shape[1]})
            self._table.map(arrays["keys"], {"points": arrays["points"]})


def nearest(blocks: Iterable[tuple[Keys, Points]], queries: Points, k: int) -> tuple[Keys, Points]:
    """Keys and squared distances (q, k) of the k points nearest to every query, over blocks (keys, points).

    Distances are ‖q‖² + ‖p‖² − 2 q·p; among equals the smaller key comes first. −1 and inf where there are fewer.
    """
    best_keys = np.full((len(queries), k), -1, np.int64)
    best = np.full((len(queries), k), np.inf, np.float32)
    for keys, points in blocks:
        for start in range(0, len(keys), _ROWS):
            part_keys, part = keys[start : start + _ROWS], torch.from_numpy(points[start : start + _ROWS])
            norms = torch.linalg.vecdot(part, part)  # (rows,)
            for first in range(0, len(queries), _QUERIES):
                rows = slice(first, first + _QUERIES)
                squared, which = _best(torch.from_numpy(queries[rows]), part, norms, k)
                _merge(best_keys[rows], best[rows], part_keys[which], squared)
    return best_keys, best


def _best(queries: torch.Tensor, points: torch.Tensor, norms: torch.Tensor, k: int) -> tuple[Points, Keys]:
    query_norms = torch.linalg.vecdot(queries, queries)[:, None]
    squared = torch.addmm(norms, queries, points.T, alpha=-2.0).add_(query_norms).clamp_(min=0)  # (q, rows)
    best, which = squared.topk(min(k, len(points)), dim=1, largest=False)
    return best.numpy(), which.numpy()


def _merge(keys: Keys, squared: Points, new_keys: Keys, new: Points) -> None:
    """Merge into the best so far, in place."""
    k = keys.shape[1]
    all_keys, all_squared = np.concatenate([keys, new_keys], axis=1), np.concatenate([squared, new], axis=1)
    all_keys, all_squared = by_distance(all_keys, all_squared)
    keys[:], squared[:] = all_keys[:, :k], all_squared[:, :k]


def by_distance(keys: Keys, squared: Points) -> tuple[Keys, Points]:
    """Rows in order of distance, equals by key, missing ones last."""
    order = np.lexsort((keys, squared), axis=1)
    return np.take_along_axis(keys, order, axis=1), np.take_along_axis(squared, order, axis=1)


def overlap(keys: Keys, truth: Keys) -> Points:
    """Share of each row's true keys that are among its keys (q,).

    >>> overlap(np.array([[1, 2, 3]]), np.array([[3, 4]]))
    array([0.5], dtype=float32)
    """
    hit = (truth[:, :, None] == keys[:, None, :]).any(axis=2) & (truth >= 0)  # (q, k)
    shares: Points = (hit.sum(axis=1) / np.maximum(1, (truth >= 0).sum(axis=1))).astype(np.float32)
    return shares


def as_recall(recall: float) -> float:
    """A share above 0 and at most 1."""
    if not 0 < recall <= 1:
        raise InputError(f"recall is {recall}; it must be above 0 and at most 1 (0.99: one of a hundred may be missed)")
    return float(recall)


def n_lists(n: int) -> int:
    """How many lists n points are divided into: the power of two nearest to 4 √n, with at least 39 points for each."""
    return max(1, min(1 << round(math.log2(4 * math.sqrt(max(1, n)))), n // 39))


def fewest_probes(
    search: Callable[[Points, int], Keys], exact: Callable[[Points], Keys], queries: Points, most: int, target: float
) -> dict[str, Any]:
    """The fewest probes (at most `most`) whose recall@10 is `target` or more, and the recall they have.

    search(points, probes) and exact(points) give keys (q, 10). Every other query is tuned on, until even two standard
    errors below the mean recall there is the target; the others measure the result.
    """
    tuned_on, held_out = queries[::2], queries[1::2] if len(queries) > 1 else queries
    truth = exact(tuned_on)

    def enough(probes: int) -> bool:
        shares = overlap(search(tuned_on, probes), truth)
        error = float(shares.std()) / math.sqrt(len(shares))
        return float(shares.mean()) - _STANDARD_ERRORS * error >= target - _ROUNDING

    probes = 1
    while probes < most and not enough(probes):
        probes = min(most, 2 * probes)
    low, high = probes // 2, probes  # not enough, enough
    while high - low > max(1, high // 16):  # to the nearest sixteenth
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    truth = exact(held_out)
    recall = float(np.mean(overlap(search(held_out, high), truth)))
    while recall < target - _ROUNDING and high < most:
        high = min(most, high + max(1, high // 4))
        recall = float(np.mean(overlap(search(held_out, high), truth)))
    return {"probes": high, "recall": round(recall, 5), "measured_on": len(held_out)}
