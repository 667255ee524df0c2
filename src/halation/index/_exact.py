"""Backend `exact`: every query is compared with every point. Approximate backends are tuned against it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from halation._tensors import map_arrays, write_arrays
from halation.index._backend import Keys, Points
from halation.index._items import Table

__all__ = ["Exact", "by_distance", "nearest"]

_FILE = "points.safetensors"
_QUERIES, _ROWS = 256, 32_768  # of one product: 32 MB


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
        """The k nearest, by comparing all points."""
        table = self._table or Table({"points": points.shape[1]})
        return nearest(((keys, columns["points"]) for keys, columns in table.blocks()), points, k)

    def save(self, folder: Path) -> None:
        """Write one safetensors file of keys and points."""
        write_arrays(folder / _FILE, (self._table or Table({"points": 0})).for_file())

    def load(self, folder: Path) -> None:
        """Map the file that `save` wrote."""
        arrays = map_arrays(folder / _FILE)
        empty = arrays["points"].shape[1] == 0  # nothing was ever added, so the width is unknown
        self._table = None
        if not empty:
            self._table = Table({"points": arrays["points"].shape[1]})
            self._table.map(arrays["keys"], {"points": arrays["points"]})


def nearest(blocks: Iterable[tuple[Keys, Points]], queries: Points, k: int) -> tuple[Keys, Points]:
    """Keys and squared distances (q, k) of the k points nearest to each query, over blocks (keys, points).

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
    """Merge new results into the best so far, in place."""
    k = keys.shape[1]
    all_keys, all_squared = np.concatenate([keys, new_keys], axis=1), np.concatenate([squared, new], axis=1)
    all_keys, all_squared = by_distance(all_keys, all_squared)
    keys[:], squared[:] = all_keys[:, :k], all_squared[:, :k]


def by_distance(keys: Keys, squared: Points) -> tuple[Keys, Points]:
    """Each row sorted by distance, equal distances by key, missing points last."""
    order = np.lexsort((keys, squared), axis=1)
    return np.take_along_axis(keys, order, axis=1), np.take_along_axis(squared, order, axis=1)
