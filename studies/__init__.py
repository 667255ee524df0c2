"""Studies: each answers a question behind the metrics on real annotations, with a result to print and write."""

from __future__ import annotations

from studies.daa import DaaStudy, daa
from studies.humans import HumansStudy, humans
from studies.people import PeopleStudy, people
from studies.positives import PositivesStudy, positives
from studies.trust import TrustStudy, trust

__all__ = [
    "DaaStudy",
    "HumansStudy",
    "PeopleStudy",
    "PositivesStudy",
    "TrustStudy",
    "daa",
    "humans",
    "people",
    "positives",
    "trust",
]
