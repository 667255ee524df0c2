"""Scores and truth in, a report out; two reports in, a verdict out."""

from __future__ import annotations

from halation.evaluation._compare import Comparison, Difference, compare
from halation.evaluation._evaluate import evaluate
from halation.evaluation._protocols import PROTOCOLS, Protocol, named_protocol
from halation.evaluation._report import Report, Results
from halation.evaluation._sources import Rankings
from halation.evaluation._trec import write_run

__all__ = [
    "PROTOCOLS",
    "Comparison",
    "Difference",
    "Protocol",
    "Rankings",
    "Report",
    "Results",
    "compare",
    "evaluate",
    "named_protocol",
    "write_run",
]
