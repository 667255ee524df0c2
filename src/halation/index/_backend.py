"""What an index stands on: five methods over points and their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from halation._errors import HalationError

__all__ = ["Backend", "BackendUnavailable", "Keys", "Points", "Settling"]

Keys = npt.NDArray[np.int64]
Points = npt.NDArray[np.float32]


@runtime_checkable
class Backend(Protocol):
    """Points under keys, and which of them are nearest. Anything with these five methods serves.

    `name` is what a saved index calls it; one of your own is handed to `Index.load` again.
    """

    name: str

    def add(self, keys: Keys, points: Points) -> None:
        """Store points (n, d) under keys (n,), each once; a key that is there already gets the new point."""
        ...

    def remove(self, keys: Keys) -> None:
        """Forget keys (n,); a key that is not there is no error."""
        ...

    def search(self, points: Points, k: int) -> tuple[Keys, Points]:
        """Keys and squared L2 distances (q, k) of the k nearest, nearest first; −1 and inf where there are fewer."""
        ...

    def save(self, folder: Path) -> None:
        """Write what `load` needs into an empty folder."""
        ...

    def load(self, folder: Path) -> None:
        """Hold what was saved in the folder; what was held before is forgotten."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A backend that wants to be told when a batch is in, to choose and tune its structure."""

    @property
    def unsettled(self) -> bool:
        """Whether so much was added that it should be tuned (again)."""
        ...

    def settle(self, queries: Points) -> dict[str, Any]:
        """Choose and tune, on points such as queries will be; says what was chosen and the recall measured."""
        ...


class BackendUnavailable(HalationError, ConnectionError):
    """A server that should hold the points does not answer."""
