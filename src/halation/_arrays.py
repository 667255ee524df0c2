"""Checked NumPy arrays from lists, NumPy arrays or torch tensors on any device.

Torch is never imported here: a tensor is recognised by its methods, so NumPy users never pay for torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from halation._errors import InputError

__all__ = [
    "Array",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "as_indices",
    "as_relevance",
    "as_relevant",
    "as_scores",
    "sigmoid",
    "to_numpy",
]

Array = Any
"""Anything `to_numpy` takes: a nested list, a NumPy array, a torch tensor."""
FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]

_NARROW = [np.dtype(kind) for kind in ("float16", "float32", "int8", "uint8", "int16", "uint16", "bool")]


def to_numpy(values: Array) -> npt.NDArray[Any]:
    """A NumPy view or copy of `values`; tensors are detached and brought to the CPU, bfloat16 becomes float32."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
        return np.asarray(values.numpy())
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"not an array: {error} (rows of different lengths?)") from None


def as_scores(scores: Array, name: str = "scores") -> FloatArray:
    """A finite (q, n) float32 or float64 matrix; float16 and small integers are widened without loss.

    float32 and float64 arrays are not copied, not even transposed views.
    """
    matrix = to_numpy(scores)
    if matrix.ndim != 2:
        raise InputError(f"{name} must be a matrix (queries, candidates), not an array of shape {matrix.shape}")
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold numbers, not {matrix.dtype}")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InputError(f"{name} is empty: shape {matrix.shape}")
    if matrix.dtype.kind in "iu" and matrix.itemsize == 8 and max(-int(matrix.min()), int(matrix.max())) > 1 << 53:
        raise InputError(
            f"{name} holds integers beyond 2**53, which floats cannot tell apart", remedy="pass their ranks"
        )
    narrow = matrix.dtype.newbyteorder("=") in _NARROW
    matrix = matrix.astype(np.float32 if narrow else np.float64, copy=False)
    _check_finite(matrix, name)
    return matrix


def as_relevant(relevant: Array, shape: tuple[int, int], name: str = "relevant") -> BoolArray:
    """A boolean (q, n) matrix that fits the scores; 0/1 numbers are accepted, other numbers are not."""
    matrix = to_numpy(relevant)
    _check_shape(matrix, shape, name)
    if matrix.dtype != np.bool_:
        if matrix.dtype.kind not in "fiu":
            raise InputError(f"{name} must be true or false, not {matrix.dtype}")
        marks = matrix.astype(np.bool_)
        if not all(np.array_equal(matrix[row], marks[row]) for row in range(shape[0])):  # row by row: no big temporary
            raise InputError(f"{name} must be true or false", remedy="for graded relevance use ndcg_at or asp")
        return marks
    return matrix


def as_relevance(relevance: Array, shape: tuple[int, int], name: str = "relevance") -> FloatArray:
    """A finite graded (q, n) matrix that fits the scores."""
    matrix = as_scores(relevance, name)
    _check_shape(matrix, shape, name)
    return matrix


def _check_finite(matrix: FloatArray, name: str) -> None:
    in_memory = matrix if matrix.strides[0] >= matrix.strides[1] else matrix.T  # rows are contiguous
    for start in range(0, in_memory.shape[0], 256):  # in blocks: isfinite of 5,000 × 25,000 is another 125 MB
        rows = in_memory[start : start + 256]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(rows.sum()):
                continue
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad) == 0:
            continue  # only the sum overflowed
        row, column = start + int(bad[0, 0]), int(bad[0, 1])
        if in_memory is not matrix:
            row, column = column, row
        raise InputError(
            f"{name}[{row}, {column}] is {matrix[row, column]}; every score must be finite "
            "(did the model overflow? To leave out candidates, give them a very low finite score)"
        )


def _check_shape(matrix: npt.NDArray[Any], shape: tuple[int, int], name: str) -> None:
    if matrix.shape != shape:
        flipped = " (it fits transposed: rows are queries)" if matrix.shape == shape[::-1] else ""
        raise InputError(f"{name} has shape {matrix.shape} but the scores have {shape}{flipped}")


def as_indices(values: Array, below: int | None, what: str) -> npt.NDArray[np.int64]:
    """Indices from 0 up to `below` as int64; a boolean mask of length `below` becomes the indices it marks."""
    indices = to_numpy(values)
    if indices.ndim != 1:
        raise InputError(f"{what} must be a list of indices, not an array of shape {indices.shape}")
    if indices.dtype == np.bool_ and below is not None:
        if len(indices) != below:
            raise InputError(f"{what} is a mask of length {len(indices)} for {below} items")
        return np.flatnonzero(indices).astype(np.int64)
    if not len(indices):
        return np.empty(0, dtype=np.int64)
    if indices.dtype.kind not in "iu":
        raise InputError(f"{what} must hold whole numbers, not {indices.dtype}")
    wrong = (indices < 0) | (indices > np.iinfo(np.int64).max if below is None else indices >= below)
    if wrong.any():
        position = int(np.argmax(wrong))
        bounds = "it must be 0 or more and below 2⁶³" if below is None else f"there are {below}, counted from 0"
        raise InputError(f"{what}[{position}] is {indices[position]}; {bounds}")
    return indices.astype(np.int64)


def sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + e^−x), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(x, dtype=np.float64)))
