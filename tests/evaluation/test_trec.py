"""Run and qrels files that other people's tools can read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halation import InputError, metrics
from halation.data import Truth
from halation.evaluation import write_qrels, write_run

World = tuple[np.ndarray, Truth]


@pytest.fixture(params=["i2t", "t2i"])
def files(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> tuple[str, Path, Path]:
    scores, truth = world
    run, qrels = tmp_path / "x.run", tmp_path / "x.qrels"
    write_run(run, scores, truth, request.param, depth=None)
    write_qrels(truth, qrels, request.param)
    return request.param, run, qrels


def expected(world: World, direction: str) -> tuple[float, float]:
    scores, relevant = world[0], world[1].positives("i2t")
    if direction == "t2i":
        scores, relevant = scores.T, relevant.T
    return float(metrics.average_precision(scores, relevant).mean()), float(
        metrics.recall_at(scores, relevant, 10).mean()
    )


def test_ranx_reads_the_ranking(world: World, files: tuple[str, Path, Path]) -> None:
    ranx = pytest.importorskip("ranx")
    direction, run, qrels = files
    got = ranx.evaluate(
        ranx.Qrels.from_file(str(qrels), kind="trec"),
        ranx.Run.from_file(str(run), kind="trec"),
        ["map", "recall@10"],
        make_comparable=True,
    )
    assert (got["map"], got["recall@10"]) == pytest.approx(expected(world, direction), abs=1e-9)


def test_ir_measures_reads_the_ranking(world: World, files: tuple[str, Path, Path]) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    direction, run, qrels = files
    measures = [ir_measures.AP, ir_measures.R @ 10]
    got = ir_measures.calc_aggregate(
        measures, ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
    )
    assert [got[measure] for measure in measures] == pytest.approx(expected(world, direction), abs=1e-9)


def test_a_run_is_cut_at_its_depth_and_ranked_best_first(world: World, tmp_path: Path) -> None:
    write_run(tmp_path / "x.run", *world, "i2t", depth=7, tag="mine")
    rows = [line.split() for line in (tmp_path / "x.run").read_text().splitlines()]
    assert len(rows) == 7 * 60
    assert [row[3] for row in rows[:7]] == list("1234567")
    values = [float(row[4]) for row in rows[:7]]
    assert values == sorted(values, reverse=True)
    assert {row[5] for row in rows} == {"mine"}


def test_bad_arguments_leave_no_file(world: World, tmp_path: Path) -> None:
    for wrong in ({"direction": "images"}, {"depth": 0}, {"tag": "two words"}):
        with pytest.raises(InputError):
            write_run(tmp_path / "x.run", *world, **wrong)
    with pytest.raises(InputError, match=r"the scores are \(60, 299\)"):
        write_run(tmp_path / "x.run", world[0][:, 1:], world[1])
    assert not list(tmp_path.iterdir())
