"""`Gaussian`: a batch of diagonal Gaussians N(μ, diag σ²), the embeddings that encoders return."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from halation._arrays import Array
from halation._errors import InputError
from halation._tensors import load_tensors, save_tensors
from halation._torch import as_tensor

__all__ = ["Gaussian"]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """n Gaussians in d dimensions, N(mean, diag exp(log_var)).

    mean (n, d); log_var (n, d), always the logarithm of the *variance*, or None for points (zero variance).
    Plain arrays become tensors. Tensors are not copied, so gradients flow to the network that made them.

    >>> clouds = Gaussian(torch.zeros(3, 2), torch.log(torch.tensor([[1.0, 4.0]])).expand(3, 2))
    >>> clouds
    Gaussian(n=3, d=2)
    >>> clouds.uncertainty()
    tensor([1.4142, 1.4142, 1.4142])
    >>> clouds[1:].sample(5, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 5, 2])
    """

    mean: Tensor  # (n, d)
    log_var: Tensor | None  # (n, d)

    def __post_init__(self) -> None:
        mean = _as_floats(self.mean, "mean")
        if mean.ndim != 2:
            raise InputError(f"mean must have shape (n, d), not {tuple(mean.shape)}; one item is mean[None]")
        object.__setattr__(self, "mean", mean)
        if self.log_var is None:
            return
        log_var = _as_floats(self.log_var, "log_var")
        if log_var.shape != mean.shape:
            raise InputError(
                f"log_var has shape {tuple(log_var.shape)} but mean has {tuple(mean.shape)}; "
                "expand a shared variance to the shape of the mean, or use Gaussian.point(mean)"
            )
        if log_var.device != mean.device:
            raise InputError(f"mean is on {mean.device} but log_var on {log_var.device}; bring both to one device")
        object.__setattr__(self, "log_var", log_var.to(mean.dtype))

    @classmethod
    def point(cls, mean: Array) -> Gaussian:
        """Points, the Gaussians of a deterministic model: no variance (`log_var` is None)."""
        return cls(mean, None)

    @classmethod
    def from_log_std(cls, mean: Array, log_std: Array) -> Gaussian:
        """From a head that emits log σ, as PCME's does: log σ² = 2 log σ."""
        return cls(mean, 2 * _as_floats(log_std, "log_std"))

    @classmethod
    def of(cls, values: Gaussian | Array) -> Gaussian:
        """The values as a Gaussian: an array or tensor (n, d) becomes points.

        >>> Gaussian.of([[0.0, 1.0]])
        Gaussian(n=1, d=2, points)
        """
        return values if isinstance(values, Gaussian) else cls.point(values)

    @classmethod
    def cat(cls, parts: Sequence[Gaussian]) -> Gaussian:
        """The Gaussians concatenated; either all are points, or none is."""
        if not parts:
            raise InputError("Gaussian.cat needs at least one Gaussian")
        widths = sorted({part.dim for part in parts})
        if len(widths) > 1:
            raise InputError(f"Gaussian.cat: the parts have different dimensions {widths}")
        log_vars = [part.log_var for part in parts if part.log_var is not None]
        if log_vars and len(log_vars) < len(parts):
            raise InputError("Gaussian.cat: some parts are points and some are not; give the points a log_var first")
        return cls(torch.cat([part.mean for part in parts]), torch.cat(log_vars) if log_vars else None)

    @property
    def is_point(self) -> bool:
        """True if the variance is zero."""
        return self.log_var is None

    @property
    def dim(self) -> int:
        """The dimension d."""
        return int(self.mean.shape[1])

    @property
    def var(self) -> Tensor:
        """σ² (n, d); zeros for points."""
        return torch.zeros_like(self.mean) if self.log_var is None else self.log_var.exp()

    @property
    def std(self) -> Tensor:
        """σ (n, d); zeros for points."""
        return torch.zeros_like(self.mean) if self.log_var is None else (0.5 * self.log_var).exp()

    def uncertainty(self) -> Tensor:
        """Geometric mean of σ, exp(½ mean_d log σ²), per item (n,): it orders as the covariance's determinant does.

        Chun et al., CVPR 2021. Points have 0.
        """
        if self.log_var is None:
            return self.mean.new_zeros(len(self))
        return (0.5 * self.log_var.mean(dim=1)).exp()

    def sample(self, k: int, generator: torch.Generator) -> Tensor:
        """k samples of every item, μ + σ ε, differentiable in mean and log_var: (n, k, d)."""
        if k < 1:
            raise InputError(f"k must be at least 1 to draw samples, not {k}")
        shape = (len(self), k, self.dim)
        if self.log_var is None:
            return self.mean[:, None].expand(shape)
        noise = torch.randn(shape, generator=generator, device=generator.device, dtype=self.mean.dtype)
        return self.sample_from(noise.to(self.mean.device))

    def sample_from(self, noise: Tensor) -> Tensor:
        """Samples from your own standard normal noise, μ + σ · noise: (n, k, d)."""
        if noise.ndim != 3 or noise.shape[::2] != self.mean.shape:
            raise InputError(f"noise must be ({len(self)}, k, {self.dim}), not {tuple(noise.shape)}")
        return self.mean[:, None] + self.std[:, None] * noise

    def to(self, *args: Any, **kwargs: Any) -> Gaussian:
        """A copy on another device or in another dtype, as `Tensor.to`."""
        return Gaussian(
            self.mean.to(*args, **kwargs), None if self.log_var is None else self.log_var.to(*args, **kwargs)
        )

    def detach(self) -> Gaussian:
        """The same numbers without gradients."""
        return Gaussian(self.mean.detach(), None if self.log_var is None else self.log_var.detach())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file."""
        tensors = {"mean": self.mean} if self.log_var is None else {"mean": self.mean, "log_var": self.log_var}
        save_tensors(path, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Gaussian:
        """The Gaussians that `save` wrote; loading executes nothing."""
        tensors = load_tensors(path)
        if not {"mean"} <= tensors.keys() <= {"mean", "log_var"}:
            raise InputError(f"holds {sorted(tensors)}; a Gaussian has `mean` and, unless points, `log_var`", path=path)
        return cls(tensors["mean"], tensors.get("log_var"))

    def __len__(self) -> int:
        return int(self.mean.shape[0])

    def __getitem__(self, index: int | slice | Sequence[int] | Tensor | np.ndarray[Any, Any]) -> Gaussian:
        """Items by slice, index tensor, boolean mask or list; a single number gives a Gaussian of one item."""
        if isinstance(index, (Tensor, np.ndarray)) and index.ndim == 0:
            index = int(index)
        if isinstance(index, (int, np.integer)):
            position = int(index) + (len(self) if index < 0 else 0)
            if not 0 <= position < len(self):
                raise IndexError(f"item {index} of {len(self)} Gaussians")
            index = slice(position, position + 1)
        elif not isinstance(index, (slice, Tensor)):
            index = torch.as_tensor(np.asarray(index, dtype=None if len(index) else np.int64))
        return Gaussian(self.mean[index], None if self.log_var is None else self.log_var[index])

    def __repr__(self) -> str:
        return f"Gaussian(n={len(self)}, d={self.dim}{', points' if self.is_point else ''})"


def _as_floats(values: Array, name: str) -> Tensor:
    tensor = as_tensor(values, name)
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())
