"""Pages a person reads: what a run finds and misses, where the measures disagree, how far to believe it.

    report_run("runs/pcme_daa", "flickr8k", "report", against="runs/pcme")      # report/index.html, one page

`gather_facts` gives all that the page says as plain numbers and references to items, for other front ends;
`write_page` makes the page of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.report._explain import Explainer, explain, explain_hit
    from halation.report._explain_influence import Unwanted
    from halation.report._explanation import Attention, Explanation, Joined, Part
    from halation.report._facts import Facts
    from halation.report._gather import gather_facts
    from halation.report._run import report_run, write_page

__all__ = [
    "Attention",
    "Explainer",
    "Explanation",
    "Facts",
    "Joined",
    "Part",
    "Unwanted",
    "explain",
    "explain_hit",
    "gather_facts",
    "report_run",
    "write_page",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "Attention": "halation.report._explanation",
            "Explainer": "halation.report._explain",
            "Explanation": "halation.report._explanation",
            "Facts": "halation.report._facts",
            "Joined": "halation.report._explanation",
            "Part": "halation.report._explanation",
            "Unwanted": "halation.report._explain_influence",
            "explain": "halation.report._explain",
            "explain_hit": "halation.report._explain",
            "gather_facts": "halation.report._gather",
            "report_run": "halation.report._run",
            "write_page": "halation.report._run",
        },
    )
