"""A map of the joint space: means projected onto a plane, variances as the ellipses the projection makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halation._arrays import FloatArray, IntArray
from halation.report._facts import Map

__all__ = ["Clouds", "ellipses", "local_maps", "make_map", "principal"]

LARGEST = 1000  # images whose captions are also shown: more is a carpet, and a page nobody can open
_NEIGHBOURS = 16
_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class Clouds:
    """Means (n, d) of the images and captions that a map shows, and their variances; None for points."""

    images: FloatArray
    captions: FloatArray
    image_vars: FloatArray | None = None
    caption_vars: FloatArray | None = None
    notes: tuple[str, ...] = ()


def make_map(clouds: Clouds, image_of: IntArray, *, seed: int = 0, largest: int = LARGEST) -> Map:
    """Images and their captions on a plane: by UMAP where it is installed, otherwise by the principal components.

    Of more than `largest` images as many are drawn by `seed`, with all their captions.
    """
    images, captions, notes = _shown(len(clouds.images), image_of, seed, largest)
    means = np.concatenate([clouds.images[images], clouds.captions[captions]]).astype(np.float64)
    variances = None
    if clouds.image_vars is not None and clouds.caption_vars is not None:
        variances = np.concatenate([clouds.image_vars[images], clouds.caption_vars[captions]]).astype(np.float64)
    bent = _umap(means, seed)
    if bent is not None:
        method, (xy, jacobians) = "UMAP", bent
        if variances is not None:
            notes.append("ellipses: the local linear part of the map, fitted to each item's nearest neighbours")
    else:
        axes, xy, share = principal(means)
        method = f"PCA: two axes that hold {100 * share:.0f} % of the variance of the means"
        jacobians = axes[None]
    shapes = None if variances is None else ellipses(jacobians, variances)
    kinds = np.repeat([0, 1], [len(images), len(captions)])
    return Map(method, xy, kinds, np.concatenate([images, captions]), shapes, (*clouds.notes, *notes))


def _shown(n_images: int, image_of: IntArray, seed: int, largest: int) -> tuple[IntArray, IntArray, list[str]]:
    if n_images <= largest:
        return np.arange(n_images), np.arange(len(image_of)), []
    images = np.sort(np.random.default_rng(seed).choice(n_images, largest, replace=False))
    captions = np.flatnonzero(np.isin(image_of, images))
    return images, captions, [f"{largest:,} of the {n_images:,} images and their captions, drawn at random"]


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
    """Positions (n, 2) and, for every item, the linear map that its neighbours suggest (n, 2, d); None without UMAP."""
    means, back = np.unique(means, axis=0, return_inverse=True)  # the same words: one place, no island
    neighbours = min(_NEIGHBOURS, len(means) - 1)
    try:
        import umap  # an extra of its own: heavy, and the page is whole without it
    except ImportError:
        return None
    if neighbours < 2:
        return None
    found = umap.UMAP(n_components=2, n_neighbors=neighbours, min_dist=0.15, init="pca", random_state=seed, n_jobs=1)
    xy = np.asarray(found.fit_transform(means), dtype=np.float64)
    return xy[back], local_maps(means, xy, neighbours)[back]


def local_maps(means: FloatArray, xy: FloatArray, neighbours: int) -> FloatArray:
    """The linear map (n, 2, d) that best takes each item's nearest neighbours, seen from it, to their places.

    J = ΔYᵀ (ΔX ΔXᵀ + λ)⁻¹ ΔX, the least squares of smallest norm, a little ridged.
    """
    squares = (means**2).sum(axis=1)
    out = np.empty((len(means), 2, means.shape[1]))
    for i in range(len(means)):
        apart = squares - 2 * means @ means[i]
        apart[i] = np.inf
        near = np.argpartition(apart, neighbours - 1)[:neighbours]
        dx, dy = means[near] - means[i], xy[near] - xy[i]
        gram = dx @ dx.T
        gram[np.diag_indices(len(near))] += _RIDGE * max(np.trace(gram) / len(near), 1e-12)
        out[i] = dy.T @ np.linalg.solve(gram, dx)
    return out
