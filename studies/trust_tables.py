"""The tables, the figure and the page of the trust study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halation._storage import publish_file
from studies.page import Table, join, paragraph, without_repeats
from studies.trust_measure import ANSWERS

__all__ = ["page", "reliability_figure", "tables"]

Row = Mapping[str, Any]
_ARROWS = {"t2i": "text → image", "i2t": "image → text"}
_BY = {"crowdflower": "crowd", "expert": "experts"}


def tables(runs: Sequence[Row], natural: Sequence[Row], scenes: Sequence[Row]) -> list[Table]:
    """Every table that there are numbers for."""
    shown: list[Table] = []
    if runs:
        shown += [_summary(runs), _people(runs), _steps(runs), _answers(runs), _sets(runs)]
    if runs or scenes:
        shown.append(_sigma(runs, scenes))
    if natural:
        shown.append(_natural(natural))
    if scenes:
        shown.append(_scenes(scenes))
    return shown


def _row(run: Row, judge: str, by: str, part: str, direction: str = "t2i") -> Row | None:
    wanted = {"judge": judge, "by": by, "part": part, "direction": direction}
    return next((row for row in run["reliability"] if wanted.items() <= row.items()), None)


def _gap(row: Row | None) -> str:
    return "–" if row is None else f"{row['gap']:.3f}"


def _summary(runs: Sequence[Row]) -> Table:
    rows = []
    for run in runs:
        gaps = [_gap(_row(run, judge, "crowdflower", "all")) for judge in ("annotations", "people")]
        natural, alone = (_gap(_row(run, "people", "crowdflower", part)) for part in ("natural", "unannotated"))
        experts = [_gap(_row(run, judge, "expert", "all")) for judge in ("annotations", "people-loose")]
        rows.append([run["recipe"], " → ".join(gaps), natural, alone, _gap(run["cross_fitted"]), " → ".join(experts)])
    return Table(
        "Do the probabilities hold?",
        ["run", "crowd", "natural share", "unannotated", "cross-fitted", "experts"],
        rows,
        "Text → image. The mean gap between the predicted probability and people's answers, in ten bins of equal mass; "
        "0 is best. Calibrated to annotations → calibrated to people: `people` for the crowd, `people-loose` for the "
        "experts. Natural share: own captions weighted as they occur among candidates, because people judged them "
        "twice as often. Unannotated: without own captions. Cross-fitted: unannotated too, and neither `people` nor "
        "the calibration saw the judged images.",
    )


def _people(runs: Sequence[Row]) -> Table:
    rows = [
        [
            f"{run['recipe']}, {_ARROWS[row['direction']]}",
            f"`{row['judge']}`",
            f"{_BY[row['by']]} ({row['pairs']:,})",
            f"{100 * row['predicted']:.1f} %",
            f"{100 * row['answered']:.1f} %",
            f"{row['gap']:.3f}",
            str(row["out_of_order"]),
        ]
        for run in runs
        for row in run["reliability"]
        if row["part"] == "unannotated" and (row["judge"], row["by"]) != ("people-loose", "crowdflower")
    ]
    return Table(
        "Predicted and judged, where nobody annotated",
        ["run", "calibrated to", "judged by (pairs)", "predicted", "judged", "gap", "out of order"],
        without_repeats(rows, 2),
        "Candidates among each query's 24 best whose caption was written for another image. Judged: the crowd's share "
        "of yes, or the share of pairs with an experts' median of 3 or more. Out of order: bins (of ten) that people "
        "accept less often than the bin below. Image → text is shown where people judged 1,000 candidates.",
    )


def _steps(runs: Sequence[Row]) -> Table:
    names = ("predicted", "people", "crowd", "experts")
    rows = [
        [run["recipe"], step["part"], f"{step['pairs']:,}", *(_share(step.get(name)) for name in names)]
        for run in runs
        for step in run["steps"]
    ]
    both = [step for run in runs for step in run["steps"] if "experts" in step]
    selection = _span([step["crowd"] - step["predicted"] for step in both])
    criterion = _span([step["experts"] - step["crowd"] for step in both])
    return Table(
        "Why the judges differ",
        ["run", "candidates", "pairs", "predicted", "`people`", "by the crowd", "by experts"],
        without_repeats(rows),
        "Means on unannotated candidates, text → image, calibrated to `people`. Where experts judged too, two steps "
        f"lead from the prediction to their answer. Selection: the crowd accepts these pairs {selection} points more "
        f"often than predicted. Criterion: experts accept {criterion} points more than the crowd, because they forgive "
        "minor errors. Two errors cancel in the crowd's row: `people`, which reads captions only, is too low where the "
        "model agrees with the caption, and own captions, which count as certain, raise the prediction for all others.",
    )


def _span(values: Sequence[float]) -> str:
    low, high = (f"{100 * each:.0f}" for each in (min(values, default=0), max(values, default=0)))
    return low if low == high else f"{low} to {high}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _answer_row(name: str, row: Row) -> list[str]:
    shares, precision = row["answers"]["shares"], row["answers"]["precision"]
    given = [" / ".join(f"{100 * share:.0f}" for share in shares[answer]) for answer in ("matches", "nothing")]
    return [name, f"{row['items']:,}", *given, _share(precision["matches"]), _share(precision["nothing"])]


_ANSWER_HEADER = ["run", "items", "“matches”, %", "“nothing”, %", "“matches” right", "“nothing” right"]


def _answers(runs: Sequence[Row]) -> Table:
    rows = [
        _answer_row(f"{run['recipe']}, {_ARROWS[row['direction']]}", row) for run in runs for row in run["galleries"]
    ]
    return Table(
        "The three answers",
        _ANSWER_HEADER,
        without_repeats(rows),
        "The share of test queries that get each answer, in four galleries: as it is / with a single match and nothing "
        "near it / without anything that `people` accepts with 0.2 / with 0.05. The others get “not sure”. Right: how "
        "often the answer is right where half of the queries have a match, without the single matches; 90 % was "
        "requested on dev. The runs were calibrated among 500 images and their 2,500 captions.",
    )


def _sets(runs: Sequence[Row]) -> Table:
    rows = []
    for run in runs:
        for row in run["galleries"]:
            sets = row["sets"]
            first = [f"{each['expected']:.2f} / {each['judged']:.2f}" for each in sets["first"] if each["k"] != 10]
            inside = sets["conformal"]
            covered = [_share(inside["coverage"]), f"{_share(inside['any'])} ({inside['median']:.0f})"]
            rows.append([f"{run['recipe']}, {_ARROWS[row['direction']]}", f"{row['items']:,}", *first, *covered])
    return Table(
        "Result sets",
        ["run", "items", "first 1", "first 5", "first 24", "coverage", "any match (size)"],
        without_repeats(rows),
        "Matches among the first k: expected / by `people`, per query. Sets are fitted on dev for 90 %. Coverage is "
        "that of a match drawn at random from the query's. Any match: sets that hold at least one (in brackets, the "
        "median number of items).",
    )


def _sigma(runs: Sequence[Row], scenes: Sequence[Row]) -> Table:
    skills = [(run["recipe"], direction, skill) for run in runs for direction, skill in run["skill"].items()]
    skills += [(one["recipe"], one["direction"], one["skill"]) for one in scenes]
    rows = [
        [f"{name}, {_ARROWS[direction]}", _share(skill["without"]), _share(skill["with"]), skill["chosen"]]
        for name, direction, skill in skills
        if skill["with"] is not None
    ]
    return Table(
        "Does σ help the probabilities?",
        ["run", "score", "score and σ", "chosen"],
        rows,
        "Skill over the base rate on held-out halves of dev, for the runs that have a σ. A less simple map has to gain "
        "0.2 points to be chosen.",
    )


def _natural(natural: Sequence[Row]) -> Table:
    rows = []
    for row in natural:
        for kind, label in (("yes", "a photograph fits"), ("no", "none fits")):
            total = sum(row[kind].values())
            name = f"{row['run']}, calibrated on {row['data']}"
            rows.append([name, label, *(f"{row[kind][each]} of {total}" for each in ANSWERS)])
    return Table(
        "Natural queries",
        ["run", "queries", "“matches”", "“not sure”", "“nothing”"],
        without_repeats(rows),
        f"Queries over {natural[0]['photos']} COCO photographs, written and judged before any model was run. The aim: "
        "“nothing” to at most 15 % of those that a photograph fits, and to at least 85 % of the others.",
    )


def _scenes(scenes: Sequence[Row]) -> Table:
    gaps = " and ".join(f"{one['ece']:.3f} ({_ARROWS[one['direction']]})" for one in scenes)
    return Table(
        "Drawn scenes, where every match is known",
        _ANSWER_HEADER,
        [_answer_row(f"{one['recipe']}, {_ARROWS[one['direction']]}", one) for one in scenes],
        f"Calibrated to the exact truth. The calibration error (ECE) of the probabilities is {gaps}; half of the "
        "queries have no match. The third and fourth gallery are the same here: a match is true or false.",
    )


def page(runs: Sequence[Row], natural: Sequence[Row], scenes: Sequence[Row]) -> str:
    """The page docs/studies/trust.md."""
    parts = [
        "# Can you trust a run?",
        "Calibration promises three things: match probabilities that hold by people's judgement, “matches” and "
        "“nothing” that are right nine times in ten, and result sets that hold a match as often as they claim. Here "
        "each is checked on test images. [How it works](../trust.md).",
        "Flickr8k's test images were judged by a crowd (47,288 pairs, yes or no) and by experts (5,822 pairs, 1 to 4). "
        "The runs are calibrated on dev images. `people` was itself fitted on the judgements of the test images: six "
        "numbers, and the column “cross-fitted” shows what that is worth.",
        "Made by `python -m studies trust --data FLICKR8K --run RUN … --natural RUN … --photos PHOTOS --scenes SCENES "
        "--scenes-run RUN --out docs/studies`; the numbers are in `trust.json`.",
    ]
    figure = "![Predicted probability against people's answers, per run](trust.png)" if runs else ""
    first, *rest = (table.markdown() for table in tables(runs, natural, scenes))
    return join([*map(paragraph, parts), first, figure, *rest])


def reliability_figure(runs: Sequence[Row], path: Path) -> None:
    """Write a PNG with a panel per run: people's answers by predicted probability, all judged candidates."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = (
        ("annotations", "crowdflower", "x--", "#b04a4a", "calibrated to annotations, judged by the crowd"),
        ("people", "crowdflower", "o-", "#2f6f9f", "to people, by the crowd"),
        ("people-loose", "expert", "s-", "#5a8f4e", "to people-loose, by experts"),
    )
    figure = Figure(figsize=(3.6 * len(runs), 4.3), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    (panels,) = figure.subplots(1, len(runs), squeeze=False, sharey=True)
    for axes, run in zip(panels, runs, strict=True):
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":")
        for judge, by, style, colour, label in lines:
            if row := _row(run, judge, by, "all"):
                axes.plot(*row["bins"], style, color=colour, markersize=4.5, linewidth=1.2, label=label)
        axes.set(title=run["recipe"], xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability")
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("accepted by people")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    with publish_file(path) as temporary:
        figure.savefig(temporary, format="png")
