"""The questions behind the metrics, answered on real annotations: each study returns a result to print and write."""

from __future__ import annotations

from halation.studies._daa import DaaStudy, daa
from halation.studies._humans import HumansStudy, humans
from halation.studies._positives import PositivesStudy, positives
from halation.studies._trust import TrustStudy, trust

__all__ = ["DaaStudy", "HumansStudy", "PositivesStudy", "TrustStudy", "daa", "humans", "positives", "trust"]
