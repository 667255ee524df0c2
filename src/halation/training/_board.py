"""The run's numbers for TensorBoard, where it is installed."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Board"]


class Board:
    """Scalars into `tensorboard/` of a run's folder; does nothing without a folder, or the package `tensorboard`."""

    def __init__(self, folder: Path | None, start: int = 0) -> None:
        self._writer: Any = None
        if folder is not None and importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=start or None)

    def add(self, group: str, values: Mapping[str, float], step: int) -> None:
        """One point of each curve."""
        for name, value in values.items() if self._writer is not None else ():
            if math.isfinite(value):
                self._writer.add_scalar(f"{group}/{name}", value, step)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
