"""What heads return: a `Gaussian`, several points, or parts; and functions that work for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from halation.similarity import Gaussian, gather

__all__ = [
    "Encoded",
    "MultiEmbedding",
    "PartEmbedding",
    "as_float32",
    "concatenate",
    "count",
    "gather_encoded",
    "map_tensors",
    "select",
]


class MultiEmbedding(NamedTuple):
    """K embeddings per item (PVSE)."""

    points: Tensor  # (B, K, D), of length 1
    residuals: Tensor  # (B, K, D), what attention added to the pooled vector; two of PVSE's losses use them


class PartEmbedding(NamedTuple):
    """Items as their parts, each of length 1, for a scorer that compares parts with parts (SGR, SAF)."""

    local: Tensor  # (B, cells, D)
    mask: Tensor | None = None  # (B, cells) bool, True = a real cell; None = all are real


Encoded = Gaussian | MultiEmbedding | PartEmbedding
"""What an encoder returns for a batch of items."""
E = TypeVar("E", bound=Encoded)


def count(encoded: Encoded) -> int:
    """The number of items."""
    return len(encoded) if isinstance(encoded, Gaussian) else len(encoded[0])


def map_tensors(encoded: E, change: Callable[[Tensor], Tensor]) -> E:
    """The same kind of embedding, with `change` applied to each of its tensors."""
    if isinstance(encoded, Gaussian):
        return Gaussian(change(encoded.mean), None if encoded.log_var is None else change(encoded.log_var))  # type: ignore[return-value]
    return type(encoded)(*(None if x is None else change(x) for x in encoded))  # type: ignore[arg-type]


def select(encoded: E, rows: slice | Tensor) -> E:
    """The items at these rows."""
    return map_tensors(encoded, lambda x: x[rows])


def as_float32(encoded: E) -> E:
    """The same embeddings in float32: half precision ends with the encoders, before anything is compared."""
    return map_tensors(encoded, lambda x: x.float() if x.is_floating_point() else x)


def concatenate(batches: Sequence[E]) -> E:
    """All batches as one; captions of different lengths are padded to the longest."""
    first = batches[0]
    if isinstance(first, Gaussian):
        return Gaussian.cat(batches)  # type: ignore[arg-type, return-value]
    longest = max(batch[0].shape[1] for batch in batches)  # type: ignore[union-attr]
    ragged = any(batch[0].shape[1] < longest for batch in batches)  # type: ignore[union-attr]
    padded = [_padded(batch, longest) if ragged else batch for batch in batches]
    columns = zip(*padded, strict=True)
    return type(first)(*(None if column[0] is None else torch.cat(column) for column in columns))  # type: ignore[arg-type]


def gather_encoded(encoded: E) -> E:
    """The items of all processes, with gradients; the same on every process."""
    if not (dist.is_available() and dist.is_initialized()):
        return encoded
    if isinstance(encoded, PartEmbedding):
        longest = torch.tensor(encoded.local.shape[1], device=encoded.local.device)
        dist.all_reduce(longest, dist.ReduceOp.MAX)
        encoded = _padded(encoded, int(longest))
    return map_tensors(encoded, gather)


def _padded(encoded: E, cells: int) -> E:
    if not isinstance(encoded, PartEmbedding):
        return encoded
    extra, mask = cells - encoded.local.shape[1], encoded.mask
    if mask is None:
        mask = encoded.local.new_ones(encoded.local.shape[:2], dtype=torch.bool)
    return PartEmbedding(pad(encoded.local, (0, 0, 0, extra)), pad(mask, (0, extra)))  # type: ignore[return-value]
