"""Read a matrix some rows at a time, so that memory stays bounded, also for a transposed view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel

__all__ = ["contiguous", "row_blocks", "task_rows"]

_CELLS = 1 << 22  # per block: 16 MB of float32
_TASK_CELLS = 1 << 17  # per task of a thread: buffers of half a megabyte stay in the cache, and malloc keeps them
_ACROSS, _ALONG = 16, 64  # a tile of the transpose: few enough rows for the first-level cache


def row_blocks(rows: int, n: int) -> Iterator[slice]:
    """Slices that cover 0..rows, each of about four million cells."""
    step = max(1, _CELLS // n)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def task_rows(n: int) -> int:
    """The number of rows of n cells per task: at least 8, because narrow strips of a transposed view read slowly."""
    return min(max(8, _TASK_CELLS // n), 256)


def contiguous(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The rows, contiguous in memory; a copy only if they are not.

    A block of a transposed view is copied tile by tile, several times faster than NumPy does it.
    """
    if rows.flags.c_contiguous or rows.strides[0] != rows.itemsize:
        return np.ascontiguousarray(rows)
    out = np.empty(rows.shape, rows.dtype)
    _transpose(rows.T, out)
    return out


@kernel
def _transpose(source: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    n, rows = source.shape
    for left in range(0, n, _ALONG):
        for top in range(0, rows, _ACROSS):
            for row in range(top, min(top + _ACROSS, rows)):
                for column in range(left, min(left + _ALONG, n)):
                    out[row, column] = source[column, row]
