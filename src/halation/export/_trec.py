"""Export the rankings of a run as TREC files."""

from __future__ import annotations

import os
from pathlib import Path

from halation._progress import Progress, silent
from halation._storage import publish_folder
from halation.data import Direction
from halation.encoders import Model, load
from halation.evaluation import write_qrels, write_run

__all__ = ["export_trec"]


def export_trec(
    run: Model | str | os.PathLike[str],
    out: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    split: str = "test",
    depth: int = 1000,
    progress: Progress = silent,
) -> list[Path]:
    """Write i2t.run, i2t.qrels, t2i.run and t2i.qrels into the folder `out`, and return their paths.

    The run files hold the rankings of a split, `depth` items per query; the qrels files hold what is relevant.
    trec_eval, ranx and ir_measures read them.
    """
    model = run if isinstance(run, Model) else load(run)
    dataset = model.open_dataset(data, split)
    scores = model.scores(dataset, progress=progress)
    tag = "_".join(model.config.name.split()) or "halation"
    sides: tuple[Direction, Direction] = ("i2t", "t2i")
    with publish_folder(out) as folder:
        for side in sides:
            path = folder / f"{side}.run"
            write_run(path, scores, dataset.truth, side, depth=depth, tag=tag, progress=progress)
            write_qrels(dataset.truth, folder / f"{side}.qrels", side)
    return [Path(out) / f"{side}.{kind}" for side in sides for kind in ("run", "qrels")]
