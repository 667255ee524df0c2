"""A run's calibration, where it has one that is its own."""

from __future__ import annotations

from pathlib import Path

from halation._errors import InputError
from halation.calibration import Calibrators
from halation.encoders import RunFolder
from halation.search._verdict import CANNOT_TELL

__all__ = ["CALIBRATION", "read_calibrators"]

CALIBRATION = "calibration.json"


def read_calibrators(run: Path, mark: str | None = None) -> tuple[Calibrators | None, list[str]]:
    """The run's calibration and what to know of it; one that does not fit the run is no reason not to search.

    mark: the run's fingerprint, where it is known already.
    """
    path = run / CALIBRATION
    if not path.is_file():
        return None, []
    try:
        calibrators = Calibrators.load(path, mark or RunFolder(run).fingerprint())
    except InputError as error:
        return None, [f"there are no probabilities: {error.render(lambda file: file.name)}"]
    return calibrators, [] if calibrators.t2i.can_abstain() else [CANNOT_TELL]
