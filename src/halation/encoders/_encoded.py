"""What encoders return, handled alike whatever it is: a `Gaussian`, or tuples of tensors with one row per item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from halation.encoders._embeddings import Gisted, MultiEmbedding, PartEmbedding
from halation.similarity import Gaussian, gather

__all__ = ["Encoded", "cat", "gather_encoded", "n_items", "on_each", "rows"]

Encoded = Gaussian | MultiEmbedding | PartEmbedding | Gisted
E = TypeVar("E", bound=Encoded)


def n_items(encoded: Encoded) -> int:
    """How many items there are."""
    if isinstance(encoded, Gisted):
        return len(encoded.gist)
    return len(encoded) if isinstance(encoded, Gaussian) else len(encoded[0])


def on_each(encoded: E, change: Callable[[Tensor], Tensor]) -> E:
    """The same kind of thing with every tensor changed."""
    if isinstance(encoded, Gisted):
        return Gisted(on_each(encoded.detail, change), on_each(encoded.gist, change))  # type: ignore[return-value]
    if isinstance(encoded, Gaussian):
        return Gaussian(change(encoded.mean), None if encoded.log_var is None else change(encoded.log_var))  # type: ignore[return-value]
    return type(encoded)(*(None if x is None else change(x) for x in encoded))  # type: ignore[arg-type]


def rows(encoded: E, index: slice | Tensor) -> E:
    """Some of the items."""
    return on_each(encoded, lambda x: x[index])


def cat(parts: Sequence[E]) -> E:
    """One after the other; captions of different lengths are padded to the longest."""
    first = parts[0]
    if isinstance(first, Gisted):
        details, gists = zip(*parts, strict=True)
        return Gisted(cat(details), Gaussian.cat(gists))  # type: ignore[return-value]
    if isinstance(first, Gaussian):
        return Gaussian.cat(parts)  # type: ignore[arg-type, return-value]
    longest = max(part[0].shape[1] for part in parts)  # type: ignore[union-attr]
    ragged = any(part[0].shape[1] < longest for part in parts)  # type: ignore[union-attr]
    wide = [_widened(part, longest) if ragged else part for part in parts]
    columns = zip(*wide, strict=True)
    return type(first)(*(None if column[0] is None else torch.cat(column) for column in columns))  # type: ignore[arg-type]


def gather_encoded(encoded: E) -> E:
    """The items of all processes, with gradients; the same on every process."""
    if not (dist.is_available() and dist.is_initialized()):
        return encoded
    if isinstance(encoded, Gisted):
        return Gisted(gather_encoded(encoded.detail), gather_encoded(encoded.gist))  # type: ignore[return-value]
    if isinstance(encoded, PartEmbedding):
        longest = torch.tensor(encoded.local.shape[1], device=encoded.local.device)
        dist.all_reduce(longest, dist.ReduceOp.MAX)
        encoded = _widened(encoded, int(longest))
    return on_each(encoded, gather)


def _widened(encoded: E, cells: int) -> E:
    if not isinstance(encoded, PartEmbedding):
        return encoded
    extra, mask = cells - encoded.local.shape[1], encoded.mask
    if mask is None:
        mask = encoded.local.new_ones(encoded.local.shape[:2], dtype=torch.bool)
    return PartEmbedding(pad(encoded.local, (0, 0, 0, extra)), pad(mask, (0, extra)))  # type: ignore[return-value]
