"""What the numbers say, in words."""

from __future__ import annotations

from halation.evaluation import Comparison, Difference, Report
from halation.metrics import chance_asp
from halation.report._facts import Facts

__all__ = ["Judgement", "judge", "lead", "verdict"]

Judgement = str
"""better, worse, or same: as far as the split can tell."""

_ASKS = (  # what a reader wants to know, the measure that answers it
    ("puts meaning in order", "ASP(tfidf)"),
    ("has a right answer first", "R@1"),
    ("finds all that is right", "R-P"),
)
_WORDS = {"better": "better", "worse": "worse", "same": "as far as this split can tell, no differently"}


def judge(difference: Difference, *, smaller_is_better: bool = False) -> Judgement:
    """better or worse where the interval leaves 0 out and p < 0.05, otherwise same."""
    sure = difference.p < 0.05 and (difference.low > 0 or difference.high < 0)
    if not sure:
        return "same"
    return "better" if (difference.difference > 0) != smaller_is_better else "worse"


def verdict(comparison: Comparison) -> list[str]:
    """A sentence for every question; run − other, image → text first."""
    sentences = []
    for words, metric in _ASKS:
        rows = [rows[metric] for rows in (comparison.i2t, comparison.t2i) if metric in rows]
        if rows:
            sentences.append(_sentence(words, metric.replace("(tfidf)", ""), rows))
    return sentences


def _sentence(words: str, metric: str, rows: list[Difference]) -> str:
    found = [judge(row) for row in rows]
    numbers = " and ".join(f"{row.difference:+.1f}".replace("-", "−") for row in rows)
    if len(set(found)) == 1:
        manner = _WORDS[found[0]]
    else:
        ways = ("from image to text", "from text to image")
        manner = ", ".join(f"{_WORDS[one]} {way}" for one, way in zip(found, ways, strict=True))
    return f"It {words} {manner} ({metric} {numbers} points)."


def lead(facts: Facts) -> str:
    """What was measured, in a sentence of its own."""
    report = facts.report
    return (
        f"Asked with a picture, the first caption is right {report.i2t['R@1']:.1f} % of the time; asked with a "
        f"caption, the first picture is right {report.t2i['R@1']:.1f} %. {_meaning(report)}"
    )


def _meaning(report: Report) -> str:
    said = []
    for direction, way in (("i2t", "captions"), ("t2i", "pictures")):
        results = report.results(direction)
        if "ASP(tfidf)" not in results:
            return ""
        chance = 100 * chance_asp(
            round(sum(report.about["gallery"][direction]) / len(report.about["gallery"][direction]))
        )
        ceiling = results["ASP(tfidf) ceiling"]
        said.append(f"{results['ASP(tfidf)']:.1f} for {way} (chance {chance:.0f}, ceiling {ceiling:.0f})")
    return f"By meaning the whole ranking scores an ASP of {' and '.join(said)}."
