"""What the numbers say, in words."""

from __future__ import annotations

from halation._web import signed
from halation.evaluation import Comparison, Difference, Report
from halation.metrics import chance_asp
from halation.report._facts import Facts

__all__ = ["Judgement", "judge", "lead", "verdict"]

Judgement = str
"""better, worse, or same: as far as the split can tell."""

_ASKS: tuple[tuple[str, str, dict[Judgement, str]], ...] = (  # the measure, the question, the answers
    ("ASP(tfidf)", "It ranks by meaning", {"better": "better", "worse": "worse", "same": "about as well"}),
    ("R@1", "It has a right answer first", {"better": "more often", "worse": "less often", "same": "about as often"}),
    ("R-P", "It finds all that is right", {"better": "better", "worse": "worse", "same": "about as well"}),
)


def judge(difference: Difference, *, smaller_is_better: bool = False) -> Judgement:
    """better or worse where the interval leaves 0 out and p < 0.05, otherwise same."""
    sure = difference.p < 0.05 and (difference.low > 0 or difference.high < 0)
    if not sure:
        return "same"
    return "better" if (difference.difference > 0) != smaller_is_better else "worse"


def verdict(comparison: Comparison) -> list[str]:
    """A sentence for every question; run − other, image → text first."""
    sentences = []
    for metric, question, answers in _ASKS:
        rows = [rows[metric] for rows in (comparison.i2t, comparison.t2i) if metric in rows]
        if rows:
            sentences.append(f"{question} {_answer(answers, rows)}: {_points(metric, rows)}.")
    return sentences


def _answer(answers: dict[Judgement, str], rows: list[Difference]) -> str:
    found = [answers[judge(row)] for row in rows]
    if len(set(found)) == 1:
        return found[0]
    ways = ("from image to text", "from text to image")
    return " and ".join(f"{one} {way}" for one, way in zip(found, ways, strict=True))


def _points(metric: str, rows: list[Difference]) -> str:
    numbers = " and ".join(signed(row.difference) for row in rows)
    open_ = all(judge(row) == "same" for row in rows)
    name = metric.replace("(tfidf)", "").replace("-", "\u2011")  # a hyphen that does not break the line
    return f"{name} {numbers} points{', which this split cannot tell from 0' if open_ else ''}"


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
    return f"By meaning, taken as tf-idf between captions, the whole ranking scores an ASP of {' and '.join(said)}."
