"""Pages a person reads: what a run finds and misses, where the measures disagree, how far to believe it.

    report_run("runs/pcme_daa", "flickr8k", "report", against="runs/pcme")      # report/index.html, one page

`gather_facts` gives all that the page says as plain numbers and references to items, for other front ends;
`write_page` makes the page of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.report._facts import Facts
    from halation.report._gather import gather_facts
    from halation.report._run import report_run, write_page

__all__ = ["Facts", "gather_facts", "report_run", "write_page"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Facts": "halation.report._facts",
        "gather_facts": "halation.report._gather",
        "report_run": "halation.report._run",
        "write_page": "halation.report._run",
    },
)
