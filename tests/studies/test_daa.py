"""The DAA study: its plan, its tables, and that nothing is run twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halation._errors import InputError
from halation.evaluation import evaluate
from halation.training import read_recipe
from runs import write_run
from studies.daa import collect, daa, jobs
from studies.daa_tables import difference, trials_tables, unconfirmed
from studies.jobs import METRICS, Job, digest, finished, rsum_by_image, run_job
from worlds import sample_scores, sample_truth


def made_up(seed: int, shift: int = 0, clouds: bool = False) -> dict[str, Any]:
    """What a run's file says, with numbers out of the air."""
    generator = np.random.default_rng(seed)
    side = dict.fromkeys(METRICS, 50.0 + seed + shift)
    hits = np.clip(generator.integers(0, 30, size=50) + shift, 0, 30)
    fifths = [50.0, 40.0, 30.0, 20.0, 10.0] if clouds else None
    return {
        "recipe": "flickr8k_infonce", "settings": [], "seed": seed, "command": "halation train …",
        "seconds": 60.0 + seed, "parameters": 1_234_567, "dev": {}, "test": {
            "i2t": side, "t2i": side, "rsum": 20 * float(hits.mean()), "expert_tau_c": 40.0, "expert_within": 50.0,
            "rsum_by_image": hits.tolist(), "fifths": {"images": fifths, "captions": fifths},
        },
    }  # fmt: skip


def write(folder: Path, job: Job, result: dict[str, Any]) -> None:
    text = json.dumps(result | {"digest": digest(job.read())})
    (folder / "results" / f"{job.name}.json").write_text(text)


def test_every_job_has_a_recipe_and_a_name_of_its_own() -> None:
    names = [job.name for job in jobs()]
    assert len(set(names)) == len(names) and {job.name for job in jobs(quick=True)} <= set(names)
    for job in jobs():
        assert read_recipe(job.recipe, job.settings).name == job.recipe
        assert f"--set train.seed={job.seed}" in job.command


def test_what_images_add_makes_up_the_rsum() -> None:
    truth = sample_truth(images=40)
    report = evaluate(sample_scores(truth, 0.5, seed=1), truth, ["R@1", "R@5", "R@10"], resamples=0)
    assert 20 * np.mean(rsum_by_image(report)) == pytest.approx(report.rsum)


def test_the_difference_pairs_images_and_averages_seeds() -> None:
    base = [made_up(seed) for seed in range(3)]
    change, low, high = difference(base, base)
    assert change == low == high == 0
    better = [made_up(seed, shift=2) for seed in range(3)]
    change, low, high = difference(base, better)
    expected = np.mean([np.mean(b["test"]["rsum_by_image"]) for b in better])
    expected -= np.mean([np.mean(b["test"]["rsum_by_image"]) for b in base])
    assert change == pytest.approx(20 * expected) and low < change < high and low > 0


def test_the_tables_show_what_is_there_and_name_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for seed in (0, 1):
        for kind, shift in (("", 0), ("_daa", 3)):
            job = Job(f"flickr8k_pcme{kind}", seed=seed)
            write(tmp_path, job, made_up(seed, shift, clouds=True) | {"recipe": job.recipe})
            job = Job(f"flickr8k_sgr{kind}", seed=seed)
            write(tmp_path, job, made_up(seed, shift) | {"recipe": job.recipe})
    for job in (job for job in jobs() if job.label in ("weight1", "weight2", "weight5", "weight10")):
        write(tmp_path, job, made_up(job.seed) | {"recipe": job.recipe, "settings": job.settings})
    study = collect(tmp_path)
    text = study.to_markdown()
    words = " ".join(text.split())
    assert text.count("| pcme + DAA | 53.5 ± 0.7 | 53.5 ± 0.7 |") == 2  # a table per direction
    assert re.search(r"\| pcme \| \+3\.0 \| \+3\.0 \| \+\d+\.\d \[.*\] \| 0\.0 \| 2 \|", text)
    assert "| pcme | images | 50.0 | 40.0 | 30.0 | 20.0 | 10.0 |" in text
    assert re.search(r"\| infonce \+ DAA, weight 10 \| .* \| 40\.0 ± 0\.0 \| 512 \| 1\.2 M \| 3 \|", text)
    assert re.search(r"\| sgr \| .* \| 40\.0 ± 0\.0 \| 128 \| 1\.2 M \| 2 \| 1\.0 \|", text)  # of the quickest seed
    assert "sgr is smaller than published: 16 cells, similarities of 32 numbers." in words
    assert "`halation train flickr8k_infonce_daa --set loss.daa.weight=10 " in words
    assert "`halation train flickr8k_NAME`" in words
    assert "runs (flickr8k_infonce-seed0, " in words
    assert text.index("## What DAA changes") < text.index("| pcme + DAA |") < text.index("](results/front.png)")
    written = study.write(tmp_path)
    assert [path.name for path in written] == ["results.md", "front.png"] and written[1].stat().st_size > 5000


def test_a_gain_is_set_against_a_truth_that_was_not_trained_on() -> None:
    base, better = made_up(0), made_up(0, shift=3)
    results = {"flickr8k_pcme-seed0": base, "flickr8k_pcme_daa-seed0": better}
    assert unconfirmed({}, ["pcme"], [0]) == ""
    better["test"]["expert_tau_c"] = 39.0
    text = unconfirmed(results, ["pcme"], [0])
    assert "The experts' judgement does not confirm it (Expert τ_c falls for 1 of 1 models)" in text
    better["test"]["expert_tau_c"] = 41.0
    assert "does not settle it (Expert τ_c falls for 0 of 1 models)" in unconfirmed(results, ["pcme"], [0])


def test_trials_are_shown_by_recipe_with_their_images_apart() -> None:
    figures = {"R@1 i2t": 1.0, "R@1 t2i": 2.0, "rsum": 30.0, "ASP(tfidf) i2t": 51.0, "ASP(tfidf) t2i": 52.0}
    trials = [
        {"recipe": "a", "settings": ["x=1", "y=2"], "dev": figures, "note": "500 dev images; seed 1; all 1,000: 3"},
        {"recipe": "b", "settings": [], "dev": figures | {"R-P(people) i2t": 3.0, "R-P(people) t2i": 4.0}},
        {"recipe": "a", "settings": [], "dev": figures, "chosen": True},
    ]
    tables = trials_tables(trials)
    assert [table.title for table in tables] == ["a", "b"]
    figures_shown = ["1.0\u00a0/\u00a02.0", "30.0", "51.0\u00a0/\u00a052.0", ""]
    assert tables[0].rows == [
        ["x=1 y=2 (seed 1; all 1,000: 3)", "500", *figures_shown],
        ["**chosen**", "", *figures_shown],
    ]
    assert tables[1].rows[0][0] == "none" and tables[1].rows[0][-1] == "3.0\u00a0/\u00a04.0"


def test_a_run_that_is_done_is_not_done_again_unless_its_recipe_changed(tmp_path: Path) -> None:
    job = Job("flickr8k_pcme", seed=1)
    own = digest(read_recipe("flickr8k_pcme", ["train.seed=1"]))
    path = tmp_path / f"{job.name}.json"
    path.write_text(json.dumps(made_up(1) | {"digest": own}))
    assert run_job(job, tmp_path / "no data", tmp_path, tmp_path / "no runs")["seed"] == 1
    path.write_text(json.dumps(made_up(1) | {"digest": digest(read_recipe("flickr8k_pcme", ["train.lr=1"]))}))
    with pytest.raises(InputError, match="no data"):
        run_job(job, tmp_path / "no data", tmp_path, tmp_path / "no runs")


def test_runs_side_by_side_are_collected_and_say_what_stopped_them(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    done = [job for job in jobs() if job.recipe.startswith("flickr8k_vse") and job.seed < 2]
    for job in done:
        write(tmp_path, job, made_up(job.seed) | {"recipe": job.recipe})
    lines: list[str] = []
    only = [job.name for job in done]
    study = daa(tmp_path / "no data", tmp_path, tmp_path / "runs", only=only, at_once=2, log=lines.append)
    assert set(study.results) == set(only) and len(lines) == 4
    assert {line.split("] ")[1].split(":")[0] for line in lines} == set(only)
    assert lines[-1].startswith("[4/4] ") and "1.0 minutes of training, R-sum " in lines[-1]
    with pytest.raises(InputError, match="no data"):
        daa(tmp_path / "no data", tmp_path, tmp_path / "runs", only=["flickr8k_vse-seed"], at_once=2)


def test_a_finished_run_of_an_earlier_recipe_is_not_taken_for_this_one(tmp_path: Path) -> None:
    job = Job("flickr8k_pcme", seed=1)
    write_run(tmp_path / "runs" / job.name)  # finished, of another recipe
    with pytest.raises(InputError, match="no data"):
        run_job(job, tmp_path / "no data", tmp_path, tmp_path / "runs")
    assert not (tmp_path / "runs" / job.name / "model.safetensors").exists()


def test_every_result_that_is_kept_is_of_todays_recipe() -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "results"
    known = {job.name: job for job in jobs()}
    for path in folder.glob("*-seed*.json"):
        assert finished(known[path.stem], folder) is not None, f"{path.name} is of an earlier recipe; run it again"
