"""Can you trust a run? Its probabilities, its three answers and its result sets, judged by people.

Each run is calibrated on its dev split and measured on the test split of Flickr8k, where a crowd and experts judged
pairs of images and captions (Hodosh et al., JAIR 2013). Natural queries over photographs and drawn scenes, where every
match is known, are measured where you give them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from halation import InputError
from halation._arrays import BoolArray, FloatArray
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation.calibration import Calibrator, JudgedScores
from halation.data import Direction, Judgements, open_dataset, read_flickr8k_judgements
from halation.encoders import load
from halation.search import calibrate_run, calibration_split, judge_run, judged_truth
from halation.training import read_recipe
from studies.jobs import Log, digest, ignore
from studies.trust_measure import EXPERTS, cross_fitted, exact, galleries, natural, reliable, steps
from studies.trust_tables import page, reliability_figure, tables

__all__ = ["NATURAL_QUERIES", "TrustStudy", "trust"]

NATURAL_QUERIES = Path(__file__).resolve().parents[1] / "tests" / "search" / "natural_queries.json"

_JUDGES = ("people", "people-loose", "annotations")
_ENOUGH = 1000  # judged candidates that image → text needs; text → image is always measured
Folder = str | os.PathLike[str]
Row = dict[str, Any]


@dataclass(eq=False)
class TrustStudy:
    """The measures of each run; see `studies.trust_measure` for the rows."""

    runs: list[Row] = field(default_factory=list)
    natural: list[Row] = field(default_factory=list)
    scenes: list[Row] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in tables(self.runs, self.natural, self.scenes))

    def to_markdown(self) -> str:
        """The page docs/studies/trust.md."""
        return page(self.runs, self.natural, self.scenes)

    @classmethod
    def read(cls, path: Folder) -> TrustStudy:
        """The study as its trust.json has it."""
        return cls(**read_json(Path(path)))

    def write(self, folder: Folder) -> list[Path]:
        """Write trust.md, trust.json and trust.png into `folder`; numbers only, no captions."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / "trust.md", target / "trust.json"]
        write_text(paths[0], self.to_markdown())
        write_text(paths[1], json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        if self.runs:
            paths.append(target / "trust.png")
            reliability_figure(self.runs, paths[-1])
        return paths


def trust(
    data: Folder | None = None,
    runs: Sequence[Folder] = (),
    *,
    natural_runs: Sequence[Folder] = (),
    photos: Folder | None = None,
    queries: Folder = NATURAL_QUERIES,
    scenes: Folder | None = None,
    scenes_run: Folder | None = None,
    progress: Progress = silent,
    log: Log = ignore,
) -> TrustStudy:
    """Measure runs on Flickr8k (`data`), calibrated runs by natural queries over `photos`, and a run on scenes."""
    groups = {
        "--data with --run": (data, runs),
        "--photos with --natural": (photos, natural_runs),
        "--scenes with --scenes-run": (scenes, scenes_run),
    }
    for names, (first, second) in groups.items():
        if bool(first) != bool(second):
            raise InputError(f"give {names}: one needs the other")
    if not any(first for first, _ in groups.values()):
        raise InputError(f"nothing to measure; give {', '.join(groups)}")
    study = TrustStudy()
    if data is not None:
        truth_of = cache(lambda split, judge: judged_truth(open_dataset(data, split), judge, progress=progress))
        judged = {kind: read_flickr8k_judgements(data, kind) for kind in ("crowdflower", "expert")}
        for run in runs:
            study.runs.append(_measure_run(Path(run), data, judged, truth_of, progress))
            log(f"measured {run}")
    if photos is not None:
        study.natural = [natural(Path(run), Path(photos), Path(queries)) for run in natural_runs]
    if scenes is not None and scenes_run is not None:
        calibrators = calibrate_run(scenes_run, scenes, judge="exact", write=False, progress=progress).calibrators
        model = load(scenes_run)
        rows = exact(model, model.open_dataset(scenes, "test"), {"t2i": calibrators.t2i, "i2t": calibrators.i2t})
        study.scenes = [
            _about(Path(scenes_run)) | row | {"skill": _skills(calibrators[row["direction"]])} for row in rows
        ]
    return study


def _about(run: Path) -> Row:
    """What you need to train the run again."""
    recipe = read_recipe(load(run).folder)
    return {"recipe": recipe.name, "seed": recipe.train.seed, "digest": digest(recipe)}


def _measure_run(
    run: Path,
    data: Folder,
    judged: Mapping[str, Judgements],
    truth_of: Callable[[str, str], FloatArray | BoolArray],
    progress: Progress,
) -> Row:
    """Every measure of one run on Flickr8k."""
    model = load(run)
    dev, _ = calibration_split(model, data)
    test = model.open_dataset(data, "test")
    if test.truth.caption_ids != judged["expert"].base.caption_ids:
        raise InputError("has another test split than people judged", path=Path(data))
    fitted = {
        name: calibrate_run(run, data, judge=name, write=False, progress=progress).calibrators for name in _JUDGES
    }
    on_test = judge_run(model, test, truth_of("test", "people"), progress=progress)
    on_dev = judge_run(model, dev, dev.truth.positives("i2t"), progress=progress)["t2i"]
    directions: tuple[Direction, Direction] = ("t2i", "i2t")
    people = fitted["people"]
    reliability = []
    for direction in directions:
        for name in _JUDGES:
            rows = _reliability(fitted[name][direction], on_test[direction], judged)
            reliability += [{"direction": direction, "judge": name, **row} for row in rows]
    return _about(run) | {
        "fitted_on": people.data,
        "reliability": reliability,
        "cross_fitted": cross_fitted(dev, on_dev, on_test["t2i"], judged["crowdflower"]),
        "steps": steps(people.t2i, on_test["t2i"], judged["crowdflower"], judged["expert"]),
        "galleries": [
            {"direction": each, **row} for each in directions for row in galleries(people[each], on_test[each])
        ],
        "skill": {each: _skills(people[each]) for each in directions},
    }


def _reliability(calibrator: Calibrator, test: JudgedScores, judged: Mapping[str, Judgements]) -> list[Row]:
    """The crowd's share of yes and the experts' median ≥ 3, each for every part of the judged candidates."""
    answers = {
        "crowdflower": judged["crowdflower"].scores[:, 0],
        "expert": (np.median(judged["expert"].scores, axis=1) >= EXPERTS).astype(np.float64),
    }
    rows = []
    for kind, values in answers.items():
        measured = [
            reliable(calibrator, test, judged[kind], values, part) for part in ("all", "natural", "unannotated")
        ]
        if test.direction == "t2i" or (measured[0] is not None and measured[0]["pairs"] >= _ENOUGH):
            rows += [{"by": kind, **row} for row in measured if row is not None]
    return rows


def _skills(calibrator: Calibrator) -> Row:
    """Skill of the maps with and without σ on held-out dev images, and the chosen one."""
    skills = {row.name: row.skill for row in calibrator.qualities}
    return {"chosen": calibrator.chosen, "without": skills["score"], "with": skills.get("score and σ")}
