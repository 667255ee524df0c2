"""A map of the embedding space: means projected onto a plane, variances as ellipses under the same projection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halation._arrays import FloatArray, IntArray
from halation.report._facts import Map

__all__ = ["Clouds", "ellipses", "local_maps", "make_map", "principal"]

LARGEST = 1000  # images: with more, the map is unreadable and the page too large to open
_NEIGHBOURS = 16
_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class Clouds:
    """The embeddings a map is made of: means (n, d) of images and captions, and variances; None for points."""

    images: FloatArray
    captions: FloatArray
    image_vars: FloatArray | None = None
    caption_vars: FloatArray | None = None
    notes: tuple[str, ...] = ()


def make_map(clouds: Clouds, image_of: IntArray, *, seed: int = 0, largest: int = LARGEST) -> Map:
    """Images and their captions on a plane: by UMAP if it is installed, otherwise by principal components.

    If there are more than `largest` images, that many are drawn at random by `seed`, with all their captions.
    """
    images, captions, notes = _shown(len(clouds.images), image_of, seed, largest)
    means = np.concatenate([clouds.images[images], clouds.captions[captions]]).astype(np.float64)
    variances = None
    if clouds.image_vars is not None and clouds.caption_vars is not None:
        variances = np.concatenate([clouds.image_vars[images], clouds.caption_vars[captions]]).astype(np.float64)
    projected = _umap(means, seed)
    if projected is not None:
        method, (xy, jacobians) = "UMAP", projected
        if variances is not None:
            notes.append("the ellipses use a linear map fitted to each item's nearest neighbours")
    else:
        axes, xy, share = principal(means)
        method = f"PCA (the two axes hold {100 * share:.0f} % of the variance of the means)"
        jacobians = axes[None]
    shapes = None if variances is None else ellipses(jacobians, variances)
    kinds = np.repeat([0, 1], [len(images), len(captions)])
    return Map(method, xy, kinds, np.concatenate([images, captions]), shapes, (*clouds.notes, *notes))


def _shown(n_images: int, image_of: IntArray, seed: int, largest: int) -> tuple[IntArray, IntArray, list[str]]:
    if n_images <= largest:
        return np.arange(n_images), np.arange(len(image_of)), []
    images = np.sort(np.random.default_rng(seed).choice(n_images, largest, replace=False))
    captions = np.flatnonzero(np.isin(image_of, images))
    return images, captions, [f"shown are {largest:,} of the {n_images:,} images, drawn at random, and their captions"]


def principal(means: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """The two principal axes (2, d) of means (n, d), the means on them (n, 2), and the share of variance they hold.

    The sign of an axis is such that its largest component is positive: the same numbers give the same map.
    """
    centred = means - means.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = np.zeros((2, means.shape[1]))
    count = min(2, means.shape[1])
    axes[:count] = vectors.T[::-1][:count]
    axes *= np.where(np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1) < 0, -1.0, 1.0)
    total = float(values.sum())
    share = float(values[::-1][:count].sum()) / total if total > 0 else 1.0
    return axes, centred @ axes.T, share


def ellipses(jacobians: FloatArray, variances: FloatArray) -> FloatArray:
    """Half-axes and angle (n, 3) of the one-σ ellipses of N(μ, diag v) under linear maps: of J diag(v) Jᵀ.

    jacobians (n, 2, d), or (1, 2, d) for one map of all; variances (n, d). The angle, in radians, is the long axis's.

    >>> ellipses(np.eye(2)[None], np.array([[4.0, 1.0]])).round(3)
    array([[2., 1., 0.]])
    """
    if len(jacobians) == 1:
        axes = jacobians[0]
        products = np.stack([axes[0] ** 2, axes[0] * axes[1], axes[1] ** 2])  # (3, d)
        xx, xy, yy = products @ variances.T
    else:
        xx, xy, yy = (
            np.einsum("nd,nd,nd->n", jacobians[:, a], variances, jacobians[:, b]) for a, b in ((0, 0), (0, 1), (1, 1))
        )
    middle, half = (xx + yy) / 2, np.hypot((xx - yy) / 2, xy)
    long, short = np.sqrt(np.maximum(middle + half, 0)), np.sqrt(np.maximum(middle - half, 0))
    return np.stack([long, short, np.arctan2(2 * xy, xx - yy) / 2], axis=1)


def _umap(means: FloatArray, seed: int) -> tuple[FloatArray, FloatArray] | None:
    """Positions (n, 2), and for each item the linear map that fits its neighbours (n, 2, d); None without UMAP."""
    means, back = np.unique(means, axis=0, return_inverse=True)  # equal captions share one position
    neighbours = min(_NEIGHBOURS, len(means) - 1)
    try:
        import umap  # a heavy extra; the page works without it
    except ImportError:
        return None
    if neighbours < 2:
        return None
    reducer = umap.UMAP(n_components=2, n_neighbors=neighbours, min_dist=0.15, init="pca", random_state=seed, n_jobs=1)
    xy = np.asarray(reducer.fit_transform(means), dtype=np.float64)
    return xy[back], local_maps(means, xy, neighbours)[back]


def local_maps(means: FloatArray, xy: FloatArray, neighbours: int) -> FloatArray:
    """For each item, the linear map (n, 2, d) that best takes its nearest neighbours to their positions xy.

    J = ΔYᵀ (ΔX ΔXᵀ + λ)⁻¹ ΔX: least squares of smallest norm, with a small ridge λ.
    """
    squares = (means**2).sum(axis=1)
    out = np.empty((len(means), 2, means.shape[1]))
    for i in range(len(means)):
        distances = squares - 2 * means @ means[i]
        distances[i] = np.inf
        near = np.argpartition(distances, neighbours - 1)[:neighbours]
        dx, dy = means[near] - means[i], xy[near] - xy[i]
        gram = dx @ dx.T
        gram[np.diag_indices(len(near))] += _RIDGE * max(np.trace(gram) / len(near), 1e-12)
        out[i] = dy.T @ np.linalg.solve(gram, dx)
    return out
