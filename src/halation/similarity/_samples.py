"""Similarities by Monte Carlo: one number from the J² distances between J samples of each item."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import Variant, as_tensor, as_variant, by_tiles, product, widen
from halation.similarity._gaussian import Gaussian
from halation.similarity._geometry import gram_factors, in_place

__all__ = ["match_log_likelihood", "match_probability", "sample_max", "sample_mean", "sample_min"]

Items = Gaussian | Array
Reduce = Callable[[Tensor, slice, slice], Tensor]
EPSILON = 1e-6  # under the root of a distance, as in PCME: the gradient of two equal samples stays finite


def match_probability(
    a: Items,
    b: Items,
    *,
    scale: float | Tensor,
    shift: float | Tensor,
    samples: int = 7,
    generator: torch.Generator | None = None,
    variant: Variant = "paper",
) -> Tensor:
    """The probability that two items match, the mean over J² sample pairs of σ(shift − scale·d): (n_a, n_b).

    d = √(‖z_a − z_b‖² + 1e-6). Chun et al., CVPR 2021 (PCME). `variant="released"` doubles the logit, as
    the authors' code does. Each side is a `Gaussian`, from which `samples` samples are drawn with `generator`, or
    samples already drawn (n, J, d), or points (n, d). Distances come from one Gram product per tile.

    To score one gallery in blocks of queries, draw the gallery's samples once and pass them.

    >>> match_probability([[0.0, 0.0]], [[1.0, 0.0], [0.9, 0.0]], scale=15.0, shift=15.0)
    tensor([[0.5000, 0.8176]])
    """
    z_a, z_b = _draw(a, b, samples, generator)
    factor = _logit_factor(variant)
    slope, offset = -factor * scale, factor * shift

    def reduce(distances: Tensor, rows: slice, columns: slice) -> Tensor:
        out = in_place(distances, slope, offset)
        logits = torch.add(torch.mul(distances, slope, out=out), offset, out=out)
        return torch.sigmoid(logits, out=out).mean(dim=(0, 2))

    return _over_sample_pairs(z_a, z_b, reduce)


def match_log_likelihood(
    a: Items,
    b: Items,
    matches: Array,
    *,
    scale: float | Tensor,
    shift: float | Tensor,
    samples: int = 7,
    generator: torch.Generator | None = None,
    variant: Variant = "paper",
) -> Tensor:
    """ln p where `matches` is True and ln(1 − p) where it is False; p is the `match_probability`: (n_a, n_b).

    Computed by logsumexp over the J² logits, so it stays finite where p rounds to 0 or 1.

    >>> match_log_likelihood([[0.0]], [[1.0]], torch.tensor([[True]]), scale=5.0, shift=5.0)
    tensor([[-0.6931]])
    """
    z_a, z_b = _draw(a, b, samples, generator)
    matches = as_tensor(matches, "matches").to(z_a.device)
    if matches.dtype != torch.bool or matches.shape != (len(z_a), len(z_b)):
        raise InputError(
            f"matches must be true or false for {len(z_a)} × {len(z_b)} pairs, "
            f"not {matches.dtype} of shape {tuple(matches.shape)}"
        )
    factor = _logit_factor(variant)
    sign = torch.where(matches, 1.0, -1.0).to(z_a)  # (n_a, n_b): 1 − σ(x) = σ(−x)
    pairs = math.log(z_a.shape[1] * z_b.shape[1])
    slope, offset = -factor * scale, factor * shift

    def reduce(distances: Tensor, rows: slice, columns: slice) -> Tensor:
        logits = sign[rows, None, columns] * (slope * distances + offset)  # (J, rows, K, columns)
        return logsigmoid(logits).logsumexp(dim=(0, 2)) - pairs

    return _over_sample_pairs(z_a, z_b, reduce)


def sample_min(a: Items, b: Items, *, samples: int = 7, generator: torch.Generator | None = None) -> Tensor:
    """Minus the smallest of the J² sample distances: (n_a, n_b).

    >>> sample_min([[0.0]], torch.tensor([[[3.0], [5.0]]])).round(decimals=3)
    tensor([[-3.]])
    """
    return _reduced(a, b, samples, generator, lambda d: -d.amin(dim=(0, 2)))


def sample_mean(a: Items, b: Items, *, samples: int = 7, generator: torch.Generator | None = None) -> Tensor:
    """Minus the mean of the J² sample distances: (n_a, n_b).

    >>> sample_mean([[0.0]], torch.tensor([[[3.0], [5.0]]])).round(decimals=3)
    tensor([[-4.]])
    """
    return _reduced(a, b, samples, generator, lambda d: -d.mean(dim=(0, 2)))


def sample_max(a: Items, b: Items, *, samples: int = 7, generator: torch.Generator | None = None) -> Tensor:
    """Minus the largest of the J² sample distances: (n_a, n_b).

    >>> sample_max([[0.0]], torch.tensor([[[3.0], [5.0]]])).round(decimals=3)
    tensor([[-5.]])
    """
    return _reduced(a, b, samples, generator, lambda d: -d.amax(dim=(0, 2)))


def _reduced(
    a: Items, b: Items, samples: int, generator: torch.Generator | None, reduce: Callable[[Tensor], Tensor]
) -> Tensor:
    z_a, z_b = _draw(a, b, samples, generator)
    return _over_sample_pairs(z_a, z_b, lambda distances, rows, columns: reduce(distances))


def _over_sample_pairs(z_a: Tensor, z_b: Tensor, reduce: Reduce) -> Tensor:
    """`reduce` of the distances (J, rows, K, columns), tile by tile: (n_a, J, d), (n_b, K, d) → (n_a, n_b)."""
    (n_a, j, d), (n_b, k, _) = z_a.shape, z_b.shape
    # sample-major: the axes that are reduced are the outer ones
    left, right = gram_factors(z_a.transpose(0, 1).reshape(j * n_a, d), z_b.transpose(0, 1).reshape(k * n_b, d))
    left, right = -left.view(j, n_a, d + 2), right.view(k, n_b, d + 2)

    def part(rows: slice, columns: slice) -> Tensor:
        x = product(left[:, rows].flatten(0, 1), right[:, columns].flatten(0, 1))  # squared distances
        out = in_place(x)
        x = torch.sqrt(torch.add(torch.clamp(x, min=0, out=out), EPSILON, out=out), out=out)
        return reduce(x.view(j, -1, k, columns.stop - columns.start), rows, columns)

    return by_tiles(n_a, n_b, j * k, part)


def _draw(a: Items, b: Items, samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    z_a, z_b = _samples_of(a, samples, generator), _samples_of(b, samples, generator)
    if z_a.shape[2] != z_b.shape[2]:
        raise InputError(f"the two sides have different dimensions: {z_a.shape[2]} and {z_b.shape[2]}")
    dtype = torch.promote_types(z_a.dtype, z_b.dtype)
    return z_a.to(dtype), z_b.to(dtype)


def _samples_of(items: Items, samples: int, generator: torch.Generator | None) -> Tensor:
    """Samples (n, J, d): drawn from a Gaussian; given as an array with three axes; or points, two axes (J = 1)."""
    if not isinstance(items, Gaussian):
        tensor = as_tensor(items, "samples")
        if tensor.ndim == 3:
            return _not_empty(widen(tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())))
        items = Gaussian.point(items)
    items = items.to(widen(items.mean).dtype)
    if items.is_point:
        return _not_empty(items.mean[:, None])
    if generator is None:
        raise InputError("drawing samples needs a generator=torch.Generator(); or pass samples (n, J, d) you drew")
    return _not_empty(items.sample(samples, generator))


def _not_empty(samples: Tensor) -> Tensor:
    if samples.numel() == 0:
        raise InputError(f"samples of shape {tuple(samples.shape)} are empty; there is nothing to compare")
    return samples


def _logit_factor(variant: str) -> float:
    return {"paper": 1.0, "released": 2.0}[as_variant(variant)]
