"""CCA, the baseline without a network: two linear maps that make images and captions agree most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halation._arrays import Array
from halation._errors import InputError
from halation.similarity import Gaussian

__all__ = ["CCA"]


@dataclass(frozen=True, eq=False)
class CCA:
    """Canonical correlation analysis, in closed form; Hotelling, 1936, with ridge regularisation.

        Cxx = XᵀX/n + λ tr(XᵀX/n)/d · I (and Cyy),   Cxx^−½ Cxy Cyy^−½ = U S Vᵀ,   A = Cxx^−½ U,  B = Cyy^−½ V

    of the centred X (n, dx) and Y (n, dy), where row k of both belongs together. The k-th columns of A and B map to two
    variables that correlate by S_k. `power` weights each by S_k^power, so that cosines depend most on the dimensions
    that agree (Gong et al., IJCV 2014, use 4). Scores: `similarity.cosine(cca.images(x), cca.captions(y))`.

    >>> x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    >>> cca = CCA.fit(x, x @ torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0])), dim=2)
    >>> cca.correlations
    tensor([0.9999, 0.9999])
    """

    image_mean: Tensor  # (dx,)
    caption_mean: Tensor  # (dy,)
    image_map: Tensor  # (dx, dim)
    caption_map: Tensor  # (dy, dim)
    correlations: Tensor  # (dim,), falling

    @classmethod
    def fit(cls, x: Array, y: Array, dim: int, regularisation: float = 1e-4, power: float = 0.0) -> CCA:
        """Fit to x (n, dx) and y (n, dy), row k of both a pair; dim ≤ min(dx, dy). Sums are in double precision."""
        images, captions = _matrix(x, "x"), _matrix(y, "y")
        if len(images) != len(captions):
            raise InputError(f"x has {len(images)} rows but y has {len(captions)}; row k of both must belong together")
        widest = min(images.shape[1], captions.shape[1])
        if not 1 <= dim <= widest:
            raise InputError(f"dim must be between 1 and {widest}, the narrower of x and y, not {dim}")
        if len(images) < 2 or regularisation < 0:
            raise InputError(f"CCA needs two rows and regularisation ≥ 0, not {len(images)} and {regularisation}")
        x_mean, y_mean = images.mean(axis=0, dtype=np.float64), captions.mean(axis=0, dtype=np.float64)
        xx, xy, yy = _products(images, captions, x_mean, y_mean)
        x_root, y_root = _inverse_root(xx, regularisation, "x"), _inverse_root(yy, regularisation, "y")
        u, s, vt = np.linalg.svd(x_root @ xy @ y_root, full_matrices=False)
        weights = s[:dim].clip(0) ** power
        image_map, caption_map = (x_root @ u[:, :dim]) * weights, (y_root @ vt[:dim].T) * weights
        arrays = (x_mean, y_mean, image_map, caption_map, s[:dim])
        return cls(*(torch.from_numpy(np.ascontiguousarray(a, dtype=np.float32)) for a in arrays))

    def images(self, x: Array) -> Gaussian:
        """x (n, dx) → points (n, dim)."""
        return _mapped(x, self.image_mean, self.image_map, "x")

    def captions(self, y: Array) -> Gaussian:
        """y (n, dy) → points (n, dim)."""
        return _mapped(y, self.caption_mean, self.caption_map, "y")


def _matrix(x: Array, name: str) -> npt.NDArray[np.floating]:
    values = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"{name} must be a matrix (items, features), not of shape {values.shape}")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise InputError(f"{name}[{row}] holds a number that is not finite; leave that row out of both")
    return values


def _products(
    x: npt.NDArray[np.floating],
    y: npt.NDArray[np.floating],
    x_mean: npt.NDArray[np.float64],
    y_mean: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], ...]:
    """XᵀX/n, XᵀY/n and YᵀY/n of the centred matrices, a few thousand rows at a time."""
    shapes = ((len(x_mean),) * 2, (len(x_mean), len(y_mean)), (len(y_mean),) * 2)
    xx, xy, yy = (np.zeros(shape) for shape in shapes)
    for start in range(0, len(x), 4096):
        a = x[start : start + 4096].astype(np.float64) - x_mean
        b = y[start : start + 4096].astype(np.float64) - y_mean
        xx += a.T @ a
        xy += a.T @ b
        yy += b.T @ b
    return xx / len(x), xy / len(x), yy / len(x)


def _inverse_root(c: npt.NDArray[np.float64], regularisation: float, name: str) -> npt.NDArray[np.float64]:
    values, vectors = np.linalg.eigh(c)
    ridge = regularisation * values.mean()
    if values[-1] <= 0:
        raise InputError(f"{name} is the same in every row; there is nothing to correlate")
    kept = values > 1e-12 * values[-1]  # dimensions that do not vary cannot correlate
    roots = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1) + ridge), 0)
    result: npt.NDArray[np.float64] = (vectors * roots) @ vectors.T
    return result


def _mapped(x: Array, mean: Tensor, matrix: Tensor, name: str) -> Gaussian:
    values = torch.as_tensor(x).to(matrix)
    if values.ndim != 2 or values.shape[1] != len(mean):
        raise InputError(f"{name} must be (items, {len(mean)}) as in the fit, not {tuple(values.shape)}")
    return Gaussian.point((values - mean) @ matrix)
