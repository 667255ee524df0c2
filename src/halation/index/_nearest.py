"""The k nearest by blocked matrix products: the truth the other backends are measured by."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from halation.index._backend import Keys, Points

__all__ = ["by_distance", "nearest", "overlap"]

QUERIES, ROWS = 256, 32_768  # of one product: 32 MB


def nearest(blocks: Iterable[tuple[Keys, Points]], queries: Points, k: int) -> tuple[Keys, Points]:
    """Keys and squared distances (q, k) of the k points nearest to every query, over blocks (keys, points).

    Distances are ‖q‖² + ‖p‖² − 2 q·p; among equals the smaller key comes first. −1 and inf where there are fewer.
    """
    found_keys = np.full((len(queries), k), -1, np.int64)
    found = np.full((len(queries), k), np.inf, np.float32)
    for keys, points in blocks:
        for start in range(0, len(keys), ROWS):
            part_keys, part = keys[start : start + ROWS], torch.from_numpy(points[start : start + ROWS])
            norms = torch.linalg.vecdot(part, part)  # (rows,)
            for first in range(0, len(queries), QUERIES):
                rows = slice(first, first + QUERIES)
                best, which = _best(torch.from_numpy(queries[rows]), part, norms, k)
                _merge(found_keys[rows], found[rows], part_keys[which], best)
    return found_keys, found


def _best(queries: torch.Tensor, points: torch.Tensor, norms: torch.Tensor, k: int) -> tuple[Points, Keys]:
    own = torch.linalg.vecdot(queries, queries)[:, None]
    squared = torch.addmm(norms, queries, points.T, alpha=-2.0).add_(own).clamp_(min=0)  # (q, rows)
    best, which = squared.topk(min(k, len(points)), dim=1, largest=False)
    return best.numpy(), which.numpy()


def _merge(keys: Keys, squared: Points, new_keys: Keys, new: Points) -> None:
    """Into the best so far, in place."""
    k = keys.shape[1]
    all_keys, all_squared = np.concatenate([keys, new_keys], axis=1), np.concatenate([squared, new], axis=1)
    all_keys, all_squared = by_distance(all_keys, all_squared)
    keys[:], squared[:] = all_keys[:, :k], all_squared[:, :k]


def by_distance(keys: Keys, squared: Points) -> tuple[Keys, Points]:
    """Rows in order of distance, equals by key, missing ones last."""
    order = np.lexsort((keys, squared), axis=1)
    return np.take_along_axis(keys, order, axis=1), np.take_along_axis(squared, order, axis=1)


def overlap(found: Keys, truth: Keys) -> Points:
    """Share of each row's true keys that were found (q,).

    >>> overlap(np.array([[1, 2, 3]]), np.array([[3, 4]]))
    array([0.5], dtype=float32)
    """
    there = (truth[:, :, None] == found[:, None, :]).any(axis=2) & (truth >= 0)  # (q, k)
    shares: Points = (there.sum(axis=1) / np.maximum(1, (truth >= 0).sum(axis=1))).astype(np.float32)
    return shares
