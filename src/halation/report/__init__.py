"""Pages for people: the report of a run, and the explanation of one answer.

    report_run("runs/pcme_daa", "flickr8k", "report", against="runs/pcme")      # report/index.html, one page

    print(explain("runs/pcme", "photos/p03.png", "a red circle on the left"))   # also .to_html("why.html")

`gather_facts` gives everything the report shows as plain numbers, for other front ends; `write_page` makes the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.report._explain import Explainer, explain, explain_hit
    from halation.report._explanation import Attention, Explanation, Part
    from halation.report._facts import Facts
    from halation.report._gather_facts import gather_facts
    from halation.report._influence import ExplanationCancelled
    from halation.report._page import report_run, write_page

__all__ = [
    "Attention",
    "Explainer",
    "Explanation",
    "ExplanationCancelled",
    "Facts",
    "Part",
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
            "Part": "halation.report._explanation",
            "ExplanationCancelled": "halation.report._influence",
            "explain": "halation.report._explain",
            "explain_hit": "halation.report._explain",
            "gather_facts": "halation.report._gather_facts",
            "report_run": "halation.report._page",
            "write_page": "halation.report._page",
        },
    )
