"""Ragged arrays: row r is `item[start[r] : start[r + 1]]`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["places_of", "starts"]


def starts(sizes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Where each row begins, and the end of the last.

    >>> starts(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    start = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=start[1:])
    return start


def places_of(
    start: npt.NDArray[np.int64], rows: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(starts, places) of the chosen rows laid one after the other, in their order, repeats allowed.

    >>> places_of(np.array([0, 2, 2, 5]), np.array([2, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    begin = start[rows]
    new = starts(start[rows + 1] - begin)
    return new, np.arange(new[-1]) + np.repeat(begin - new[:-1], np.diff(new))
