"""Which metric ranks models as people do?

Every run scores Flickr8k's test split. How well do its scores agree with people's judgements of pairs, and which metric
orders the runs in the same way? Agreement is Kendall's τ: of all pairs together, and within an image's candidates.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from halation._arrays import FloatArray
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation.data import Judgements, read_flickr8k_judgements
from halation.encoders import load
from halation.evaluation import Report, evaluate
from studies.agreement import together, within
from studies.page import Table, join, paragraph

__all__ = ["RankingStudy", "ranking"]

METRICS = (
    "R@1", "R@10", "R-sum", "R-P", "R-P(people)", "mAP@R(people)", "nDCG@10(people)",
    "ASP(tfidf)", "ASP(cider)", "ASP(rouge-l)", "ASP(sentence)", "ASP(people)",
)  # fmt: skip
PEOPLE = ("Expert τ_c", "Expert, within images", "Crowd τ_b", "Crowd, within images")
_DRAWS = 1000


@dataclass(frozen=True)
class RankingStudy:
    """One row of numbers per run: every metric (mean of both directions) and every agreement with people."""

    runs: list[dict[str, float | str]]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> RankingStudy:
        """The study as its ranking.json has it."""
        return cls(**read_json(Path(path)))

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self._tables())

    def to_markdown(self) -> str:
        """The page docs/studies/ranking.md."""
        best = {
            judge: max(METRICS, key=lambda metric: self.correlation(metric, judge)) for judge in (PEOPLE[1], PEOPLE[3])
        }
        parts = [
            "# Which metric ranks models as people do?",
            f"{len(self.runs)} models were trained on Flickr8k. Each scores the pairs that people judged on the test "
            "split. The table says how well each metric orders the models by that agreement: Spearman's correlation "
            "over the models, with a 95 % interval that draws models again.",
            f"By the experts' order within an image's candidates the best metric is {best[PEOPLE[1]]}, by the crowd's "
            f"{best[PEOPLE[3]]}. Recall says least: it looks for the one annotated caption, and people judged "
            "the others. Many of the models are near relatives, so read large differences only.",
            "Made by `python -m studies ranking --data flickr8k --runs FOLDER --out docs/studies`; the numbers of "
            "every model are in `ranking.json`.",
        ]
        return join([*map(paragraph, parts), *(table.markdown() for table in self._tables())])

    def correlation(self, metric: str, judge: str) -> float:
        """Spearman's correlation of a metric with an agreement over the runs."""
        return _spearman(self._column(metric), self._column(judge))

    def _column(self, name: str) -> FloatArray:
        return np.array([float(row[name]) for row in self.runs])

    def _interval(self, metric: str, judge: str) -> tuple[float, float]:
        a, b, generator = self._column(metric), self._column(judge), np.random.default_rng(0)
        drawn = [generator.integers(len(a), size=len(a)) for _ in range(_DRAWS)]
        values = [_spearman(a[rows], b[rows]) for rows in drawn if np.ptp(a[rows]) and np.ptp(b[rows])]
        low, high = np.percentile(values, (2.5, 97.5))
        return float(low), float(high)

    def _tables(self) -> list[Table]:
        rows = []
        for metric in METRICS:
            cells = []
            for judge in PEOPLE:
                low, high = self._interval(metric, judge)
                cells.append(f"{self.correlation(metric, judge):+.2f} [{low:+.2f}, {high:+.2f}]")
            rows.append([metric, *cells])
        note = (
            "R@1 and the like are means of both directions. The first and third column compare all judged pairs "
            "together, the others the candidates of one image, as a search does."
        )
        return [Table("Metrics against people, over models", ["metric", *PEOPLE], rows, note)]

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ranking.md and ranking.json into `folder`; numbers only."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / "ranking.md", target / "ranking.json"]
        write_text(paths[0], self.to_markdown())
        write_text(paths[1], json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")
        return paths


def ranking(
    data: str | os.PathLike[str], runs: Sequence[str | os.PathLike[str]], *, progress: Progress = silent
) -> RankingStudy:
    """Measure every run on the test split, and how well its scores agree with people."""
    judged = [read_flickr8k_judgements(data, "expert"), read_flickr8k_judgements(data, "crowdflower")]
    rows: list[dict[str, float | str]] = []
    for done, run in enumerate(runs):
        progress("models", done, len(runs))
        rows.append({"run": Path(run).name, **_measure(run, data, judged)})
    progress("models", len(runs), len(runs))
    return RankingStudy(rows)


def _measure(
    run: str | os.PathLike[str], data: str | os.PathLike[str], judged: Sequence[Judgements]
) -> dict[str, float]:
    model = load(run)
    dataset = model.open_dataset(data, "test")
    scores = model.scores(dataset)
    names = [name for name in METRICS if name != "R-sum"]
    report = evaluate(scores, dataset.truth, [*dict.fromkeys(["R@1", "R@5", "R@10", *names])], resamples=0)
    values = {name: _both(report, name) for name in names} | {"R-sum": report.rsum}
    matrix = np.asarray(scores)
    for kind, pairs in zip(("Expert τ_c", "Crowd τ_b"), judged, strict=True):
        assert pairs.base.captions == dataset.truth.captions
        of_pairs = matrix[pairs.pairs[:, 0], pairs.pairs[:, 1]].astype(np.float64)
        values[kind] = together(of_pairs, pairs.scores)
        values[f"{kind.split()[0]}, within images"] = float(100 * within(of_pairs, pairs).mean())
    return {name: round(value, 3) for name, value in values.items()}


def _both(report: Report, name: str) -> float:
    return (report.i2t[name] + report.t2i[name]) / 2


def _spearman(a: FloatArray, b: FloatArray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)
