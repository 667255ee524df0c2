"""Embeddings to search: those of a model trained on Flickr8k, a mixture fitted to them, and independent normals."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

import faiss
import numpy as np
import torch

from halation.data import Truth
from halation.encoders import load
from halation.similarity import Gaussian
from halation.training import read_recipe, train

ROOT = Path(__file__).resolve().parents[1]
FLICKR8K = ROOT.parent / "shared" / "data" / "flickr8k"
SETTINGS = ("model.dim=128", "train.epochs=6")
RUN = "HALATION_BENCH_RUN"  # the folder of a finished run with 128 dimensions, to save the training


@cache
def embedded() -> dict[str, tuple[Gaussian, Gaussian, Truth]] | None:
    """Images, captions and truth by split, of PCME++ at 128 dimensions, trained for a minute; None without the data."""
    if not FLICKR8K.is_dir():
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.environ.get(RUN, f"{name}/run"))
        if not folder.is_dir():
            train(read_recipe(ROOT / "recipes" / "flickr8k_pcmepp.toml", SETTINGS), FLICKR8K, folder)
        model = load(folder)
        splits = {}
        for split in ("train", "dev", "test"):
            data = model.open_dataset(FLICKR8K, split)
            images, captions = model.encode_dataset(data)
            assert isinstance(images, Gaussian)
            assert isinstance(captions, Gaussian)
            splits[split] = images, captions, data.truth
    return splits


def all_images() -> Gaussian:
    """The images of all splits."""
    splits = embedded()
    assert splits is not None
    return Gaussian.cat([images for images, _, _ in splits.values()])


def all_captions() -> Gaussian:
    """The captions of all splits."""
    splits = embedded()
    assert splits is not None
    return Gaussian.cat([captions for _, captions, _ in splits.values()])


class Mixture:
    """A mixture of normals with full covariances: one per cluster of k-means, weighted by its size."""

    def __init__(self, points: Gaussian, clusters: int) -> None:
        means = points.mean.numpy()
        fit = faiss.Kmeans(means.shape[1], clusters, niter=20, seed=0, min_points_per_centroid=1)
        fit.train(means)
        cluster = fit.index.search(means, 1)[1][:, 0]
        self._weights = np.bincount(cluster, minlength=clusters) / len(means)
        self._parts = [self._normal(means[cluster == number]) for number in range(clusters)]
        self._log_vars = points.log_var

    @staticmethod
    def _normal(members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        covariance = np.cov(members.T.astype(np.float64)) + 1e-4 * np.eye(members.shape[1])
        return members.mean(axis=0), np.linalg.cholesky(covariance).astype(np.float32)

    def draw(self, n: int, seed: int) -> Gaussian:
        """Draw n Gaussians: means from the mixture, scaled to length 1 as the model's are; variances of real items."""
        generator = np.random.default_rng(seed)
        cluster = generator.choice(len(self._parts), size=n, p=self._weights)
        means = np.empty((n, len(self._parts[0][0])), np.float32)
        for number, (centre, root) in enumerate(self._parts):
            rows = np.flatnonzero(cluster == number)
            means[rows] = generator.standard_normal((len(rows), len(centre)), np.float32) @ root.T + centre
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        assert self._log_vars is not None
        chosen = torch.from_numpy(generator.integers(len(self._log_vars), size=n))
        return Gaussian(torch.from_numpy(means), self._log_vars[chosen])


def normals(n: int, dim: int, seed: int) -> Gaussian:
    """Independent normals of one variance: the worst case for any index, because no two are near each other."""
    generator = torch.Generator().manual_seed(seed)
    return Gaussian(torch.randn(n, dim, generator=generator), torch.full((n, dim), -5.0))
