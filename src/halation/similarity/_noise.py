"""Standard normal noise that depends only on the number of a sample, not on its process or batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from halation._errors import InputError

__all__ = ["keyed_noise"]


def keyed_noise(
    keys: Tensor, k: int, d: int, seed: int = 0, *, dtype: torch.dtype = torch.float32, step: int = 0
) -> Tensor:
    """N(0, 1) numbers (n, k, d); row i is a function of (seed, step, keys[i]) and nothing else.

    keys (n,): the global number of each sample in the dataset. Samples drawn by `gaussian.sample_from(keyed_noise(…))`
    do not depend on how the batch is spread over processes. Give images and captions different seeds, such as
    `2 * seed` and `2 * seed + 1` (as halation's training does): with one seed, image 5 and caption 5 would draw the
    same noise, and their distance would be too small. The generator is counter-based: splitmix64 of the position, then
    the Box–Muller transform, on the device of the keys.

    >>> both = keyed_noise(torch.tensor([5, 9]), k=7, d=4, seed=1)
    >>> torch.equal(keyed_noise(torch.tensor([9]), k=7, d=4, seed=1)[0], both[1])
    True
    """
    if keys.ndim != 1 or keys.is_floating_point():
        raise InputError(f"keys must be whole numbers (n,), not {keys.dtype} of shape {tuple(keys.shape)}")
    start = _mix(keys.long() + _mix(torch.tensor(step, device=keys.device) + _mix_int(seed)))  # (n,)
    position = torch.arange(k * d, device=keys.device)
    bits = _mix(start[:, None] + position * _GOLDEN)  # (n, k·d)
    wide = torch.promote_types(dtype, torch.float32)
    # 24 bits for the radius, 24 for the angle; the radius never takes the logarithm of 0
    radius = (-2 * (((bits >> 40) & 0xFFFFFF).to(wide) + 0.5).div(1 << 24).log()).sqrt()
    angle = (bits & 0xFFFFFF).to(wide).mul(2 * math.pi / (1 << 24))
    return (radius * angle.cos()).to(dtype).view(len(keys), k, d)


def _signed(x: int) -> int:
    return ((x + (1 << 63)) % (1 << 64)) - (1 << 63)


_GOLDEN, _FIRST, _SECOND = (_signed(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _mix(x: Tensor) -> Tensor:
    """splitmix64 on int64. Products wrap as they should; >> copies the sign bit, so its copies are masked away."""
    x = x + _GOLDEN
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * _FIRST
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * _SECOND
    return x ^ ((x >> 31) & ((1 << 33) - 1))


def _mix_int(seed: int) -> int:
    return int(_mix(torch.tensor(_signed(seed))))
