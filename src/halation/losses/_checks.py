"""Checks of the inputs of losses, with errors that name the tensor."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import as_tensor, widen
from halation.similarity import Gaussian

__all__ = [
    "as_factor",
    "as_mask",
    "as_matches",
    "as_points",
    "as_relevance",
    "as_temperature",
    "check_finite",
    "check_matrix",
    "check_some",
    "match_matrix",
    "positive",
]

_NARROW = (torch.bool, torch.int8, torch.uint8, torch.int16)  # types that float32 holds without loss


def check_matrix(name: str, matrix: Tensor) -> None:
    """An InputError unless this is a floating (q, n) tensor that is not empty."""
    if not isinstance(matrix, Tensor):
        raise InputError(f"{name} must be a tensor, not {type(matrix).__name__}; torch.as_tensor makes one")
    _check_matrix_shape(name, matrix)
    if not matrix.is_floating_point():
        raise InputError(f"{name} must be of a floating type, not {matrix.dtype}")


def as_relevance(relevance: Array, shape: tuple[int, ...] | None = None, name: str = "relevance") -> Tensor:
    """The relevance as a floating (q, n) tensor without gradient; whole numbers keep their value.

    >>> as_relevance([[3, 1]], (1, 2))
    tensor([[3., 1.]], dtype=torch.float64)
    """
    matrix = as_tensor(relevance, name).detach()
    if shape is None or matrix.ndim != 2:
        _check_matrix_shape(name, matrix)
    if shape is not None and matrix.shape != shape:
        flipped = " (it fits transposed: rows are queries)" if matrix.shape == shape[::-1] else ""
        raise InputError(f"{name} has shape {tuple(matrix.shape)} but the scores have {tuple(shape)}{flipped}")
    if matrix.is_floating_point():
        return matrix
    return matrix.to(torch.get_default_dtype() if matrix.dtype in _NARROW else torch.float64)


def _check_matrix_shape(name: str, matrix: Tensor) -> None:
    if matrix.ndim != 2:
        raise InputError(f"{name} must be a matrix (queries, candidates), not of shape {tuple(matrix.shape)}")
    check_some(name, matrix)


def check_some(name: str, values: Tensor | Gaussian) -> None:
    """An InputError if the batch is empty: it has no mean."""
    shape = tuple((values.mean if isinstance(values, Gaussian) else values).shape)
    if 0 in shape:
        raise InputError(f"{name} is empty: shape {shape}; leave an empty batch out")


def check_finite(name: str, values: float | Tensor | Gaussian, mask: Tensor | None = None) -> None:
    """An InputError unless every number (where `mask` is True) is finite; it names the tensor and the position."""
    if isinstance(values, Gaussian):
        check_finite(f"{name}.mean", values.mean)
        if values.log_var is not None:
            check_finite(f"{name}.log_var", values.log_var)
        return
    values = torch.as_tensor(values)
    wrong = ~torch.isfinite(values)
    bad = (wrong if mask is None else wrong & mask).nonzero()
    if len(bad):
        position = tuple(bad[0].tolist())
        raise InputError(
            f"{name}{list(position) or ''} is {values[position].item()}; every number must be finite (did the model "
            "diverge? to leave candidates out, pass a mask instead of infinities)"
        )


def as_mask(mask: Array, scores: Tensor) -> Tensor:
    """A boolean (q, n) mask, from (q, n) or from one row (n,) for all queries."""
    marks = as_tensor(mask, "mask")
    if marks.dtype != torch.bool:
        raise InputError(f"mask must be boolean, True = counts, not {marks.dtype}")
    if marks.shape not in (scores.shape, scores.shape[1:]):
        raise InputError(f"mask has shape {tuple(marks.shape)} but the scores have {tuple(scores.shape)}")
    return marks.to(scores.device).expand(scores.shape)


def match_matrix(images: Array, images_of_captions: Array) -> Tensor:
    """The match matrix that every pair loss takes: (n_images, n_captions) bool, True where a caption is of an image.

    images (n,) the batch's image numbers; images_of_captions (m,) the image number of each caption. Numbers may repeat
    on either side: two captions of one image are both its matches.

    >>> match_matrix([7, 3], [3, 7, 7])
    tensor([[False,  True,  True],
            [ True, False, False]])
    """
    rows, columns = as_tensor(images, "images"), as_tensor(images_of_captions, "images_of_captions")
    if rows.ndim != 1 or columns.ndim != 1:
        raise InputError(
            f"match_matrix takes numbers (n,) and (m,), not {tuple(rows.shape)} and {tuple(columns.shape)}"
        )
    return rows[:, None] == columns


def as_matches(matches: Array, pairs: Tensor | tuple[int, int]) -> Tensor:
    """A boolean match matrix (n_a, n_b), on the device of the scores if these are given; 0 and 1 are accepted."""
    shape = tuple(pairs.shape) if isinstance(pairs, Tensor) else pairs
    marks = as_tensor(matches, "matches")
    if marks.shape != shape:
        raise InputError(f"matches has shape {tuple(marks.shape)} but there are {shape[0]} × {shape[1]} pairs")
    if marks.dtype != torch.bool:
        if not ((marks == 0) | (marks == 1)).all():
            raise InputError("matches must be true or false; csd_contrastive takes soft labels, daa graded relevance")
        marks = marks.bool()
    return marks.to(pairs.device) if isinstance(pairs, Tensor) else marks


def as_points(name: str, values: Gaussian | Array) -> Tensor:
    """Points or samples (n, …, d) of at least 32 bits; a Gaussian must be made of points."""
    if isinstance(values, Gaussian):
        if not values.is_point:
            raise InputError(
                f"{name} is a Gaussian with variance, but this needs points: "
                "pass its `.mean`, or samples drawn with `.sample`"
            )
        values = values.mean
    points = as_tensor(values, name)
    if points.ndim < 2:
        raise InputError(f"{name} must hold a vector per item, (n, d), not {tuple(points.shape)}")
    check_some(name, points)
    return widen(points if points.is_floating_point() else points.to(torch.get_default_dtype()))


def as_temperature(value: Any, name: str = "temperature", *, zero: bool = False) -> float:
    """The temperature of soft ranks: a positive number (or 0, if `zero`), not a tensor."""
    if isinstance(value, Tensor):
        raise InputError(f"{name} must be a number, not a tensor: it cannot be learnt here (pass {name}.item())")
    if zero and isinstance(value, Real) and value == 0:
        return 0.0
    return positive(name, value)


def positive(name: str, value: Any) -> float:
    """The value as a float; an InputError unless it is positive, finite and has a finite inverse."""
    if not isinstance(value, Real):
        raise InputError(f"{name} must be a positive number, not {value!r}")
    number = float(value)
    if not (number > 0 and math.isfinite(number) and math.isfinite(1 / number)):
        raise InputError(f"{name} must be a positive number, not {number:g}")
    return number


def as_factor(name: str, value: Any, *, finite: bool = False) -> float | Tensor:
    """A scale or shift: a number, or a tensor of one that may be learnt."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise InputError(f"{name} must be one number, not of shape {tuple(value.shape)}")
    elif not isinstance(value, Real):
        raise InputError(f"{name} must be a number or a tensor of one, not {value!r}")
    else:
        value = float(value)
    if finite:
        check_finite(name, value)
    number: float | Tensor = value
    return number
