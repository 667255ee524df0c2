"""Search: a run and its data, ready for questions.

trusts = calibrate_run("runs/pcme", "flickr8k")       # writes calibration.json and reliability.png into the run
"""

from __future__ import annotations

from halation.search._calibrate import Calibrated, calibrate_run
from halation.search._fingerprint import fingerprint
from halation.search._judge import NEAR, judge

__all__ = ["NEAR", "Calibrated", "calibrate_run", "fingerprint", "judge"]
