"""What every loss asks of its inputs, with errors that name the tensor."""

from __future__ import annotations

import torch
from torch import Tensor

from halation._errors import InputError
from halation.gaussian import Gaussian

__all__ = ["as_mask", "as_matches", "check_finite", "check_matrix"]


def check_matrix(name: str, matrix: Tensor, shape: tuple[int, ...] | None = None, *, finite: bool = False) -> None:
    """A floating (q, n) tensor, of the shape of the scores where one is given."""
    if not isinstance(matrix, Tensor):
        raise InputError(f"{name} must be a tensor, not {type(matrix).__name__}; torch.as_tensor makes one")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"{name} must be a matrix (queries, candidates), not of shape {tuple(matrix.shape)}")
    if shape is not None and matrix.shape != shape:
        flipped = " (it fits transposed: rows are queries)" if matrix.shape == shape[::-1] else ""
        raise InputError(f"{name} has shape {tuple(matrix.shape)} but the scores have {tuple(shape)}{flipped}")
    if shape is None and not matrix.is_floating_point():
        raise InputError(f"{name} must be of a floating type, not {matrix.dtype}")
    if finite:
        check_finite(name, matrix)


def check_finite(name: str, values: Tensor | Gaussian) -> None:
    """Every number is finite; the error names the tensor and the first that is not."""
    if isinstance(values, Gaussian):
        check_finite(f"{name}.mean", values.mean)
        if values.log_var is not None:
            check_finite(f"{name}.log_var", values.log_var)
        return
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad):
        where = tuple(bad[0].tolist())
        raise InputError(
            f"{name}{list(where)} is {values[where].item()}; every number must be finite "
            "(a model that diverged, or candidates to leave out: pass a mask instead of infinities)"
        )


def as_mask(mask: Tensor, scores: Tensor) -> Tensor:
    """A boolean (q, n) mask, from (q, n) or one row (n,) for all."""
    if getattr(mask, "dtype", None) != torch.bool:
        raise InputError("mask must be a boolean tensor, True = counts")
    if mask.shape not in (scores.shape, scores.shape[1:]):
        raise InputError(f"mask has shape {tuple(mask.shape)} but the scores have {tuple(scores.shape)}")
    return mask.to(scores.device).expand(scores.shape)


def as_matches(matches: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A boolean match matrix (n_a, n_b); 0/1 numbers are accepted, other numbers are not."""
    if not isinstance(matches, Tensor):
        raise InputError(f"matches must be a tensor, not {type(matches).__name__}; torch.as_tensor makes one")
    if matches.shape != shape:
        raise InputError(f"matches has shape {tuple(matches.shape)} but there are {shape[0]} × {shape[1]} pairs")
    if matches.dtype != torch.bool:
        if not ((matches == 0) | (matches == 1)).all():
            raise InputError("matches must be true or false; csd_contrastive takes soft labels, daa graded relevance")
        matches = matches.bool()
    return matches
