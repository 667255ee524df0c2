"""Backend `exact`: every query against every point."""

from __future__ import annotations

from pathlib import Path

from halation.index._backend import Keys, Points
from halation.index._mapped import read_mapped, write_arrays
from halation.index._nearest import nearest
from halation.index._table import Table

__all__ = ["Exact"]

_FILE = "points.safetensors"


class Exact:
    """All distances by blocked matrix products: no approximation, nothing to tune, time in proportion to the size.

    >>> import numpy as np
    >>> backend = Exact()
    >>> backend.add(np.array([3, 5]), np.array([[0.0, 0.0], [1.0, 0.0]], np.float32))
    >>> backend.search(np.array([[0.9, 0.0]], np.float32), k=1)[0]
    array([[5]])
    """

    name = "exact"

    def __init__(self) -> None:
        self._table: Table | None = None

    def add(self, keys: Keys, points: Points) -> None:
        """Store points; see `Backend`."""
        if self._table is None:
            self._table = Table({"points": points.shape[1]})
        self._table.put(keys, {"points": points})

    def remove(self, keys: Keys) -> None:
        """Forget keys."""
        if self._table is not None:
            self._table.drop(keys)

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """The k nearest, all of them compared."""
        table = self._table or Table({"points": points.shape[1]})
        return nearest(((keys, columns["points"]) for keys, columns in table.blocks()), points, k)

    def save(self, folder: Path) -> None:
        """One safetensors file: keys and points."""
        write_arrays(folder / _FILE, (self._table or Table({"points": 0})).for_file())

    def load(self, folder: Path) -> None:
        """Map that file."""
        arrays = read_mapped(folder / _FILE)
        empty = arrays["points"].shape[1] == 0  # nothing was ever added, so no width is known
        self._table = None if empty else Table.over(arrays["keys"], {"points": arrays["points"]})
