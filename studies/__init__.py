"""Studies: each answers a question behind the metrics on real annotations, with a result to print and write."""

from __future__ import annotations

from studies.daa import DaaStudy, daa
from studies.humans import HumansStudy, humans
from studies.people import PeopleStudy, people
from studies.positives import PositivesStudy, positives
from studies.ranking import RankingStudy, ranking
from studies.trust import TrustStudy, trust

__all__ = [
    "DaaStudy",
    "HumansStudy",
    "PeopleStudy",
    "PositivesStudy",
    "RankingStudy",
    "TrustStudy",
    "daa",
    "humans",
    "people",
    "positives",
    "ranking",
    "trust",
]
