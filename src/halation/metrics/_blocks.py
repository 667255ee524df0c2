"""A matrix, some rows at a time: memory stays bounded, also where the rows are columns of a big matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._parallel import kernel

__all__ = ["contiguous", "row_blocks", "task_rows"]

_CELLS = 1 << 22  # of a block: 16 MB of float32
_TASK_CELLS = 1 << 17  # of a thread's task: buffers of half a megabyte stay in the cache, and malloc keeps them
_ACROSS, _ALONG = 16, 64  # a tile of the transpose: few enough rows for the first-level cache


def row_blocks(rows: int, n: int) -> Iterator[slice]:
    """Slices that cover 0..rows, each some four million cells of rows of n."""
    step = max(1, _CELLS // n)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def task_rows(n: int) -> int:
    """How many rows of n one thread takes at a time; not so few that a transposed view is read in crumbs."""
    return min(max(8, _TASK_CELLS // n), 256)


def contiguous(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`rows` with each row side by side in memory: itself if it is so already.

    A block of a transposed view goes tile by tile, several times faster than NumPy's element by element.
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
