"""Measure scores against a truth, and compare two reports.

report = evaluate(scores, truth)    # a Report: every metric in both directions, with 95 % intervals
print(compare(report, other))       # a Comparison: differences with intervals and p-values
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.evaluation._compare import Comparison, Difference, compare
    from halation.evaluation._evaluate import evaluate
    from halation.evaluation._protocols import PROTOCOLS, Protocol, named_protocol
    from halation.evaluation._report import DIRECTIONS, Report, Results, is_derived, is_rank
    from halation.evaluation._resample import Queries, bootstrap
    from halation.evaluation._sources import Rankings
    from halation.evaluation._specs import default_metrics, people_metrics
    from halation.evaluation._trec import write_qrels, write_run

__all__ = [
    "DIRECTIONS",
    "PROTOCOLS",
    "Comparison",
    "Difference",
    "Protocol",
    "Queries",
    "Rankings",
    "Report",
    "Results",
    "bootstrap",
    "compare",
    "default_metrics",
    "evaluate",
    "is_derived",
    "is_rank",
    "named_protocol",
    "people_metrics",
    "write_qrels",
    "write_run",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "DIRECTIONS": "halation.evaluation._report",
            "PROTOCOLS": "halation.evaluation._protocols",
            "Comparison": "halation.evaluation._compare",
            "Difference": "halation.evaluation._compare",
            "Protocol": "halation.evaluation._protocols",
            "Queries": "halation.evaluation._resample",
            "Rankings": "halation.evaluation._sources",
            "Report": "halation.evaluation._report",
            "Results": "halation.evaluation._report",
            "bootstrap": "halation.evaluation._resample",
            "compare": "halation.evaluation._compare",
            "default_metrics": "halation.evaluation._specs",
            "evaluate": "halation.evaluation._evaluate",
            "is_derived": "halation.evaluation._report",
            "is_rank": "halation.evaluation._report",
            "named_protocol": "halation.evaluation._protocols",
            "people_metrics": "halation.evaluation._specs",
            "write_qrels": "halation.evaluation._trec",
            "write_run": "halation.evaluation._trec",
        },
    )
